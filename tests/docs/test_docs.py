"""Documentation that cannot drift: names exist, links lead somewhere, examples run, numbers are today's."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import tomllib
from decimal import Decimal
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from examples.real_data import plans
from scipy.special import bdtr

import banditto as bd
from banditto import policies, testing
from banditto.chance.coins import Coins
from banditto.core.exact import first_true
from banditto.measure.study_file import StudyFile
from banditto.numbers import confidence_sequence, intervals
from banditto.policies import baselines
from banditto.policies.shared import confidence
from banditto.problems import environments
from docs import ideas
from tests.commands import banditto, python

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# pages whose examples run in make test
FIRST = {"README.md", "add-a-policy.md", "certify.md", "index.md", "limits.md", "live.md"}
# `module.name`, in backticks; what ends like a file is one
NAMED = re.compile(
    r"`(?:[a-z_]+\.)*([a-z_]+)\.(?!(?:py|mjs|jsonl?|md|toml|csv|html)\b)"
    r"([A-Za-z_]+)(?:[.(][^`]*)?`"
)
# what pages call an object of, which is also the name of a module
OBJECTS = {"certify", "design", "environment", "plan", "policies", "policy", "protocol", "registration", "replay"}
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def text_of(page: Path) -> str:
    """A page without the pages that it shows, between four backticks: those are about files that are not there yet."""
    return re.sub(r"^````.*?^````$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_the_text_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for module, name in re.findall(r"`(confidence|intervals|confidence_sequence|Coins)\.(?!py\b)(\w+)", text):
        places = {
            "confidence": confidence,
            "intervals": intervals,
            "confidence_sequence": confidence_sequence,
            "Coins": Coins,
        }
        assert hasattr(places[module], name), name


def test_every_quantity_of_the_proof_is_on_its_page() -> None:
    text = (ROOT / "docs" / "random-threshold.md").read_text(encoding="utf-8")
    for name in ("log_factor", "width", "ladder", "gap_noise", "undecided_batches", "flip_probability"):
        assert f"`confidence.{name}`" in text
    assert "`confidence.comparison_rounding`" in text
    assert "`confidence.threshold_blowup`" in text
    text = (ROOT / "docs" / "certified-elimination.md").read_text(encoding="utf-8")
    for name in ("wrong_lead", "batch_noise", "overshoot", "choice_scale", "comparison_rounding"):
        assert f"`confidence.{name}`" in text
    text = (ROOT / "docs" / "mean-rounding.md").read_text(encoding="utf-8")
    for name in ("mean_noise", "comparison_rounding", "ladder"):
        assert f"`confidence.{name}`" in text


GLOSSARY = re.findall(
    r"^\| ([a-z ]+) \| (.+?) \| (.+) \|$",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Glossary\n")[1].split("\n## ")[0],
    flags=re.MULTILINE,
)[1:]


def test_the_glossary_has_one_meaning_for_each_noun() -> None:
    nouns = [noun for noun, _, _ in GLOSSARY]
    assert nouns == sorted(set(nouns))
    wanted = "schedule plan allocation design problem run comparison execution pair block pool replicate coin noise cut"
    wanted += " window batch horizon arm action protocol registration digest guarantee certificate attack claim ledger"
    assert {*wanted.split(), "ticket", "event", "fold", "player", "spec", "action set"} <= set(nouns)


def test_names_in_the_glossary_exist() -> None:
    """A class, a function, or an attribute of that name is somewhere in the package."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "banditto").rglob("*.py"))
    for noun, _, place in GLOSSARY:
        for name in re.findall(r"`([A-Za-z_.]+)`", place):
            for part in name.split("."):
                assert re.search(rf"^\s*(class|def) {part}\b|^    {part}\b.*:", text, flags=re.MULTILINE), (noun, name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)\)", text_of(page)):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "page",
    [page if page.name in FIRST else pytest.param(page, marks=pytest.mark.long) for page in PAGES],
    ids=lambda page: page.name,
)
def test_python_examples_run(page: Path, tmp_path: Path) -> None:
    """Elsewhere, so that what an example writes is not left here."""
    for code in re.findall(r"```python\n(.*?)```", text_of(page), flags=re.DOTALL):
        done = python(code, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("README.md", marks=pytest.mark.long),
        "docs/index.md",
        pytest.param("docs/attack.md", marks=pytest.mark.long),
        "docs/certify.md",
        pytest.param("docs/compare.md", marks=pytest.mark.long),
        pytest.param("docs/cost.md", marks=pytest.mark.long),
        "docs/design.md",
        "docs/limits.md",
        "docs/real-data.md",
    ],
)
def test_command_lines_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "arms.csv").write_text("0.9,0.1\n0.2,0.7\n-0.5,0.5\n")
    plans().to_csv(tmp_path / "plans.csv", index=False)
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for kind, block in blocks if not kind for line in block.splitlines() if line.startswith("banditto ")]
    assert len(lines) >= 3
    for line in lines:
        # studies are named from the root; what is written goes elsewhere
        words = [str(ROOT / word) if word.startswith("examples/") else word for word in shlex.split(line)]
        done = banditto(*words[1:], cwd=tmp_path)
        assert done.returncode in (0, 3), line
        assert "INCONCLUSIVE" not in done.stdout, line  # what a page shows settles its question


