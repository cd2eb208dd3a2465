"""Every result prints its table, shows itself in a notebook, draws itself, and turns into plain data and a frame.

The list of results is not written down here: it is every class that a public function or method of banditto returns.
A class that is returned, has plain data and is no `Result` is named in `OTHERS`, with the reason.
"""

from __future__ import annotations

import inspect
import json
import math
import pkgutil
import re
import sys
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

import banditto as bd
from banditto.cli.app import run
from banditto.core.errors import InvalidArgument, MissingExtra
from banditto.core.results import Result
from banditto.measure.study_file import StudyFile
from banditto.measure.study_of import study_of
from banditto.policies.policy import AnyPolicy
from banditto.report.colours import ARM_COLOURS, POLICY_COLOURS
from banditto.report.comparison_report import raw_files
from banditto.report.style import ShownFigure

# classes that are returned and are no results
OTHERS = {"Answer": "tickets to hand out, which a caller goes through one by one"}
EVIL = '<b>"x" & $y$</b>'


@cache
def classes() -> dict[str, type]:
    """Every class of banditto by its name; no two share one."""
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(bd.__path__, "banditto."):
        if not module.name.endswith("__main__") and "gpu" not in module.name:
            members = vars(import_module(module.name)).values()
            found |= {one.__name__: one for one in members if inspect.isclass(one) and one.__module__ == module.name}
    return found


@cache
def returned() -> frozenset[type]:
    """Every class of banditto that a public function, or a public method of a public class, says it returns."""
    things: list[Any] = []
    for name in bd.__all__:
        thing = getattr(bd, name)
        things.append(thing)
        if inspect.isclass(thing):
            things += [method for key, method in inspect.getmembers(thing, callable) if not key.startswith("_")]
    said = [str(getattr(thing, "__annotations__", {}).get("return", "")) for thing in things]
    words = {word for text in said for word in re.findall(r"[A-Za-z_]+", text)}
    return frozenset(classes()[word] for word in words & set(classes()))


@cache
def public_results() -> frozenset[type]:
    """Every result that somebody gets from a public name, or that has one."""
    public = {thing for name in bd.__all__ if inspect.isclass(thing := getattr(bd, name))}
    return frozenset(one for one in public | returned() if issubclass(one, Result) and one is not Result)


def arms(rng: np.random.Generator) -> dict[str, Callable[[], float]]:
    return {EVIL: lambda: float(rng.random() < 0.9), "new": lambda: float(rng.random() < 0.2)}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """One result of each class, with a name in it that must be escaped, wherever users choose names."""
    rng = np.random.default_rng(7)
    policy, world = bd.ExploreThenCommit(arms=2, horizon=10**4, rho=0.4, gap=0.5), bd.Bernoulli([0.9, 0.3])
    url = f"sqlite:///{tmp_path_factory.mktemp('results')}/trial.db"
    registration = bd.Registration.of(policy.protocol(seed=1), [EVIL, "new"])
    planned = policy.pulls
    rivals: dict[str, AnyPolicy] = {EVIL: policy, "ucb": bd.UCB1()}
    for name, totals in (("here", (planned, 0)), ("there", (0, planned))):
        with bd.Experiment.open(url, name, registration) as trial:
            trial.tell_totals(1, {0: (planned, totals[0]), 1: (planned, totals[1])})
            status = trial.status()
    log = bd.RewardLog.of([(EVIL, 1), ("new", 0), (EVIL, 1), ("new", 1)] * 20)
    selection = bd.select(arms(rng), gap=0.3, seed=1)
    found = [
        bd.certify(policy, world, pairs=50),
        bd.compare(rivals, world, pairs=20, rounds=10**4),
        bd.attack(policy, pairs_budget=1000),
        bd.calibrate(policy, pairs_budget=1000),
        bd.plan(arms=2, gap=0.5, rho=0.3, policy="explore-then-commit"),
        bd.lower_bound(arms=2, gap=0.05, rho=0.1),
        bd.replay(policy, log),
        log,
        bd.reproduce(quick=True, only="proposition-2-radius"),
        bd.analyse(selection),
        selection,
        policy.guarantee(),
        policy.describe(),
        policy.protocol(seed=1),
        bd.g_optimal_design([[1, 0], [0, 1], [0.6, 0.6]]),
        bd.verify(url, "here"),
        bd.replicate(f"{url}#here", f"{url}#there"),
        bd.watch_pair(policy, world),
        status,
    ]
    return {type(one).__name__: one for one in found}


