"""The report: one file that opens offline, names escaped, figures not empty, all of it rebuilt by its study."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

import banditto as bd
from banditto.core.provenance import provenance
from banditto.measure.comparison import Comparison, least_explained
from banditto.measure.study_file import StudyFile
from banditto.report import comparison_report
from banditto.report.colours import OTHERS
from banditto.report.comparison_report import drawn_files, raw_files
from banditto.report.figures import divergence_figure, guarantee_figure
from banditto.report.ribbons import arm_colours, ribbon_figure
from banditto.report.style import LOOKS, drawn_in
from tests.commands import banditto

pytestmark = pytest.mark.slow

NASTY = "<script>alert(\"x\")</script> & $x$ 'q'"


QUICK = ["compare", "--means", "0.9,0.8", "--horizon", "1e5", "--rho", "0.2", "--pairs", "3"]


def made(study: StudyFile, **options: Any) -> tuple[Comparison, dict[str, str | bytes]]:
    built = study.built()
    comparison = bd.compare(
        built.policies,
        built.environment,
        labels=built.labels,
        horizon=study.horizon,
        rho=study.rho,
        curves=True,
        **{"pairs": study.pairs or 1000, "rounds": study.rounds or 10**5, **options},
    )
    content = {"title": study.title, **comparison.to_dict(), "warnings": ["a <warning>"]} | provenance()
    return comparison, raw_files(comparison, study, content) | drawn_files(comparison, study, content)


STUDY = StudyFile.of(
    {
        "title": NASTY,
        "means": [0.3, 0.9, 0.6],
        "horizon": 10**7,
        "rho": 0.2,
        "pairs": 60,
        "rounds": 10**5,
        "policies": [
            {"policy": "random-threshold", "label": NASTY},
            "random-threshold:paper",
            {"policy": "explore-then-commit", "gap": 0.3},
            {"policy": "batched-elimination", "label": "_under $x$ and $y$"},
            "ucb1",
        ],
    }
)


@pytest.fixture(scope="module")
def report() -> tuple[Comparison, dict[str, str | bytes]]:
    return made(STUDY)


class Elements(HTMLParser):
    """Every tag with its attributes, and whether they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "source", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(files: dict[str, str | bytes]) -> Elements:
    elements = Elements()
    page = files["report.html"]
    assert isinstance(page, str)
    elements.feed(page)
    assert elements.open == []
    return elements


@pytest.mark.long
def test_the_page_says_what_nobody_could_do_with_less() -> None:
    study = {"means": [0.5, 0.6], "horizon": 10**6, "rho": 0.2, "pairs": 20, "policies": ["certified-elimination"]}
    comparison, files = made(StudyFile.of(study))
    (sentence,) = least_explained(comparison)
    assert f"<p>{sentence}</p>" in str(files["report.html"])
    assert "least_regret" in str(files["results.csv"])


def test_the_files(report: tuple[Comparison, dict[str, str | bytes]]) -> None:
    names = set(report[1])
    figures = {
        f"figures/{f}.{k}"
        for f in ("agreement", "regret", "ribbons", "divergence", "guarantee")
        for k in ("png", "svg")
    }
    raw = {"report.html", "results.json", "results.csv", "curves.csv", "divergence.csv", "study.toml"}
    assert names == figures | raw


def test_the_page_is_self_contained_and_runs_nothing(report: tuple[Comparison, dict[str, str | bytes]]) -> None:
    elements = parsed(report[1])
    assert {tag for tag, _ in elements.tags}.isdisjoint({"script", "link", "iframe", "object", "form", "a"})
    for tag, attributes in elements.tags:
        for name in ("src", "srcset"):
            if name in attributes:
                assert str(attributes[name]).startswith("data:image/svg+xml;base64,"), tag
        assert not any(name.startswith("on") for name in attributes)
    assert "http" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", str(report[1]["report.html"]))