def test_the_attack_page_shows_what_is_printed() -> None:
    text = (ROOT / "docs" / "attack.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(.*?)\n```", text, flags=re.DOTALL)
    policy = bd.CertifiedElimination(arms=3, horizon=10**6, rho=0.1)
    assert bd.attack(policy, seed=1).table() == shown


def test_the_page_on_real_data_shows_what_is_printed() -> None:
    text = (ROOT / "docs" / "real-data.md").read_text(encoding="utf-8")
    _, compared, split, dry = re.findall(r"```text\n(.*?)\n```", text, flags=re.DOTALL)
    frame = plans()
    log = bd.RewardLog.of(zip(frame["plan"], frame["visited"], strict=True))
    world = bd.Resampled(log)
    patient = bd.CertifiedElimination(arms=4, horizon=10**7, rho=0.1)
    rows = bd.compare([patient, bd.BatchedElimination(arms=4, horizon=10**7), bd.UCB1()], world, rounds=2 * 10**6)
    assert f"{rows.table()}\n\n{world.table()}" == compared
    policy = bd.ExploreThenCommit(arms=4, horizon=10**5, rho=0.1, gap=0.08)
    first, second = (bd.replay(policy, half) for half in log.split())
    assert first.against(second) == (10**5, None)
    assert split.startswith(f"{first.table()}\n\n{second.table()}\n\n")
    assert bd.replay(patient, log).table() == dry
    labs = [bd.replay(bd.UCB1(), half, horizon=log.rows) for half in log.split()]
    assert labs[0].against(labs[1]).parted == 5
    assert (log.rows, policy.pulls) == (14_941, 640)
    paid = log.rewards[log.arms.index("95%")]
    assert (round(sum(paid[:640]) / 640, 2), round(sum(paid[-640:]) / 640, 2)) == (0.65, 0.35)
    gaps = sorted(world.means)
    assert round(gaps[-1] - gaps[-2], 3) == 0.086


def test_the_concepts_page_says_what_its_figure_shows() -> None:
    """Half of all pairs with a fixed cut, 9% with shared ones; 2e5 pairs, so 7 standard errors are 0.8% and 0.45%."""
    text = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    assert "half of all pairs decide differently" in text
    assert "9% do" in text
    measured = ideas.gaps(200_000)
    fixed = np.mean(ideas.differ(measured, np.full(len(measured), ideas.GAP)))
    shared = np.mean(ideas.differ(measured, ideas.shared_cuts(len(measured))))
    assert abs(fixed - 0.5) < 0.01
    assert abs(shared - 0.09) < 0.006
    assert ideas.LOW == 0.03
    assert ideas.HIGH == 0.23
    assert f"[{ideas.LOW}, {ideas.HIGH}]" in text
    assert f"{ideas.PULLS:,} pulls each, true gap {ideas.GAP}" in text


