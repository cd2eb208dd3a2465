"""Every public name says what it is and which theorem it rests on, and the examples in docstrings do what they show."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import banditto as bd
from banditto import policies

SOURCE = Path(__file__).parents[2] / "src"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)

# What each name implements: a statement of *Replicable Bandits*, or the work that a baseline comes from.
STATEMENTS = {
    "RandomThreshold": ("Algorithm 2", "Theorem 4"),
    "MeanRounding": ("Algorithm 1", "Theorem 3"),
    "ExploreThenCommit": ("Warm-up I",),
    "LinearThreshold": ("Algorithm 3", "Theorem 6"),
    "LeastSquaresRounding": ("Algorithm 4", "Theorem 10"),
    "NetThreshold": ("Corollary 12",),
    "net": ("Corollary 12",),
    "replicable_mean": ("Proposition 2",),
    "samples_needed": ("Proposition 2",),
    "ReplicableLeastSquares": ("Lemma 9",),
    "g_optimal_design": ("Lemmas 5 and 7",),
    "Design": ("Lemmas 5 and 7", "Lemma 8"),
    "Guarantee": ("Definition 1",),
    "Coins": ("Definition 1",),
    "certify": ("Definition 1",),
    "Certificate": ("Definition 1",),
    "attack": ("Definition 1",),
    "Attack": ("Definition 1",),
    "CertifiedElimination": ("Beyond the paper", "docs/certified-elimination.md"),
    "CertifiedLinear": ("Beyond the paper", "docs/certified-linear.md"),
    "UCB1": ("Auer, Cesa-Bianchi, Fischer 2002",),
    "KLUCB": ("Garivier, Cappé 2011",),
    "MOSS": ("Audibert, Bubeck 2009",),
    "Thompson": ("Thompson 1933", "Agrawal, Goyal 2012"),
    "GaussianThompson": ("Korda, Kaufmann, Munos 2013",),
    "SuccessiveElimination": ("Even-Dar, Mannor, Mansour 2006",),
    "BatchedElimination": ("Gao, Han, Ren, Zhou 2019",),
    "LinUCB": ("Abbasi-Yadkori, Pál, Szepesvári 2011",),
    "LinThompson": ("Agrawal, Goyal 2013",),
    "PhasedElimination": ("Lattimore, Szepesvári 2020",),
}
# Environments, action sets, plans, errors and tools, which rest on no statement.
PLAIN = {
    *("ActionSet", "Ball", "BandittoError", "Bernoulli", "Beta", "Box", "Calibration", "Comparison", "ConflictError"),
    *("ContractError", "Discrete", "FiniteActions", "Gaussian", "InvalidArgument", "LinearBernoulli", "LinearGaussian"),
    *("MissingExtra", "Polytope", "Protocol", "ShortHorizonWarning", "Simplex", "TrialPlan", "WorkerError"),
    *("calibrate", "cluster", "compare", "plan", "policy_of", "watch_pair"),
    *("Replay", "Reproduction", "Resampled", "RewardLog", "replay", "reproduce"),
    *("Experiment", "Registration", "replicate", "verify"),
}


def test_every_name_was_thought_of() -> None:
    """But for policies that came since: a new one touches four files, and this is none of them."""
    registered = {entry.class_name for entry in policies.REGISTRY.values()}
    assert set(bd.__all__) - registered - {"__version__"} <= set(STATEMENTS) | PLAIN <= set(bd.__all__)
    assert not set(STATEMENTS) & PLAIN


@pytest.mark.parametrize("name", sorted(set(bd.__all__) - {"__version__"}))
def test_every_name_says_what_it_is(name: str) -> None:
    written = getattr(bd, name).__doc__  # its own, not one that a class inherits
    assert written, name
    assert not written.startswith(f"{name}("), "what a dataclass says of itself when nobody does"
    text = " ".join(inspect.cleandoc(written).split())
    for statement in STATEMENTS.get(name, ()):
        assert statement in text
    for page in [word.strip("(),.;:") for word in text.split() if word.lstrip("(").startswith("docs/")]:
        assert (SOURCE.parent / page).is_file(), page


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_examples_show_what_happens(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = doctest.testmod(import_module(name))
    assert done.attempted > 0
    assert done.failed == 0, capsys.readouterr().out


def test_there_are_examples_for_what_one_begins_with() -> None:
    begun = {
        *("measure.certify", "measure.compare", "measure.plan.plans", "measure.attack.attacking"),
        "policies.certified_elimination.certified_elimination",
    }
    assert {f"banditto.{name}" for name in begun} <= set(MODULES)
