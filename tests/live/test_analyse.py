"""`analyse`: the same of an experiment wherever it is kept, what is used of it, and what is refused in one line."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from scipy import stats

import banditto as bd
from banditto import policies
from banditto.core.errors import InvalidArgument, LogError
from banditto.live.experiment import Experiment
from banditto.measure.analysis import critical_values, stages
from banditto.policies import baselines
from tests.cli.test_cli import schema
from tests.commands import banditto
from tests.lazily import Lazily
from tests.live import worlds
from tests.live.worlds import hashed_reward, place, registration_of

NAMES = ["old", "new"]
RATES = (0.3, 0.8)
Pays = Callable[[int, str], float]  # of an arm and a ticket


@cache
def committing() -> bd.OneCut:
    return bd.OneCut(arms=2, horizon=1000, rho=0.5, gap=0.15)


@cache
def ending() -> bd.EarlyCut:
    return bd.EarlyCut(arms=2, horizon=2000, rho=0.3, gap=0.3)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/trial.db"


def coin(arm: int, ticket: str) -> float:
    return float(hashed_reward(*place(ticket)) < RATES[arm])


def half(arm: int, ticket: str) -> float:
    """A reward between the ends, the larger ones of the second arm."""
    return 0.5 * hashed_reward(*place(ticket)) + 0.4 * arm


def play(trial: Experiment, pays: Pays = coin, most: int = 10**6) -> None:
    """Ask and tell, so many tickets at the most."""
    while most and (tickets := trial.ask(min(most, 500)).tickets):
        trial.tell_many([(ticket.id, pays(ticket.arm, ticket.id)) for ticket in tickets])
        most -= len(tickets)


def tell_totals(trial: Experiment, shares: Mapping[str, float], batches: int = 10**6) -> None:
    """Whole batches whose arms pay 1 in this share of pulls, rounded to whole ones."""
    for _ in range(batches):
        status = trial.status()
        if status.state != "running":
            return
        totals = {arm: (count, float(round(shares[arm] * count))) for arm, count in status.plan.items()}
        trial.tell_totals(status.batch, totals)


def exported(url: str, name: str, folder: Path) -> Path:
    path = folder / f"{name}.json"
    path.write_bytes(worlds.exported(url, name, "json"))
    return path


def same(found: bd.Analysis, other: bd.Analysis) -> bool:
    """Equal but for the last digits of sums of squares, which are added up in another order."""
    one, two = (json.dumps(analysis.to_dict()) for analysis in (found, other))
    numbers = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
    first, second = (np.array([float(text) for text in numbers.findall(line)]) for line in (one, two))
    return numbers.sub("*", one) == numbers.sub("*", two) and np.allclose(first, second, rtol=1e-9, atol=1e-12)


def analysed_everywhere(url: str, name: str, folder: Path) -> bd.Analysis:
    """The analysis of the object, which those of its address and of its log are equal to."""
    with Experiment.open(url, name) as trial:
        found = bd.analyse(trial)
    path = exported(url, name, folder)
    for source in (f"{url}#{name}", path, str(path)):
        assert same(bd.analyse(source), found), source
    content = found.to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    return found


# -- one experiment, wherever it is kept -------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [committing, ending])
@pytest.mark.parametrize("pays", [coin, half])
def test_the_same_from_the_object_its_address_and_its_log(
    store_url: str, tmp_path: Path, policy: Callable[[], Any], pays: Pays
) -> None:
    with Experiment.create(store_url, "x", registration_of(policy(), arm_names=NAMES)) as trial:
        play(trial, pays)
        status = trial.status()
    found = analysed_everywhere(store_url, "x", tmp_path)
    assert (found.winner, found.decided_by, found.observations.state) == ("new", "lead", "finished")
    assert found.coverage.method == ("Clopper-Pearson" if pays is coin else "empirical Bernstein")
    assert sum(arm.pulls for arm in found.arms) == status.spent
    assert [check.verdict for check in found.checks] == ["ok", "ok"]
    assert found.coverage.design == ("fresh" if policy is committing else "looks")
    assert [arm.data for arm in found.arms] == ["first", "after" if policy is committing else "first"]
    assert found.warnings == ()


def test_what_it_says_is_from_the_rewards_that_were_told(url: str, tmp_path: Path) -> None:
    """By hand: the first pulls of the loser, and those of the winner after the commit, at their own places."""
    told: list[tuple[int, int, float]] = []

    def kept(arm: int, ticket: str) -> float:
        told.append((arm, place(ticket)[0], coin(arm, ticket)))
        return told[-1][2]

    with Experiment.create(url, "x", registration_of(committing(), arm_names=NAMES)) as trial:
        play(trial, kept)
    found = analysed_everywhere(url, "x", tmp_path)
    (stage,) = stages.stages_of(committing(), 1000)
    before = [reward for arm, batch, reward in told if (arm, batch) == (0, 1)]
    after = [reward for arm, batch, reward in told if (arm, batch) == (1, 2)]
    assert [arm.used for arm in found.arms] == [len(before), len(after)] == [stage.pulls, stage.after]
    assert [arm.estimate for arm in found.arms] == [np.mean(before), np.mean(after)]
    place_of = critical_values.each_and_fresh(0.7 * 0.05, 2, stage.fresh_weight), stages.fresh_place(0.05, "sequence")
    for arm, rewards, at in zip(found.arms, (before, after), place_of, strict=True):
        sure = 1.0 - 2.0 * stats.norm.sf(at)
        wanted = stats.binomtest(int(sum(rewards)), len(rewards)).proportion_ci(sure, "exact")
        assert (arm.low, arm.high) == pytest.approx((wanted.low, wanted.high), rel=1e-8)


def test_corrections_and_rewards_that_are_missing_or_late(store_url: str, tmp_path: Path) -> None:
    lost = {"x.1-2", "x.1-5", "x.1-9"}
    with Experiment.create(store_url, "x", registration_of(committing(), arm_names=NAMES)) as trial:
        first = trial.ask(20).tickets
        trial.tell_many([(ticket.id, coin(ticket.arm, ticket.id)) for ticket in first if ticket.id not in lost])
        trial.correct("x.1-1", 0.5, "a half")
        assert analysed_after(trial, "between the ends") == "no complete batch"
        trial.correct("x.1-1", 1.0, "no")
        for ticket in sorted(lost):
            trial.missing(ticket, "gone")
        trial.tell("x.1-2", 1.0)  # too late
        play(trial)
        arms = {ticket.id: ticket.arm for ticket in first}
    found = analysed_everywhere(store_url, "x", tmp_path)
    assert found.coverage.method == "Clopper-Pearson"  # as corrected
    flow = found.observations.flow
    assert flow is not None
    (stage,) = stages.stages_of(committing(), 1000)
    assert flow.planned == flow.assigned == (stage.pulls, 1000 - stage.pulls)
    assert flow.lost == tuple(sum(arms[ticket] == arm for ticket in lost) for arm in range(2))
    assert sum(flow.handed) == 1000 + 3
    assert found.checks[1].text.startswith("no arm loses more than chance explains")


def analysed_after(trial: Experiment, why: str) -> str:
    """What is refused, as it is given."""
    with pytest.raises(InvalidArgument) as refused:
        bd.analyse(trial)
    assert refused.value.argument == "source", why
    return str(refused.value.given)


def test_rewards_that_one_arm_loses_are_an_alarm(url: str, tmp_path: Path) -> None:
    with Experiment.create(url, "x", registration_of(committing(), arm_names=NAMES)) as trial:
        while tickets := trial.ask(500).tickets:
            first = [one.id for one in tickets if one.arm and one.id.count("-") == 1]
            gone = {ticket for ticket in first if hashed_reward(*place(ticket)) > 0.8}
            trial.tell_many([(one.id, coin(one.arm, one.id)) for one in tickets if one.id not in gone])
            for ticket in gone:
                trial.missing(ticket, "gone")
    loss = analysed_everywhere(url, "x", tmp_path).checks[1]
    assert loss.verdict == "alarm"
    assert "some arms lose more than others" in loss.line


def test_batches_that_are_under_way_are_not_used(store_url: str, tmp_path: Path) -> None:
    with Experiment.create(store_url, "x", registration_of(committing(), arm_names=NAMES)) as trial:
        assert analysed_after(trial, "nothing was told") == "no rewards"
        ticket = trial.ask(1).tickets[0]
        trial.tell(ticket.id, 1.0)
        assert analysed_after(trial, "one reward") == f"rewards of {ticket.arm_name} alone"
        play(trial, most=30)
        assert analysed_after(trial, "a batch that is not complete") == "no complete batch"
        (stage,) = stages.stages_of(committing(), 1000)
        play(trial, most=2 * stage.pulls - 31)
        whole = bd.analyse(trial)
        assert (whole.winner, whole.decided_by, whole.observations.state) == ("new", "lead", "running")
        assert [arm.used for arm in whole.arms] == [stage.pulls, stage.pulls]
        assert whole.coverage.design == "one batch"
        play(trial, most=40)
        trial.ask(3)
    found = analysed_everywhere(store_url, "x", tmp_path)
    assert [arm.pulls for arm in found.arms] == [stage.pulls, stage.pulls + 40]
    for one, other in zip(found.arms, whole.arms, strict=True):
        assert (one.estimate, one.low, one.high, one.used) == (other.estimate, other.low, other.high, other.used)
    assert found.differences == whole.differences
    assert [check.verdict for check in found.checks] == ["ok", "ok"]


def test_an_experiment_that_was_stopped(store_url: str, tmp_path: Path) -> None:
    (stage,) = stages.stages_of(committing(), 1000)
    with Experiment.create(store_url, "x", registration_of(committing(), arm_names=NAMES)) as trial:
        play(trial, most=2 * stage.pulls + 7)
        trial.ask(2)
        trial.stop("enough")
    found = analysed_everywhere(store_url, "x", tmp_path)
    assert (found.observations.state, found.winner) == ("stopped", "new")
    assert found.arms[1].used == stage.pulls
    with Experiment.create(store_url, "y", registration_of(committing(), arm_names=NAMES)) as trial:
        play(trial, most=9)
        trial.stop("at once")
        assert analysed_after(trial, "stopped") == "no complete batch"


# -- totals, ranges, kinds of rewards ----------------------------------------------------------------------------------


def test_totals_are_binary_if_they_are_whole(store_url: str, tmp_path: Path) -> None:
    for name, share in (("whole", 0.0), ("parts", 0.25)):
        with Experiment.create(store_url, name, registration_of(committing(), arm_names=NAMES)) as trial:
            while (status := trial.status()).state == "running":
                paid = {"old": 0.3, "new": 0.8}
                totals = {arm: (n, round(paid[arm] * n) + share) for arm, n in status.plan.items()}
                trial.tell_totals(status.batch, totals)
    whole, parts = (analysed_everywhere(store_url, name, tmp_path) for name in ("whole", "parts"))
    assert whole.coverage.method == "Clopper-Pearson"
    assert parts.coverage.method == "Chernoff"
    assert whole.checks == parts.checks == ()  # there were no tickets
    assert parts.arms[0].high - parts.arms[0].low > whole.arms[0].high - whole.arms[0].low
    with pytest.raises(InvalidArgument, match="^binary: got True, allowed: False"):
        bd.analyse(f"{store_url}#parts", binary=True)
    assert bd.analyse(f"{store_url}#whole", binary=False).coverage.method == "Chernoff"


def test_totals_and_tickets_in_one_experiment(url: str, tmp_path: Path) -> None:
    (stage,) = stages.stages_of(committing(), 1000)
    with Experiment.create(url, "x", registration_of(committing(), arm_names=NAMES)) as trial:
        play(trial, half, most=2 * stage.pulls)
        tell_totals(trial, {"old": 0.3, "new": 0.8})
    found = analysed_everywhere(url, "x", tmp_path)
    assert found.coverage.method == "Chernoff"  # squares of the second batch are not known
    flow = found.observations.flow
    assert flow is not None
    assert flow.planned == flow.assigned == (stage.pulls, stage.pulls)


def stretched(pays: Pays, ends: tuple[float, float], arm: int, ticket: str) -> float:
    return ends[0] + (ends[1] - ends[0]) * pays(arm, ticket)


@pytest.mark.parametrize(("low", "high"), [(-2.0, 2.0), (10.0, 30.0), (0.0, 4.0), (-0.75, 0.0)])
def test_ranges_other_than_0_to_1_are_in_their_own_units(url: str, tmp_path: Path, low: float, high: float) -> None:
    plain, scaled = registration_of(committing()), registration_of(committing(), rewards=(low, high))
    for name, registration in (("plain", plain), ("scaled", scaled), ("between", scaled)):
        with Experiment.create(url, name, registration) as trial:
            ends = (0.0, 1.0) if name == "plain" else (low, high)
            play(trial, partial(stretched, half if name == "between" else coin, ends))
    reference, found, between = (analysed_everywhere(url, name, tmp_path) for name in ("plain", "scaled", "between"))
    assert found.coverage.method == "Clopper-Pearson"
    assert between.coverage.method == "empirical Bernstein"
    for arm, other in zip(found.arms, reference.arms, strict=True):
        wanted = [low + (high - low) * value for value in (other.estimate or 0.0, other.low, other.high)]
        assert [arm.estimate, arm.low, arm.high] == pytest.approx(wanted)
        assert low <= arm.low <= arm.high <= high
    for one, two in zip(found.differences, reference.differences, strict=True):
        wanted = [(high - low) * value for value in (two.estimate, two.low, two.high)]
        assert [one.estimate, one.low, one.high] == pytest.approx(wanted)
        assert (one.ratio is None) == (low != 0.0)
    assert "points" not in found.table()


def test_gaussian_rewards(store_url: str, tmp_path: Path) -> None:
    policy = bd.OneCut(arms=2, horizon=400, rho=0.5, gap=2.0, rewards="gaussian", sigma=2.0)
    with Experiment.create(store_url, "x", registration_of(policy, arm_names=NAMES)) as trial:
        play(trial, lambda arm, ticket: float(stats.norm.ppf(hashed_reward(*place(ticket)))) * 2.0 - 50.0 + 4.0 * arm)
    found = analysed_everywhere(store_url, "x", tmp_path)
    assert (found.winner, found.coverage.method) == ("new", "normal")
    assert "with a standard deviation of at most 2" in found.statement
    winner = found.arms[1]
    reach = 2.0 / winner.used**0.5 * stages.fresh_place(0.05, "sequence")
    assert winner.estimate is not None
    assert (winner.low, winner.high) == pytest.approx((winner.estimate - reach, winner.estimate + reach))
    assert found.differences[0].ratio is None


def test_arms_with_odd_names(url: str, tmp_path: Path) -> None:
    names = ['<script>alert("1")</script>', '"events": [ $x_1$ & \N{SNOWMAN} \N{FULLWIDTH LATIN SMALL LETTER A}']
    with Experiment.create(url, "x", registration_of(committing(), arm_names=names)) as trial:
        play(trial)
    found = analysed_everywhere(url, "x", tmp_path)
    assert found.winner == names[1]
    assert "<script>" not in found._repr_html_()
    drawn = tmp_path / "forest.png"
    done = banditto("analyse", str(tmp_path / "x.json"), "--figure", str(drawn))
    assert done.stderr == ""
    assert (done.returncode, drawn.read_bytes()[:4]) == (0, b"\x89PNG")


def test_a_broken_promise_is_a_warning(url: str, tmp_path: Path) -> None:
    policy = bd.OneCut(arms=2, horizon=20_000, rho=0.3, gap=0.05, rate_at_most=0.1)
    with Experiment.create(url, "x", registration_of(policy, arm_names=NAMES)) as trial:
        tell_totals(trial, {"old": 0.3, "new": 0.3}, batches=1)
    found = analysed_everywhere(url, "x", tmp_path)
    assert found.warnings
    assert found.table().endswith(f"warning: {found.warnings[-1]}")
    done = banditto("analyse", f"{url}#x")
    assert done.returncode == 0
    assert "warning: " not in done.stdout
    assert all(line in done.stderr for line in found.warnings)
    assert banditto("analyse", f"{url}#x", "--quiet").stderr == ""


def test_metrics_change_nothing(store_url: str, tmp_path: Path) -> None:
    for name in ("with", "without"):
        with Experiment.create(store_url, name, registration_of(committing(), arm_names=NAMES)) as trial:
            while tickets := trial.ask(500).tickets:
                paid = [(one.id, coin(one.arm, one.id)) for one in tickets]
                more = [(ticket, reward, {"revenue": 7.5 * reward}) for ticket, reward in paid]
                trial.tell_many(more if name == "with" else paid)
    found, other = (analysed_everywhere(store_url, name, tmp_path) for name in ("with", "without"))
    assert [metric.name for metric in found.metrics] == ["revenue"]
    assert same(dataclasses.replace(found, metrics=()), other)


def test_a_final_choice_of_the_ladder(url: str, tmp_path: Path) -> None:
    """A tie, so that no cut decides, and a batch of a size of its own chooses."""
    policy = bd.CertifiedElimination(arms=2, horizon=2000, rho=0.3)
    with Experiment.create(url, "x", registration_of(policy, arm_names=NAMES)) as trial:
        tell_totals(trial, {"old": 0.5, "new": 0.5})
    found = analysed_everywhere(url, "x", tmp_path)
    assert (found.decided_by, found.coverage.design) == ("coin", "fresh")
    assert "by the shared rule" in found.headline


# -- selections --------------------------------------------------------------------------------------------------------


def test_a_selection_with_and_without_a_store(url: str, tmp_path: Path) -> None:
    arms: dict[str, Callable[..., object]] = {
        "worse": lambda rng: rng.random() < 0.4,
        "better": lambda rng: rng.random() < 0.7,
    }
    known: dict[str, Any] = {"gap": 0.2, "rho": 0.3}
    alone, stored = bd.select(arms, **known), bd.select(arms, store=f"{url}#race", **known)
    found, other = bd.analyse(alone), bd.analyse(stored)
    assert (found.arms, found.differences, found.coverage) == (other.arms, other.differences, other.coverage)
    assert found.winner == alone.winner
    assert found.decided_by == alone.decided_by
    assert found.checks == ()  # a desk in memory has no tickets to lose
    assert same(analysed_everywhere(url, "race", tmp_path), other)
    assert [arm.pulls for arm in found.arms] == [estimate.pulls for estimate in alone.estimates.values()]
    between = bd.select({"a": lambda rng: 0.3 * rng.random(), "b": lambda rng: rng.random()}, **known)
    assert bd.analyse(between).coverage.method == "empirical Bernstein"
    with pytest.raises(InvalidArgument, match="^source: got a selection without its looks"):
        bd.analyse(bd.Selection(**{**vars(alone), "seen": None}))


# -- logs that are no logs ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("log")
    url = f"sqlite:///{folder}/trial.db"
    with Experiment.create(url, "x", registration_of(committing(), arm_names=NAMES)) as trial:
        play(trial)
    return exported(url, "x", folder).read_text(encoding="utf-8")


def changed(log: str, change: Callable[[Any], None]) -> str:
    content = json.loads(log)
    change(content)
    return json.dumps(content, indent=2) + "\n"


def without(key: str, content: Any) -> None:
    del content[key]


def other_reward(content: Any) -> None:
    tell = next(event for event in content["events"] if event["kind"] == "tell")
    tell["content"]["rewards"][0][3] = 1.0 - tell["content"]["rewards"][0][3]


TAMPERED: dict[str, Callable[[Any], None]] = {
    "a reward": other_reward,
    "a name": lambda content: content["registration"].update(arm_names=["old", "other"]),
    "the head": lambda content: content.update(head="0" * 64),
    "the digest": lambda content: content.update(digest="0" * 64),
    "the last event": lambda content: content["events"].pop(),
    "an event": lambda content: content["events"].pop(4),
    "two events": lambda content: content["events"].insert(3, content["events"].pop(4)),
    "all events": lambda content: content["events"].clear(),
    "a time": lambda content: content["events"][2].update(time="2020-01-01T00:00:00+00:00"),
    "a number": lambda content: content["events"][2].update(number=9),
    "a kind": lambda content: content["events"][2].update(kind="tell"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_log_that_was_changed_is_refused(log: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(changed(log, TAMPERED[name]), encoding="utf-8")
    with pytest.raises(LogError):
        bd.analyse(path)
    done = banditto("analyse", str(path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    told = json.loads(banditto("analyse", str(path), "--json").stderr)
    assert told["code"] == "log"


def test_a_log_that_ends_too_early_is_refused(log: str, tmp_path: Path) -> None:
    """In the head of the file it is no log; among its events, one that does not verify."""
    path = tmp_path / "log.json"
    begin = log.index('"events": [')
    for end in (0, 1, 50, begin, *np.linspace(begin + 12, len(log) - 9, 12).astype(int).tolist()):
        path.write_text(log[:end], encoding="utf-8")
        done = banditto("analyse", str(path))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2 if end <= begin else 3, "", 1), end


NO_LOGS: dict[str, bytes] = {
    "nothing": b"",
    "an object": b"{}",
    "a list": b"[1, 2, 3]",
    "a number": b"7",
    "text": b"arm,reward\na,1\n",
    "not UTF-8": b"\xff\xfe\x00\x81",
    "zeros": bytes(3000),
    "a list of events": b'{\n  "events": [\n    {}\n  ]\n}\n',
    "deep": b"[" * 100_000,
    "deep events": b'{\n  "a": ' + b"[" * 100_000 + b'\n  "events": [',
}


@pytest.mark.parametrize("name", NO_LOGS)
def test_a_file_that_is_no_log_is_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(NO_LOGS[name])
    refused(path)


def refused(path: Path) -> None:
    with pytest.raises(
        InvalidArgument, match="^source: got .*, allowed: a log that `banditto export --format json` wrote"
    ):
        bd.analyse(path)
    done = banditto("analyse", str(path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("banditto: error: EXPERIMENT|LOG: got ")


@pytest.mark.parametrize("text", ["[]", "{}", "7", '{"a": 1}'])
def test_another_registration_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(f'{{\n  "registration": {text},\n  "events": [\n  ]\n}}\n')
    done = banditto("analyse", str(path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"registration: got {text.replace(' ', '')}, allowed: an object with arm_names" in done.stderr


def test_a_folder_another_document_and_nothing_at_all(log: str, tmp_path: Path, url: str) -> None:
    refused(tmp_path)
    refused(tmp_path / "nowhere.json")
    document = tmp_path / "document.json"
    with Experiment.create(url, "x", registration_of(committing(), arm_names=NAMES)) as trial:
        play(trial, most=4)
    document.write_text(banditto("status", "x", "--store", url, "--json").stdout, encoding="utf-8")
    refused(document)
    document.write_text(json.dumps(json.loads(log)), encoding="utf-8")  # a log, but not as it was written
    refused(document)
    for shape in ("registration", "events", "name"):
        document.write_text(changed(log, partial(without, shape)), encoding="utf-8")
        refused(document)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["events"].__setitem__(2, 7),
        lambda content: content["events"].__setitem__(2, None),
        lambda content: content["events"][2].pop("content"),
        lambda content: content["events"][2].update(content=[]),
        lambda content: content["events"][2].update(number="3"),
        lambda content: content["events"][2].update(hash=None),
    ],
)
def test_events_of_another_shape(log: str, change: Callable[[Any], None], tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(changed(log, change), encoding="utf-8")
    done = banditto("analyse", str(path))
    assert (done.returncode in (2, 3), done.stdout, done.stderr.count("\n")) == (True, "", 1)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("source", [None, 7, ["x"], {"a": 1}, object()])
def test_sources_that_nothing_can_be_made_of(source: Any) -> None:
    with pytest.raises(InvalidArgument, match="^source: got .*, allowed: an experiment, URL#NAME, an exported log"):
        bd.analyse(source)


def test_confidence_is_checked_before_anything_is_read() -> None:
    with pytest.raises(InvalidArgument, match="^confidence: got 1.5"):
        bd.analyse("nowhere.json", 1.5)


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.fixture
def told(url: str, tmp_path: Path) -> str:
    """A store with the finished experiment `cta`, and its log in cta.json."""
    with Experiment.create(url, "cta", registration_of(committing(), arm_names=NAMES)) as trial:
        play(trial)
    exported(url, "cta", tmp_path)
    return url


def test_the_verb_prints_the_table_from_every_source(told: str, tmp_path: Path) -> None:
    wanted = bd.analyse(f"{told}#cta").table() + "\n"
    ways: list[tuple[list[str], dict[str, str] | None]] = [
        (["cta", "--store", told], None),
        ([f"{told}#cta"], None),
        (["cta"], {"BANDITTO_STORE": told}),
        ([str(tmp_path / "cta.json")], None),
        ([str(tmp_path / "cta.json")], {"BANDITTO_STORE": "sqlite:///nowhere.db"}),
    ]
    for words, variables in ways:
        done = banditto("analyse", *words, env=variables)
        assert (done.returncode, done.stdout, done.stderr) == (0, wanted, ""), words
    plain = tmp_path / "kept"  # no suffix
    plain.write_bytes((tmp_path / "cta.json").read_bytes())
    assert banditto("analyse", str(plain)).stdout == wanted


def test_the_verb_prints_json(told: str, tmp_path: Path) -> None:
    done = banditto("analyse", "cta", "--store", told, "--json", "--confidence", "0.9")
    content = json.loads(done.stdout)
    jsonschema.validate(content, schema("analysis"))
    wanted = json.loads(json.dumps(bd.analyse(f"{told}#cta", 0.9).to_dict()))
    assert {key: content[key] for key in wanted} == wanted
    assert set(content) - set(wanted) == {"versions", "platform", "command", "created"}
    assert content["confidence"] == 0.9
    done = banditto("analyse", "cta", "--store", told, "--json", "--not-binary")
    other = json.loads(done.stdout)
    assert (other["coverage"]["method"], content["coverage"]["method"]) == ("empirical Bernstein", "Clopper-Pearson")
    wider = [one["arms"][0]["interval"] for one in (other, content)]
    assert wider[0][0] < wider[1][0] < wider[1][1] < wider[0][1]


@pytest.mark.parametrize(("suffix", "first"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_the_verb_draws(told: str, tmp_path: Path, suffix: str, first: bytes) -> None:
    path = tmp_path / f"forest.{suffix}"
    done = banditto("analyse", "cta", "--store", told, "--figure", str(path))
    assert done.returncode == 0
    assert done.stdout == bd.analyse(f"{told}#cta").table() + "\n"
    assert path.read_bytes().startswith(first)
    bad = banditto("analyse", "cta", "--store", told, "--figure", str(tmp_path / "forest.gif"))
    assert (bad.returncode, bad.stderr.count("\n")) == (2, 1)
    assert bad.stderr.startswith("banditto: error: --figure: got ")
    assert not (tmp_path / "forest.gif").exists()


# -- replays and executions --------------------------------------------------------------------------------------------


def coin_log(sizes: tuple[int, ...], means: tuple[float, ...], low: float = 0.0, high: float = 1.0) -> bd.RewardLog:
    noise = np.random.default_rng(3)
    rows = [(f"arm {k}", high if one else low) for k, n in enumerate(sizes) for one in noise.random(n) < means[k]]
    return bd.RewardLog.of(rows, low=low, high=high)


def sound(found: bd.Analysis) -> None:
    """Estimates are inside their intervals, and everything can be printed."""
    assert all(arm.low <= arm.estimate <= arm.high for arm in found.arms if arm.estimate is not None)
    assert all(one.low <= one.estimate <= one.high for one in found.differences)
    assert found.headline in found.table()
    json.dumps(found.to_dict(), allow_nan=False)


def test_replays_in_batches() -> None:
    policy = bd.ExploreThenCommit(arms=3, horizon=20_000, rho=0.3, gap=0.2)
    whole = bd.analyse(bd.replay(policy, coin_log((9000, 9000, 9000), (0.8, 0.4, 0.5))))
    sound(whole)
    assert (whole.winner, whole.coverage.design, whole.coverage.method) == ("arm 0", "fresh", "Clopper-Pearson")
    assert whole.arms[0].used == 9000 - policy.pulls  # as many rows as there are
    scaled = bd.analyse(bd.replay(policy, coin_log((9000, 9000, 9000), (0.8, 0.4, 0.5), -1.0, 3.0)))
    assert scaled.arms[0].estimate == pytest.approx(-1.0 + 4.0 * (whole.arms[0].estimate or 0.0))
    dry = bd.replay(policy, coin_log((9000, policy.pulls - 1, 9000), (0.8, 0.4, 0.5)))
    with pytest.raises(InvalidArgument, match="^source: got no "):
        bd.analyse(dry)
    ladder = bd.CertifiedElimination(arms=3, horizon=20_000, rho=0.4)
    first = ladder.describe().to_dict()["batches"][0]["pulls per arm"]
    cut = bd.analyse(bd.replay(ladder, coin_log((2000, first + 20, 2000), (0.6, 0.5, 0.5))))
    sound(cut)
    assert (cut.winner, cut.observations.state) == (None, "running")
    assert {arm.used for arm in cut.arms} == {first}


def test_replays_of_winners_and_of_rounds() -> None:
    log = coin_log((3000, 3000), (0.7, 0.4))
    found = bd.replay(ending(), log)
    assert bd.analyse(found).winner == found.winner
    sound(bd.analyse(found))
    rounds = bd.analyse(bd.replay(bd.UCB1(), log, horizon=500))
    sound(rounds)
    assert (rounds.coverage.design, rounds.winner) == ("any time", None)
    assert sum(arm.used for arm in rounds.arms) == 500
    dry = bd.replay(bd.UCB1(), coin_log((50, 20), (0.5, 0.5)), horizon=500)
    assert dry.dry
    sound(bd.analyse(dry))


POINTS = [[1.0, 0.0], [0.6, 0.6], [0.0, 1.0]]


def made(entry: Any) -> tuple[Any, Any, int | None]:
    """A policy of a registry, its environment, and the horizon that it needs to be told."""
    kind: Any = getattr(bd, entry.class_name)
    world: Any = bd.LinearBernoulli([0.5, 0.3], POINTS) if entry.linear else bd.Bernoulli([0.8, 0.5, 0.4])
    ordinary = entry.class_name in baselines.__all__
    sizes: dict[str, Any] = {} if ordinary else {"rho": 0.3}
    sizes |= {"gap": 0.2} if "gap" in entry.options else {}
    sizes |= {"actions": bd.FiniteActions(POINTS) if ordinary else POINTS} if entry.linear else {}
    if entry.class_name == "NetThreshold":
        disc = bd.Ball(dimension=2)
        return (
            kind(actions=disc, horizon=10**9, rho=0.3, rewards="gaussian", sigma=1.0),
            bd.LinearGaussian([0.5, 0.3], disc),
            None,
        )
    fields = {field.name for field in dataclasses.fields(kind) if field.init}
    sizes |= {"arms": 3} if "arms" in fields else {}
    if "horizon" in fields:
        return kind(horizon=10**6 if entry.linear and not ordinary else 10**5, **sizes), world, None
    return kind(**sizes), world, 2000


ENTRIES = {**policies.REGISTRY, **baselines.REGISTRY}
MADE: Lazily[tuple[Any, Any, int | None]] = Lazily({name: partial(made, entry) for name, entry in ENTRIES.items()})


@pytest.mark.parametrize("name", MADE)
def test_executions_of_every_policy(name: str) -> None:
    policy, world, horizon = MADE[name]
    view = bd.watch_pair(policy, world, horizon=horizon)
    if name == "net-threshold":
        assert view.executions == ()  # infinitely many actions have no table
        return
    for execution in view.executions:
        found = bd.analyse(execution)
        sound(found)
        assert sum(arm.pulls for arm in found.arms) <= view.horizon
        planned = not ENTRIES[name].linear and name in policies.REGISTRY
        assert (found.coverage.design == "any time") is not planned
    if not ENTRIES[name].linear:
        for pair in (0, 3000):
            for execution in bd.watch_pair(policy, bd.Bernoulli([0.5] * 3), pair=pair, horizon=horizon).executions:
                sound(bd.analyse(execution))


def test_an_execution_is_what_was_watched() -> None:
    view = bd.watch_pair(committing(), bd.Bernoulli([0.3, 0.8]), pair=5)
    for execution, pulled in zip(view.executions, (view.first, view.second), strict=True):
        found = bd.analyse(execution)
        assert found.winner == str(pulled[-1])
        assert sum(arm.pulls for arm in found.arms) == view.horizon
        assert bd.analyse(execution) == found
    sides = [bd.analyse(execution) for execution in view.executions]
    assert sides[0].arms != sides[1].arms  # their noise is their own


def test_gaussian_executions() -> None:
    policy = bd.OneCut(arms=2, horizon=10**4, rho=0.3, gap=0.5, rewards="gaussian", sigma=1.0)
    found = bd.analyse(bd.watch_pair(policy, bd.Gaussian([3.0, 2.0], sigma=1.0)).executions[0])
    sound(found)
    assert (found.winner, found.coverage.method) == ("0", "normal")
    between = bd.analyse(bd.watch_pair(committing(), bd.Beta([0.3, 0.8])).executions[1])
    sound(between)
    assert between.coverage.method == "Chernoff"


def test_tickets_that_are_out_are_not_compared_with_those_that_are_lost(url: str, tmp_path: Path) -> None:
    """Both arms lose alike; then the winner has thousands of tickets out, of which nobody knows anything."""
    with Experiment.create(url, "x", registration_of(committing(), arm_names=NAMES)) as trial:
        lost = 0
        while trial.status().winner is None:
            for ticket in trial.ask(500).tickets:
                if lost < 40 and ticket.batch == 1 and "-" not in ticket.id.partition("-")[2]:
                    trial.missing(ticket.id, "away")
                    lost += 1
                else:
                    trial.tell(ticket.id, coin(ticket.arm, ticket.id))
        before = bd.analyse(trial).checks[1]
        trial.ask(5000)
        after = bd.analyse(trial).checks[1]
    assert lost == 40
    assert (before.verdict, after) == ("ok", before)
    assert analysed_everywhere(url, "x", tmp_path).checks[1] == before
