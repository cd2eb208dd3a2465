"""Claims, their rules and their report. What the claims measure is tested beside each group of them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.errors import ContractError
from banditto.core.provenance import provenance
from banditto.numbers.intervals import clopper_pearson
from banditto.paper import claims, definition
from banditto.paper.claims import AtLeast, AtMost, Claim, Measured, Near, Row, Untestable
from banditto.paper.measuring import Point, differing, exponent, power_law
from banditto.report.paper_report import _section_title, reproduction_files
from tests.commands import banditto

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]


def claim(rule: Any, name: str = "test-1", reason: str = "") -> Claim:
    return Claim(
        name=name,
        place="Theorem 0",
        statement="A statement.",
        quantity="a number",
        experiment="An experiment.",
        rule=rule,
        measure=None if isinstance(rule, Untestable) else lambda effort: Measured.exactly(1.0),
        reason=reason,
    )


def verdict(rule: Any, low: float, high: float) -> str:
    return Row(claim=claim(rule), measured=Measured(value=(low + high) / 2.0, interval=(low, high))).verdict


# -- rules ------------------------------------------------------------------------------------------------------------


@given(
    st.floats(-5, 5),
    st.floats(0.01, 3),
    st.floats(-1, 1),
    st.floats(0, 1),
    st.sampled_from([-1.0, 1.0]),
    st.floats(1.001, 10),
)
def test_what_agrees_with_a_figure_does_not_agree_once_it_is_off_by_the_effect(
    predicted: float, detectable: float, place: float, width: float, direction: float, factor: float
) -> None:
    rule = Near(predicted=predicted, detectable=detectable)
    centre, half = predicted + place * detectable, width * detectable
    if verdict(rule, centre - half, centre + half) == "agrees":
        shift = direction * factor * detectable
        assert verdict(rule, centre - half + shift, centre + half + shift) == "disagrees"


@given(st.floats(-5, 5), st.floats(0.01, 3), st.floats(0, 2), st.floats(0, 2))
def test_a_bound_that_is_broken_by_the_effect_does_not_agree(
    bound: float, detectable: float, beyond: float, half: float
) -> None:
    centre = bound + detectable + beyond
    assert verdict(AtMost(predicted=bound, detectable=detectable), centre - half, centre + half) == "disagrees"
    centre = bound - detectable - beyond
    assert verdict(AtLeast(predicted=bound, detectable=detectable), centre - half, centre + half) == "disagrees"


def test_rules_can_agree() -> None:
    assert verdict(Near(predicted=2, detectable=0.4), 1.85, 2.15) == "agrees"
    assert verdict(Near(predicted=2, detectable=0.4), 1.75, 2.15) == "disagrees"
    assert verdict(AtMost(predicted=0.1, detectable=0.02), 0.05, 0.1) == "agrees"
    assert verdict(AtLeast(predicted=0.1, detectable=0.02), 0.1, 0.5) == "agrees"


def test_bad_claims_are_refused() -> None:
    with pytest.raises(ContractError, match="detectable effect must be positive"):
        claim(AtMost(predicted=1, detectable=0))
    with pytest.raises(ContractError, match="has a rule"):
        replace(claim(Near(predicted=1, detectable=1)), measure=None)
    with pytest.raises(ContractError, match="not a number"):
        verdict(AtMost(predicted=1, detectable=1), math.nan, 1.0)


# -- fits -------------------------------------------------------------------------------------------------------------


def test_the_interval_of_a_slope_covers_it() -> None:
    """Coverage of 4,000 intervals at 95%: below 0.935 or above 0.965 by chance with probability under 2e-5."""
    rng = np.random.default_rng(7)
    x = np.geomspace(1.0, 100.0, 8)
    covered = 0
    for noise in rng.standard_normal((4000, 8)) * 0.1:
        line = power_law(list(x), list(3.0 * x**1.5 * np.exp(noise)))
        covered += line.low <= 1.5 <= line.high
    assert 0.935 < covered / 4000 < 0.965


def test_an_exponent_is_read_off_and_drawn() -> None:
    points = [Point(x, 5.0 * x**2, 4.9 * x**2, 5.1 * x**2) for x in (1.0, 2.0, 4.0, 8.0)]
    found = exponent(points, "x, units", "y, units", predicted=2.0)
    assert found.value == pytest.approx(2.0)
    assert found.interval == pytest.approx((2.0, 2.0))
    assert found.chart is not None
    assert found.chart.curves[1].theory
    assert found.chart.curves[1].y == pytest.approx((5.0, 320.0))
    with pytest.raises(ValueError, match="three positive points"):
        power_law([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="three positive points"):
        power_law([1.0, 2.0, 3.0], [1.0, 0.0, 2.0])


# -- the list ---------------------------------------------------------------------------------------------------------

CLAIMS = claims.claims()
# what the list of claims must cover; each place has a row with a verdict
PLACES = {
    *("Definition 1", "Warm-up I", "Proposition 2", "Theorem 3", "Theorem 4", "Lemma 5", "Theorem 6", "Lemma 7"),
    *("Lemma 8", "Lemma 9", "Theorem 10", "Corollary 12", "Appendix G"),
}


@pytest.mark.parametrize("row", CLAIMS, ids=[row.name for row in CLAIMS])
def test_every_claim_is_complete(row: Claim) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)+", row.name)
    assert row.statement.endswith(".")
    assert row.experiment.endswith(".")
    assert row.quantity
    assert not row.quantity.endswith(".")
    assert 0.0 < row.seconds[0] <= row.seconds[1]


# theorems, lemmas and so on share one counter in the paper, algorithms have their own
ALGORITHMS = {"Theorem 3": 1, "Theorem 4": 2, "Theorem 6": 3, "Theorem 10": 4, "Corollary 12": 3}
BOTH = {"theorem-4-saving": {1, 2}, "corollary-12-against-theorem-10": {4}}  # claims about another algorithm too


@pytest.mark.parametrize("row", [row for row in CLAIMS if row.place in ALGORITHMS], ids=lambda row: row.name)
def test_a_claim_of_a_theorem_names_its_algorithm(row: Claim) -> None:
    said = f"{row.statement} {row.quantity} {row.experiment} {row.reason}"
    named = {int(number) for number in re.findall(r"Algorithm (\d+)", said)}
    assert named <= BOTH.get(row.name, {ALGORITHMS[row.place]})


def test_every_theorem_has_a_claim_that_names_its_algorithm() -> None:
    for theorem in ("Theorem 3", "Theorem 4", "Theorem 6", "Theorem 10"):
        texts = [f"{row.statement} {row.experiment}" for row in CLAIMS if row.place == theorem]
        assert any(f"Algorithm {ALGORITHMS[theorem]} " in text for text in texts), theorem


def test_claims_about_printed_algorithms_stand_at_their_place() -> None:
    for row in CLAIMS:
        if re.match(r"Algorithm \d", row.place):
            assert row.name.startswith(f"printed-{row.place.lower().replace(' ', '-')}")


def test_algorithms_and_theorems_are_paired_as_in_the_paper() -> None:
    """Wherever a source file or a page names an algorithm and its theorem in one breath."""
    pairs = []
    files = [*(REPOSITORY / "src" / "banditto").rglob("*.py"), *(REPOSITORY / "docs").glob("*.md")]
    for path in [*files, REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md"]:
        text = path.read_text(encoding="utf-8")
        found = re.findall(
            r"Algorithm (\d+)(?: of [^.,]*et al\., \*[\w ]+\* \(ICLR 2023\)| of \*[\w ]+\*)?,? \(?(Theorem \d+)", text
        )
        found += [
            (number, theorem) for theorem, number in re.findall(r"(Theorem \d+)\]\([^)]*\) \| Algorithm (\d+)", text)
        ]
        found += [(number, theorem) for theorem, number in re.findall(r"(Theorem \d+): Algorithm (\d+)", text)]
        pairs += [(path.name, int(number), theorem) for number, theorem in found]
    assert len(pairs) >= 16
    assert [pair for pair in pairs if ALGORITHMS[pair[2]] != pair[1]] == []


def test_what_takes_time_to_compute_is_appendix_g() -> None:
    """Appendix F of the paper has the proofs of Lemmas 8 and 9."""
    rows = [row for row in CLAIMS if row.name.startswith("appendix-")]
    assert {row.place for row in rows} == {"Appendix G"}
    assert {_section_title(Row(claim=row, measured=Measured.exactly(1.0))) for row in rows} == {"Appendix G"}


def test_what_is_not_testable_is_rare() -> None:
    assert sum(isinstance(row.rule, Untestable) for row in CLAIMS) <= 3


def test_only_takes_names_and_groups() -> None:
    assert len(claims.chosen(None)) == len(CLAIMS)
    assert [row.name for row in claims.chosen("definition-1-ucb1")] == ["definition-1-ucb1"]
    assert len(claims.chosen("definition-1")) == 19
    assert "definition-1" in claims.groups()
    with pytest.raises(bd.InvalidArgument, match=r"^only: got def, allowed: .*definition-1"):
        claims.chosen("def")


def test_the_page_has_every_claim() -> None:
    page = (REPOSITORY / "docs" / "reproduce.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z]+-[-a-z0-9]+) \|", page, flags=re.MULTILINE)
    assert rows == [row.name for row in CLAIMS]
    assert f"{len(CLAIMS)} claims: " in page
    assert f"{len(CLAIMS)} claims of" in (REPOSITORY / "README.md").read_text(encoding="utf-8")
    disagreeing = re.findall(r"^\| ([-a-z0-9]+) \|.*\| disagrees \|$", page, flags=re.MULTILINE)
    explained = re.findall(r"^\* `([-a-z0-9]+)`: \S", page, flags=re.MULTILINE)
    assert explained[-len(disagreeing) :] == disagreeing


# -- Definition 1 -----------------------------------------------------------------------------------------------------


def test_definition_1_has_a_row_for_every_policy() -> None:
    """But for those that promise less than it: the same winner, after pulls that may differ."""
    from banditto import policies
    from banditto.policies import baselines
    from banditto.policies.policy import own_level

    names = {row.name.removeprefix("definition-1-") for row in definition.CLAIMS}
    less = {name for name, entry in policies.REGISTRY.items() if own_level(getattr(bd, entry.class_name)) == "winner"}
    assert names == (set(policies.REGISTRY) - less) | set(baselines.REGISTRY)
    assert less == {"early-cut"}


def test_definition_1_would_notice() -> None:
    """The declared effects, in exact binomial probabilities: missed with probability at most 0.001."""
    from scipy.special import bdtr, bdtrc

    for rule in {row.rule for row in definition.CLAIMS}:
        assert isinstance(rule, AtMost | AtLeast)
        promised = isinstance(rule, AtMost)
        for pairs in {quick for _, quick, _, _ in definition._GAMES.values()} if promised else {256}:
            counts = range(min(pairs, 2000))
            if promised:
                agreeing = max(k for k in counts if clopper_pearson(k, pairs, 0.95)[1] <= rule.predicted)
                missed = float(bdtr(agreeing, pairs, rule.predicted + rule.detectable))
            else:
                agreeing = min(k for k in counts if clopper_pearson(k, pairs, 0.95)[0] >= rule.predicted)
                missed = float(bdtrc(agreeing - 1, pairs, rule.predicted - rule.detectable))
            assert missed <= 1e-3


@pytest.mark.long
def test_coins_that_are_not_shared_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted error: a policy that adds a coin of its own to its thresholds is no longer replicable."""
    play, pairs, _, _ = definition._GAMES["random-threshold"]
    policy, world = play()
    honest = differing(policy, world, pairs=pairs, seed=101)
    rule = next(row.rule for row in definition.CLAIMS if row.name == "definition-1-random-threshold")
    assert isinstance(rule, AtMost)
    assert rule.agrees(*honest.interval)
    calls = iter(range(10**9))
    own = Coins.uniform

    def unshared(self: Coins, *address: Any, **named: Any) -> Any:
        return own(Coins(next(calls), self.start, self.count), *address, **named)

    monkeypatch.setattr(Coins, "uniform", unshared)
    broken = differing(policy, world, pairs=pairs, seed=101)
    assert broken.value >= rule.predicted + rule.detectable
    assert not rule.agrees(*broken.interval)