def test_names_are_escaped_in_the_page_and_in_figures(report: tuple[Comparison, dict[str, str | bytes]]) -> None:
    files = report[1]
    page = str(files["report.html"])
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "a &lt;warning&gt;" in page
    elements = parsed(files)
    assert elements.text.count(NASTY) >= 3  # title, heading, rows
    shortened = NASTY[:27] + "…"
    for name, content in files.items():
        if name.endswith(".svg"):
            assert isinstance(content, bytes)
            tree = ET.fromstring(content)
            assert not [element for element in tree.iter() if element.tag.endswith("script")]
    drawn = "".join(ET.fromstring(files["figures/agreement.svg"]).itertext())
    assert shortened in drawn
    assert " _under $x$ and $y$" in drawn  # as it was written: dollars start no formula, and it is not left out


def test_every_figure_has_four_looks_and_a_description(report: tuple[Comparison, dict[str, str | bytes]]) -> None:
    tags = parsed(report[1]).tags
    images = [attributes for tag, attributes in tags if tag == "img"]
    sources = [attributes for tag, attributes in tags if tag == "source"]
    assert len(images) == 5
    assert len(sources) == 15
    assert all(len(str(image["alt"])) > 20 for image in images)
    widths = set()
    for attributes in (*images, *sources):
        data = str(attributes.get("src") or attributes.get("srcset"))
        widths.add(ET.fromstring(b64decode(data.partition(",")[2])).attrib["width"])
    assert widths == {"648pt", "302.4pt"}


@pytest.mark.parametrize("name", ["agreement", "regret", "ribbons", "divergence", "guarantee"])
def test_figures_are_not_empty(name: str, report: tuple[Comparison, dict[str, str | bytes]], tmp_path: Path) -> None:
    content = report[1][f"figures/{name}.png"]
    assert isinstance(content, bytes)
    (tmp_path / "x.png").write_bytes(content)
    pixels = imread(tmp_path / "x.png")[..., :3]
    inked = np.any(pixels < 0.9, axis=-1)
    assert 0.002 < inked.mean() < 0.9
    # nothing runs over the edges
    assert not inked[0].any()
    assert not inked[-1].any()
    assert not inked[:, 0].any()
    assert not inked[:, -1].any()


def test_raw_results(report: tuple[Comparison, dict[str, str | bytes]]) -> None:
    comparison, files = report
    rows = list(csv.DictReader(str(files["results.csv"]).splitlines()))
    assert [row["label"] for row in rows] == [row.label for row in comparison.entrants]
    assert float(rows[0]["regret"]) == comparison.entrants[0].certificate.regret.mean
    content = json.loads(str(files["results.json"]))
    assert [row["digest"] for row in content["policies"]] == [row["digest"] for row in rows]
    curves = list(csv.DictReader(str(files["curves.csv"]).splitlines()))
    last = [row for row in curves if row["label"] == "ucb1"][-1]
    assert int(last["pulls"]) == comparison.entrants[4].certificate.horizon
    parted = list(csv.DictReader(str(files["divergence.csv"]).splitlines()))
    assert sum(int(row["pairs"]) for row in parted) == sum(row.certificate.mismatches for row in comparison.entrants)


@pytest.mark.long
def test_the_study_rebuilds_the_same_report(report: tuple[Comparison, dict[str, str | bytes]], tmp_path: Path) -> None:
    """By the command that the page prints, in another process."""
    assert "banditto compare study.toml --out report" in parsed(report[1]).text
    (tmp_path / "study.toml").write_text(str(report[1]["study.toml"]), encoding="utf-8")
    words = [sys.executable, "-m", "banditto", "compare", "study.toml", "--out", "report"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=600)
    assert "banditto: wrote report/report.html" in done.stderr
    for name in ("results.csv", "curves.csv", "divergence.csv", "study.toml"):
        assert (tmp_path / "report" / name).read_text(encoding="utf-8") == report[1][name]
    for name in ("agreement", "regret", "ribbons", "divergence", "guarantee"):
        assert (tmp_path / "report" / "figures" / f"{name}.svg").read_bytes() == report[1][f"figures/{name}.svg"]


@pytest.mark.long
@pytest.mark.usefixtures("one_look")
def test_a_file_of_arms_travels_with_the_report(tmp_path: Path) -> None:
    arms = [{"values": [0, 0.5, 1], "probabilities": p} for p in ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2])]
    (tmp_path / "own.json").write_text(json.dumps({"arms": arms}))
    base = {"environment": f"discrete:{tmp_path / 'own.json'}", "horizon": 10**6, "rho": 0.3, "pairs": 20}
    comparison, files = made(StudyFile.of({**base, "policies": ["random-threshold"]}))
    assert 'environment = "discrete:arms.json"' in str(files["study.toml"])
    (tmp_path / "arms.json").write_text(str(files["arms.json"]))
    assert bd.Discrete.load(str(tmp_path / "arms.json")) == comparison.environment