@pytest.mark.long
def test_the_home_page_answers_its_question() -> None:
    """Four versions, 5% against 6%, 200,000 visitors; README and the page on cost have the same figures."""
    home, readme, cost = ((ROOT / name).read_text("utf-8") for name in ("docs/index.md", "README.md", "docs/cost.md"))
    found = bd.plan(arms=4, gap=0.01, rate_at_most=0.1, baseline=0.05, horizon=200_000, same="winner")
    assert (round(found.rho, 2), round(found.resolved, 2)) == (0.28, 0.98)
    assert "72% or more (ρ = 0.28)" in home
    assert "98% of teams find it" in home
    assert "72% or more" in readme
    assert "| at most 0.28 | 109,000 on average" in cost
    assert found.pulls is not None
    assert round(4 * found.pulls.mean, -3) == 109_000
    assert all("109,000" in text for text in (home, readme))
    assert found.ordinary_test is not None
    assert round(found.ordinary_test.total, -3) == 54_000
    versions = bd.Bernoulli([0.05, 0.05, 0.05, 0.06])
    certificate = bd.certify(found.policy, versions, pairs=2_000, seed=1)
    assert certificate.agreement == pytest.approx(0.96, abs=0.015)  # 3.4 standard errors
    assert "96% of pairs of teams agree" in home
    (team, _) = bd.watch_pair(found.policy, versions, seed=1).executions
    assert f"*{bd.analyse(team).headline}*" in home


def test_the_limits_page_says_what_single_seeds_do() -> None:
    """How often labs with one seed differ, on two arms; 2,000 seeds, so 5 standard errors of a share are at most 6%."""
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    policy, seeds, labs = bd.OneCut(arms=2, horizon=50_000, rho=0.1, gap=0.05), 2_000, 200
    coins = bd.Coins(0, count=seeds).only(np.repeat(np.arange(seeds), labs))
    rng, state = np.random.default_rng(1), policy.init(seeds * labs)
    for _ in range(2):  # the early batch and the last; what is left then is the choice
        plan = policy.plan(state)
        assert plan is not None
        state = policy.decide(state, rng.binomial(plan, [0.50, 0.52]).astype(float), coins)
    chosen = policy.plan(state)
    assert chosen is not None
    share = (chosen[:, 1] > 0).reshape(seeds, labs).mean(axis=1)
    differ = 2 * share * (1 - share) * labs / (labs - 1)  # two labs of one seed
    assert "| 55% of seeds |" in text
    assert abs(np.mean(differ < 0.01) - 0.55) < 0.06
    assert "| 16% of seeds |" in text
    assert abs(np.mean(differ > 0.1**0.5) - 0.16) < 0.04
    assert 0.49 < differ.max() < 0.51
    assert abs(np.mean(differ) - 0.1) < 0.02  # and on average it is what rho allows


def test_the_worked_example_is_what_the_code_computes() -> None:
    policy = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1)
    log, samples, _ = confidence.ladder(2, 10**6, 0.5)
    assert samples[:4] == (2, 10, 34, 104)
    assert round(log, 3) == Decimal("17.767")
    assert policy.schedule.blowup == 29
    assert round(policy.guarantee().total, 4) == 0.0994
    assert bd.RandomThreshold(arms=10, horizon=10**10, rho=0.1).schedule.blowup == 13_210
    pulls, cut, eliminate = bd.CertifiedElimination(arms=2, horizon=10**6, rho=0.1).schedule.batches[2]
    assert (pulls, eliminate) == (6076, None)
    numbers = (round(cut.low, 6), round(cut.width, 6), round(cut.low + cut.width, 6))
    assert numbers == (0.070675, 0.110163, 0.180839)
    text = (ROOT / "docs" / "certified-elimination.md").read_text(encoding="utf-8")
    assert all(str(number) in text for number in numbers)


@pytest.mark.long
def test_the_tables_of_the_other_pages_are_what_the_code_computes() -> None:
    page = (ROOT / "docs" / "mean-rounding.md").read_text(encoding="utf-8")
    kinds: tuple[Literal["certified", "paper"], ...] = ("certified", "paper")
    for constants in kinds:
        roundings = [bd.MeanRounding(arms=k, horizon=10**14, rho=0.1, constants=constants) for k in (2, 5, 10)]
        cells = " | ".join(f"{policy.minimum_horizon():,}" for policy in roundings)
        assert f"| {constants} | {cells} |" in page
    page = (ROOT / "docs" / "explore-then-commit.md").read_text(encoding="utf-8")
    for constants in kinds:
        commits = [
            bd.ExploreThenCommit(arms=k, horizon=10**6, rho=0.1, gap=0.1, constants=constants) for k in (2, 5, 50)
        ]
        assert f"| {constants} | {' | '.join(str(policy.pulls) for policy in commits)} |" in page