# -- running and the report -------------------------------------------------------------------------------------------


def test_any_number_of_processes_finds_the_same() -> None:
    alone = bd.reproduce(quick=True, only="definition-1-explore-then-commit")
    two = bd.reproduce(quick=True, only="definition-1-explore-then-commit", jobs=2)
    assert alone == two
    assert alone.rows[0].verdict == "agrees"
    assert "1 claims: 1 agree" in alone.table()


def test_ctrl_c_keeps_what_was_finished() -> None:
    def stop(label: str, done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    found = bd.reproduce(quick=True, only="definition-1", progress=stop)
    assert found.interrupted
    assert len(found.rows) == 1


def some_rows() -> bd.Reproduction:
    """One of each verdict, with names that a careless page would not survive."""
    points = [Point(x, x**2, 0.9 * x**2, 1.1 * x**2) for x in (1e3, 1e6, 1e9)]
    drawn = exponent(points, "horizon, pulls", "regret, pulls", 2.0, label="<b>ours</b> & $theirs$")
    rows = (
        Row(claim=claim(Near(predicted=2, detectable=0.1), "test-near"), measured=drawn),
        Row(
            claim=claim(AtMost(predicted=0.1, detectable=0.1), "test-bound", reason="The constant is <wrong>."),
            measured=Measured.exactly(0.5),
        ),
        Row(claim=claim(AtMost(predicted=0.1, detectable=0.1), "test-open"), measured=Measured.exactly(0.5)),
        Row(claim=claim(Untestable(why="Nobody could."), "test-never"), measured=None),
    )
    return bd.Reproduction(rows=rows, quick=True)


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text, self.links, self.ids, self.sources = "", list[str](), set[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if values.get("id"):
            self.ids.add(str(values["id"]))
        if tag == "a":
            self.links.append(str(values["href"]))
        self.sources += [str(values[name]) for name in ("src", "srcset") if values.get(name)]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report() -> None:
    found = some_rows()
    content: dict[str, Any] = {**found.to_dict(), **provenance()}
    jsonschema.validate(content, json.loads((REPOSITORY / "src/banditto/schemas/reproduction.json").read_text()))
    assert {"name", "statement", "predicted", "measured", "interval", "detectable", "verdict"} <= set(
        content["claims"][0]
    )
    files = reproduction_files(found, content)
    html = Page()
    html.feed(str(files["report.html"]))
    assert html.ids >= {row.claim.name for row in found.rows}
    assert set(html.links) == {f"#{row.claim.name}" for row in found.rows}
    assert all(source.startswith("data:image/svg+xml") for source in html.sources)
    assert "4 claims: 1 agree, 2 disagree, 1 not testable" in html.text
    assert "The constant is <wrong>." in html.text
    assert "No reason is known: treat it as a bug" in html.text
    assert "Nobody could." in html.text
    assert set(files) == {
        *("report.html", "claims.json", "claims.csv", "figures/test-near.svg", "figures/test-near.png"),
    }
    assert str(files["claims.csv"]).splitlines()[1].startswith("test-near,Theorem 0,a number,near,2,2.0,")
    assert [row.claim.name for row in found.unexplained] == ["test-open"]


def test_the_command(tmp_path: Path) -> None:
    name = "definition-1-explore-then-commit"
    arguments = ["reproduce", "--quick", "--only", name, "--out", str(tmp_path)]
    (tmp_path / "figures").mkdir()
    stale = tmp_path / "figures" / f"{name}.png"
    stale.write_text("of an earlier run")
    done = banditto(*arguments)
    assert done.returncode == 0
    assert "1 claims: 1 agree" in done.stdout
    assert done.stderr.startswith("banditto: 1 claim, about ")
    assert not stale.exists()
    assert (tmp_path / "report.html").stat().st_size > 1000
    done = banditto(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["name"] for row in json.loads(done.stdout)["claims"]] == [name]