@pytest.fixture
def one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw every figure once, for tests of which figures there are."""
    monkeypatch.setattr(comparison_report, "LOOKS", {("light", "wide"): LOOKS["light", "wide"]})


@pytest.mark.usefixtures("one_look")
def test_ordinary_policies_alone_have_no_guarantees_to_draw() -> None:
    _, files = made(StudyFile.of({"means": [0.5, 0.5], "horizon": 10**5, "rho": 0.1, "pairs": 3, "policies": ["ucb1"]}))
    assert "figures/guarantee.png" not in files
    assert "What is proved?" not in str(files["report.html"])


@pytest.mark.usefixtures("one_look")
def test_equal_arms_have_no_regret_to_draw() -> None:
    _, files = made(StudyFile.of({"means": [0.5, 0.5], "horizon": 10**5, "rho": 0.1, "pairs": 3, "policies": ["moss"]}))
    assert "figures/regret.png" not in files
    assert "nobody has any regret" in str(files["report.html"])
    assert "Policies that choose round by round" not in str(files["report.html"])


def test_no_two_arms_of_the_legend_look_alike() -> None:
    means = np.linspace(0.1, 0.86, 20).tolist()
    policy = bd.BatchedElimination(arms=20, horizon=10**6)
    view = bd.watch_pair(policy, bd.Bernoulli(means))
    colours = arm_colours([("x", view)], 20)
    assert len(set(colours)) == 8
    own = [colour for colour in colours if colour != OTHERS]
    assert len(own) == len(set(own)) == 7
    assert colours[int(view.first[-1])] != OTHERS  # the arm that is played in the end
    texts = [text.get_text() for text in ribbon_figure([("x", view)], means).legends[0].get_texts()]
    assert "all other arms" in texts
    assert f"arm {view.first[-1] + 1} (mean {means[view.first[-1]]:.4g})" in texts


def test_ctrl_c_while_drawing_keeps_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    from banditto.cli import main

    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    (tmp_path / "report.html").write_text('<meta name="generator" content="banditto"> of an earlier run')
    monkeypatch.setattr(comparison_report, "drawn_files", interrupted)
    with pytest.raises(SystemExit) as stop:
        main([*QUICK, "--policies", "moss", "--out", str(tmp_path)])
    out, err = capfd.readouterr()
    assert stop.value.code == 130
    assert [line for line in out.splitlines() if line.startswith("moss")]
    assert "all results are there, but no report" in err
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
        *("curves.csv", "divergence.csv", "results.csv", "results.json", "study.toml"),
    ]


@pytest.mark.long
@pytest.mark.usefixtures("one_look")
def test_files_of_an_earlier_report_go(tmp_path: Path) -> None:
    base = ["compare", "--means", "0.9,0.8", "--horizon", "1e5", "--rho", "0.2", "--pairs", "3"]
    for policies in ("random-threshold,moss", "moss"):
        assert banditto(*base, "--policies", policies, "--out", "x", cwd=tmp_path).returncode == 0
        assert (tmp_path / "x" / "figures" / "guarantee.png").exists() == (policies != "moss")
    (tmp_path / "y").mkdir()
    (tmp_path / "y" / "figures").write_text("in the way")
    done = banditto(*base, "--policies", "moss", "--out", "y", cwd=tmp_path)
    assert done.returncode == 2
    assert "--out: got y, allowed: a directory that can be written (figures is a file)" in done.stderr


def test_axes_say_what_they_show(report: tuple[Comparison, dict[str, str | bytes]]) -> None:
    comparison = report[0]
    for look in LOOKS.values():
        with drawn_in(look):
            assert divergence_figure(comparison, look).axes[0].get_xscale() == "log"
            figure = guarantee_figure(comparison, look)
        assert figure is not None
        texts = [text.get_text() for text in figure.axes[0].texts]
        assert any("times rho" in text for text in texts)  # the paper's constants go over the edge, and say so