def test_the_pairs_on_the_cluster_page_are_what_is_needed() -> None:
    """The fewest pairs with which c of them may differ, for the first c that is reached with probability 0.9."""
    text = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    for pairs, most, rate in ((36_887, 0, 0.0), (321_002, 21, 0.5e-4), (2_382_684, 208, 0.8e-4)):
        assert f"| {pairs:,} | {most} |" in text
        assert intervals.upper_limit(most, pairs, 0.025) <= 1e-4 < intervals.upper_limit(most, pairs - 1, 0.025)
        assert bdtr(most, pairs, rate) >= 0.9
        if most:
            fewer = first_true(partial(_passes, most - 1), most, pairs)
            assert bdtr(most - 1, fewer, rate) < 0.9


def _passes(mismatches: int, pairs: int) -> bool:
    return intervals.upper_limit(mismatches, pairs, 0.025) <= 1e-4


def test_every_policy_and_environment_has_its_page() -> None:
    for name in policies.REGISTRY:
        assert (ROOT / "docs" / f"{name}.md").exists(), name
    for page, registry in (("baselines", baselines.REGISTRY), ("environments", environments.REGISTRY)):
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        for name, entry in registry.items():
            assert f"`{name}" in text, name
            assert f"`{entry.class_name}" in text, name


def test_what_the_design_page_names_is_there() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    named = re.findall(r"`(canonical|core_sets|frank_wolfe|regression)\.(\w+)`", text)
    named += re.findall(r"`(exact_simplex|filtering|vertices|relaxation)\.(\w+)`", text)
    assert len(named) >= 8
    for module, name in named:
        packages = [
            package for package in ("", "design.", "actions.") if find_spec(f"banditto.geometry.{package}{module}")
        ]
        assert hasattr(import_module(f"banditto.geometry.{packages[0]}{module}"), name), (module, name)
    for name in re.findall(r"`Design\.(\w+)`", text):
        assert name in bd.Design.__dataclass_fields__ or hasattr(bd.Design, name), name


def test_every_key_of_a_study_is_documented() -> None:
    text = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    for key in StudyFile.__dataclass_fields__:
        assert f"`{key}`" in text, key
    for block in re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL):
        assert StudyFile.of(tomllib.loads(block)).built().policies


def test_no_paths_of_a_machine_and_no_registries() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    for name in tracked:
        if name.endswith((".py", ".md", ".toml", ".cff", "Makefile", "run")):
            text = (ROOT / name).read_text(encoding="utf-8")
            assert not re.search(r"(?<![\w.])/(root|home|work)/", text), name


def top_level_names() -> dict[str, set[str]]:
    """Return what every module defines, by the module's name."""
    defined: dict[str, set[str]] = {}
    for path in (ROOT / "src" / "banditto").rglob("*.py"):
        names = defined.setdefault(path.parent.name if path.name == "__init__.py" else path.stem, set())
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign):
                names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return defined


def test_modules_that_pages_name_define_what_they_name() -> None:
    """A page says `ladder.proved`: a module of that name must have it. A function that moves leaves no page behind."""
    defined, checked = top_level_names(), 0
    reexported = {("testing", name) for name in testing.__all__}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for module, name in NAMED.findall(text):
            if module in defined and module not in OBJECTS and (module, name) not in reexported:
                assert name in defined[module] or name in defined, (page.name, module, name)
                checked += 1
    assert checked >= 60


def test_no_page_names_a_module_that_is_gone() -> None:
    gone = "certified|windows|tuning|aiming|algebra|thresholds|trials|rounding_plans|certification|reproduction|placed"
    for page in PAGES:
        if page.name != "CHANGELOG.md":
            found = re.findall(rf"`(?:{gone})\.[A-Za-z_]+", page.read_text(encoding="utf-8"))
            assert not found, (page.name, found)