def test_no_result_is_forgotten(results: dict[str, Result]) -> None:
    """A new class that a public function returns is a result, or has a reason not to be; and it is tested below."""
    assert {cls.__name__ for cls in public_results()} == set(results)
    public = {getattr(bd, name) for name in bd.__all__}
    made = {cls for cls in returned() - public if hasattr(cls, "to_dict") and not getattr(cls, "_is_protocol", False)}
    others = {cls.__name__ for cls in made if not issubclass(cls, Result)}
    assert others == set(OTHERS)


def names() -> list[str]:
    return sorted(cls.__name__ for cls in public_results())


@pytest.mark.parametrize("name", names())
def test_print_shows_the_table_and_repr_is_short(name: str, results: dict[str, Result]) -> None:
    found = results[name]
    assert str(found) == found.table()
    assert len(str(found).splitlines()) >= 2
    assert repr(found).startswith(f"{name}(")
    assert "\n" not in repr(found)
    assert len(repr(found)) < 250
    assert "object at 0x" not in repr(found) + str(found)


@pytest.mark.parametrize("name", names())
def test_plain_data_is_json(name: str, results: dict[str, Result]) -> None:
    found: Any = results[name]  # each class has a type of its own for this
    content = found.to_dict()
    assert content
    assert json.loads(json.dumps(content, allow_nan=False)) == content


@pytest.mark.parametrize("name", names())
def test_a_frame_has_a_row_for_each_record(name: str, results: dict[str, Result]) -> None:
    pandas = pytest.importorskip("pandas")
    found = results[name]
    frame = found.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    records = list(found.records())
    assert len(frame) == len(records) >= 1
    assert list(frame.columns) == list(records[0])
    assert all(list(record) == list(records[0]) for record in records)


@pytest.mark.parametrize("name", names())
def test_without_pandas_one_line_says_what_to_install(
    name: str, results: dict[str, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"banditto\[data\]"):
        results[name].to_frame()


class Notebook(HTMLParser):
    """Reads HTML as a notebook would, and refuses what is not well-formed or not self-contained."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "iframe", "img", "b"), tag
        assert not {key for key, _ in attrs} & {"src", "href", "onclick", "onload"}
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", names())
def test_a_notebook_shows_it(name: str, results: dict[str, Result]) -> None:
    html = results[name]._repr_html_()
    reader = Notebook()
    reader.feed(html)
    reader.close()
    assert not reader.open
    assert {"table", "tr", "td"} <= reader.seen
    assert "<b>" not in html
    if EVIL in str(results[name]):
        assert EVIL in reader.text


@pytest.mark.parametrize("name", names())
def test_it_draws_itself_on_a_new_figure_or_into_axes(name: str, results: dict[str, Result]) -> None:
    found = results[name]
    before = dict(mpl.rcParams)
    figure = found.plot()
    assert isinstance(figure, Figure)
    assert figure.axes
    assert any(axes.has_data() or axes.texts for axes in figure.axes)
    assert isinstance(figure, ShownFigure)
    png, size = figure._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert 300 < size["width"] < 1000
    own = Figure().subplots()
    assert found.plot(ax=own) is own
    assert isinstance(own, Axes)
    assert own.has_data() or own.texts
    assert dict(mpl.rcParams) == before
    with pytest.raises(InvalidArgument, match=r"^ax: got str, allowed: Matplotlib axes"):
        found.plot(ax="here")


@pytest.mark.parametrize("name", names())
def test_no_text_of_a_picture_is_cut_off_or_lies_on_another(name: str, results: dict[str, Result]) -> None:
    figure = results[name].plot()
    figure.canvas.draw()
    page = figure.bbox
    for axes in figure.axes:
        ticks = [label for label in axes.get_yticklabels() if label.get_text() and _is_beside(axes, label)]
        labels = [axes.xaxis.label, axes.yaxis.label, *ticks]
        titles = [text for text in axes.get_children() if isinstance(text, Text) and text.get_text()]
        boxes = [label.get_window_extent() for label in [*labels, *titles] if label.get_text() and label.get_visible()]
        for box in boxes:
            assert box.x0 >= page.x0 - 1
            assert box.x1 <= page.x1 + 1
            assert box.y0 >= page.y0 - 1
            assert box.y1 <= page.y1 + 1
        rows = sorted((label.get_window_extent() for label in ticks), key=lambda box: float(box.y0))
        assert all(low.y1 <= high.y0 + 2 for low, high in pairwise(rows))


def _is_beside(axes: Axes, label: Text) -> bool:
    """Say whether a number stands beside the axes: others are never drawn."""
    box = label.get_window_extent()
    return bool(axes.bbox.y0 - 1 <= (box.y0 + box.y1) / 2 <= axes.bbox.y1 + 1)


def test_policies_and_arms_share_no_colour() -> None:
    assert not {colour.upper() for colours in POLICY_COLOURS for colour in colours} & {*map(str.upper, ARM_COLOURS)}


# -- what is drawn ----------------------------------------------------------------------------------------------------


def line(axes: Axes, label: str) -> Any:
    return next(one for one in axes.get_lines() if str(one.get_label()).startswith(label))


def test_a_certificate_shows_the_share_that_differs_and_what_is_allowed(results: dict[str, Result]) -> None:
    found = results["Certificate"]
    assert isinstance(found, bd.Certificate)
    (axes,) = found.plot().axes
    parted = line(axes, "pairs that differ").get_ydata()
    assert parted[-1] == pytest.approx(found.mismatches / found.pairs)
    assert line(axes, "allowed").get_ydata()[0] == found.rho


def test_a_comparison_shows_agreement_against_regret_and_every_figure_of_the_report(results: dict[str, Result]) -> None:
    found = results["Comparison"]
    assert isinstance(found, bd.Comparison)
    (axes,) = found.plot().axes
    points = [one for one in axes.get_lines() if one.get_marker() not in ("None", None, "")]
    assert [float(one.get_xdata()[0]) for one in points] == [row.certificate.agreement for row in found.entrants]
    shares = [row.certificate.share_of_random_play for row in found.entrants]
    assert [float(one.get_ydata()[0]) for one in points] == shares
    for kind in ("agreement", "regret", "ribbons", "divergence", "guarantee"):
        assert found.plot(kind).axes
        with pytest.raises(InvalidArgument, match='kind="price"'):
            found.plot(kind, ax=Figure().subplots())
    unknown: Any = "pie"
    with pytest.raises(InvalidArgument, match="kind: got pie, allowed: price, agreement"):
        found.plot(unknown)


def test_a_figure_that_a_comparison_has_not_is_named() -> None:
    equal = bd.compare([bd.UCB1()], bd.Bernoulli([0.5, 0.5]), horizon=100, rho=0.1, pairs=4, rounds=10**4)
    assert equal.plot().axes
    with pytest.raises(InvalidArgument, match="arms that are not all equally good"):
        equal.plot("regret")
    with pytest.raises(InvalidArgument, match="a policy with a guarantee"):
        equal.plot("guarantee")


def test_an_attack_keeps_what_it_tried(results: dict[str, Result]) -> None:
    found = results["Attack"]
    assert isinstance(found, bd.Attack)
    assert sum(one.pairs for one in found.tried) == found.pairs_searched
    assert len(found.tried) == found.instances_tried
    frame = found.records()
    assert frame[-1]["fresh"]
    assert frame[-1]["differ"] == found.worst.differ


def test_a_calibration_keeps_its_steps(results: dict[str, Result]) -> None:
    found = results["Calibration"]
    assert isinstance(found, bd.Calibration)
    assert len(found.steps) == found.attacks
    passed = [step for step in found.steps if step.passed]
    assert all(step.interval[1] <= found.rho for step in passed)
    assert found.nominal_rho in {step.nominal_rho for step in passed} | {found.rho}


def test_a_lower_bound_is_drawn_over_rho_or_over_the_horizon() -> None:
    over_rho = line(bd.lower_bound(arms=2, gap=0.05, rho=0.1).plot().axes[0], "all arms")
    assert all(np.diff(over_rho.get_ydata()) <= 0)
    over_time = line(bd.lai_robbins(arms=3, gap=0.1, horizon=10**6).plot().axes[0], "all arms")
    assert all(np.diff(over_time.get_ydata()) > 0)
    bare = bd.LowerBound(per_arm=1, total=2, statement="")
    with pytest.raises(InvalidArgument, match="a bound that `lower_bound`"):
        bare.plot()


def test_the_terms_of_a_guarantee_add_up_to_its_total(results: dict[str, Result]) -> None:
    found = results["Guarantee"]
    assert isinstance(found, bd.Guarantee)
    bars = [patch for patch in found.plot().axes[0].patches if patch.get_width() > 0]
    assert bars[-1].get_width() == pytest.approx(found.total)
    assert bars[-2].get_x() + bars[-2].get_width() == pytest.approx(found.total)


@pytest.mark.parametrize(
    "policy",
    [
        bd.CertifiedElimination(arms=3, horizon=10**5, rho=0.3),
        bd.OneCut(arms=2, horizon=10**4, rho=0.3, gap=0.3),
        bd.EarlyCut(arms=2, horizon=10**4, rho=0.3, gap=0.3),
        bd.MeanRounding(arms=2, horizon=10**5, rho=0.5),
        bd.CertifiedLinear(actions=[[1, 0], [0, 1], [0.6, 0.6]], horizon=10**5, rho=0.5),
    ],
    ids=lambda policy: str(policy.name),
)
def test_schedules_of_all_kinds_are_drawn(policy: Any) -> None:
    described = policy.describe()
    assert described.plot().axes[0].has_data()
    assert len(described.records()) == len(described.rows)
    assert policy.protocol(seed=1).plot().axes[0].has_data()
    assert policy.guarantee().plot().axes[0].has_data()


def test_a_replication_shows_where_runs_part_and_what_each_saw(results: dict[str, Result]) -> None:
    found: Any = results["Replication"]
    assert not found.same
    assert len(found.plot().axes) == 3
    assert [record["arm"] for record in found.records()] == [EVIL, "new"]
    assert math.isclose(found.records()[0]["mean_1"], 1.0)
    assert "The runs differ after batch 1." in str(found)


# -- the report -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_comparison_writes_the_report_of_the_command_line(tmp_path: Path) -> None:
    flags = ["--means", "0.9,0.5", "--policies", "explore-then-commit,ucb1", "--gap", "0.4", "--horizon", "10000"]
    more = ["--rho", "0.2", "--pairs", "20", "--rounds", "10000", "--seed", "3", "--quiet"]
    assert run(["compare", *flags, *more, "--out", str(tmp_path / "typed")]) == 0
    policies: list[AnyPolicy] = [bd.ExploreThenCommit(arms=2, horizon=10**4, rho=0.2, gap=0.4), bd.UCB1()]
    compared = bd.compare(policies, bd.Bernoulli([0.9, 0.5]), pairs=20, rounds=10**4, seed=3)
    assert compared.report(tmp_path / "written", title="Two buttons") == tmp_path / "written" / "report.html"

    def files(folder: str) -> set[str]:
        found = (path.relative_to(tmp_path / folder) for path in (tmp_path / folder).rglob("*") if path.is_file())
        return {str(path) for path in found if path.parts[0] != "pairs"}

    assert files("typed") == files("written")
    for name in ("results.csv", "curves.csv", "divergence.csv", "figures/agreement.svg", "figures/regret.svg"):
        assert (tmp_path / "typed" / name).read_text() == (tmp_path / "written" / name).read_text(), name
    assert "<h1>Two buttons</h1>" in (tmp_path / "written" / "report.html").read_text()


ACTIONS = bd.FiniteActions([[1, 0], [0, 1]])
OWN_CUT = bd.OneCut(arms=2, horizon=1000, rho=0.3, gap=0.3, power=0.9)


@pytest.mark.parametrize(
    ("policies", "world"),
    [
        ({"mine": OWN_CUT, "ucb": bd.UCB1()}, bd.Bernoulli([0.9, 0.5])),
        ([bd.UCB1(sigma=0.3)], bd.Gaussian([0.9, 0.5], 0.3)),
        ([bd.UCB1()], bd.Beta([0.9, 0.5], 3.0)),
        ([bd.UCB1()], bd.Discrete([([0, 1], [0.5, 0.5]), ([0, 0.5], [0.5, 0.5])])),
        ([bd.UCB1()], bd.Resampled(bd.RewardLog.of({"a": [0, 1, 1], "b": [0, 0, 1]}))),
        ([bd.LinUCB(actions=ACTIONS)], bd.LinearBernoulli([0.5, 0.25], ACTIONS)),
    ],
    ids=["bernoulli", "gaussian", "beta", "discrete", "log", "linear"],
)
def test_the_study_of_a_report_plays_the_same_again(policies: Any, world: Any, tmp_path: Path) -> None:
    compared = bd.compare(policies, world, horizon=50, rho=0.3, pairs=4, rounds=10**4)
    for name, content in raw_files(compared, study_of(compared), {}).items():
        assert isinstance(content, str)
        (tmp_path / name).write_text(content)
    study = StudyFile.load(str(tmp_path / "study.toml"))
    built = study.built()
    shared: dict[str, Any] = {
        key: getattr(study, key) for key in ("horizon", "rho", "pairs", "rounds", "seed", "noise_seed", "confidence")
    }
    again = bd.compare(built.policies, built.environment, labels=built.labels, **shared)
    assert again.records() == compared.records()


def test_there_is_no_study_of_what_a_study_cannot_name() -> None:
    world = bd.Bernoulli([0.9, 0.5])
    shared: dict[str, Any] = {"horizon": 50, "rho": 0.3, "pairs": 4, "rounds": 10**4}
    assert study_of(bd.compare([bd.UCB1()], world, **shared)) is not None
    assert study_of(bd.compare([bd.UCB1(sigma=0.3)], world, **shared)) is None  # a sigma of its own
    two = [bd.OneCut(arms=2, horizon=length, rho=0.3, gap=0.3) for length in (1000, 2000)]
    assert study_of(bd.compare({"short": two[0], "long": two[1]}, world, pairs=4)) is None  # two horizons


@pytest.mark.slow
def test_a_report_replaces_nobody_elses_files(results: dict[str, Result], tmp_path: Path) -> None:
    found = results["Comparison"]
    assert isinstance(found, bd.Comparison)
    (tmp_path / "report.html").write_text("my notes")
    with pytest.raises(InvalidArgument, match=r"^folder: got .*overwrite=True replaces it"):
        found.report(tmp_path)
    assert found.report(tmp_path, overwrite=True).read_text() != "my notes"
    page = (tmp_path / "report.html").read_text()
    assert EVIL not in page
    assert "No study file can name these policies" not in page
    nowhere: tuple[Any, ...] = (None, 3, "")
    for folder in nowhere:
        with pytest.raises(InvalidArgument, match="^folder: "):
            found.report(folder)
    with pytest.raises(InvalidArgument, match="^title: "):
        found.report(tmp_path, title="")
