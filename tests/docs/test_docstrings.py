"""Every public name says what it is and which theorem it rests on, and the examples in docstrings do what they show."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

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
    "LowerBound": ("Beyond the paper", "docs/lower-bounds.md"),
    "lower_bound": ("Beyond the paper", "docs/lower-bounds.md"),
    "lai_robbins": ("Lai and Robbins (1985)",),
    "select": ("EarlyCut", "docs/early-cut.md"),
    "analyse": ("docs/analyse.md",),
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
    *(
        "MissingExtra",
        "PlainPolicy",
        "Polytope",
        "Protocol",
        "ShortHorizonWarning",
        "Simplex",
        "TrialPlan",
        "WorkerError",
    ),
    *("calibrate", "cluster", "compare", "plan", "policy_of", "watch_pair"),
    *("Replay", "Reproduction", "Resampled", "RewardLog", "replay", "reproduce"),
    *("Analysis", "Experiment", "Registration", "Selection", "replicate", "verify"),
    *("AsyncClient", "AsyncExperiment", "Client", "JsonLogFormatter", "NotAllowed", "ServiceError", "StepReport"),
    *("IllConditioned", "LogError", "NoMaximum", "NoPlan", "NoStore", "StoreError", "StoreSettings", "Unfinished"),
}

# What measures, plans or runs live: every argument or attribute is described, in its order, and there is an example.
FUNCTIONS = {
    *("attack", "calibrate", "certify", "cluster", "compare", "plan", "replay", "replicate", "reproduce", "verify"),
    *("analyse", "lai_robbins", "lower_bound", "select", "watch_pair"),
}
RESULTS = {"Attack", "Calibration", "Certificate", "Comparison", "LowerBound", "Replay", "Reproduction", "Selection"}
RESULTS |= {"Analysis", "StepReport", "TrialPlan"}
# Users do not make these by their constructors: attributes are described instead of arguments.
RETURNED = RESULTS | {"AsyncExperiment", "Experiment", "Registration"}


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


def section(text: str, title: str) -> list[str]:
    """Return the lines of a section of a docstring, without those that only go on; none if there is no such section."""
    found = re.search(rf"^{title}:\n((?:[ ]+.*\n|\n)*)", inspect.cleandoc(text) + "\n", flags=re.MULTILINE)
    return [] if found is None else [line[4:] for line in found[1].splitlines() if re.match(r"[ ]{4}\S", line)]


def parameters_of(thing: Callable[..., Any]) -> list[str]:
    """Return the names that a caller may give; an error that is built like any other has none of its own."""
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [name for name, parameter in signature.parameters.items() if parameter.kind not in variadic]


def faults_of(thing: Callable[..., Any]) -> list[str]:
    """Return what the docstring of a function or class lacks."""
    text = thing.__doc__ or ""
    documented = [line.partition(": ")[0] for line in section(text, "Args") if ": " in line]
    parameters = parameters_of(thing)
    faults = [] if text.strip() else ["no docstring"]
    faults += [f"no line for the argument {name}" for name in parameters if name not in documented]
    faults += [f"no argument has the name {name}" for name in documented if name not in parameters]
    if not faults and documented != parameters:
        faults.append("arguments in another order than that of the signature")
    if not any(line.startswith(">>> ") for line in section(text, "Examples")):
        faults.append("no example")
    return faults


@pytest.mark.parametrize("name", sorted(set(bd.__all__) - {"__version__"} - RETURNED))
def test_every_argument_is_explained_and_an_example_runs(name: str) -> None:
    assert faults_of(getattr(bd, name)) == []


def made_up(first: int, *others: int, second: int = 2, **more: int) -> int:
    """Add up, and return the sum.

    Args:
        first: One number.
        second: Another one, which may
            also: be long.

    Examples:
        >>> made_up(1)
        3
    """
    return first + second + sum(others) + sum(more.values())


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("second: Another one, which may", "", "no line for the argument second"),
        ("first: One number.", "", "no line for the argument first"),
        ("Args:", "", "no line for the argument first"),
        ("first: One number.", "first", "no line for the argument first"),
        ("first: One number.", "first: One number.\n    third: Nobody.", "no argument has the name third"),
        ("first: One number.\n    second: A", "second: B.\n    first: A", "another order"),
        (">>> made_up(1)", "made_up(1)", "no example"),
        ("Examples:", "Example", "no example"),
    ],
)
def test_a_docstring_that_lacks_something_is_found(old: str, new: str, fault: str) -> None:
    def edited(first: int, *others: int, second: int = 2, **more: int) -> int:
        return made_up(first, *others, second=second, **more)

    edited.__doc__ = written = inspect.cleandoc(str(made_up.__doc__))  # Python 3.13 takes the indentation off itself
    assert faults_of(made_up) == faults_of(edited) == []
    edited.__doc__ = written.replace(old, new)
    assert fault in "; ".join(faults_of(edited))
    edited.__doc__ = None
    assert "no docstring" in faults_of(edited)


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


@pytest.mark.parametrize("name", sorted(FUNCTIONS | RETURNED))
def test_everything_is_described_in_its_order_with_an_example(name: str) -> None:
    thing = getattr(bd, name)
    text = inspect.cleandoc(thing.__doc__)
    assert ">>> " in text.partition("\nExamples:\n")[2]
    if name in ("AsyncExperiment", "Experiment"):  # users do not make it by its constructor
        assert described(text, "Attributes") == ["name", "registration"]
    else:
        described_under = "Attributes" if name in RESULTS else "Args"
        assert described(text, described_under) == list(inspect.signature(thing).parameters)


def described(text: str, section: str) -> list[str]:
    """List the names that a section of a docstring describes; lines that go on are indented further."""
    body = text.partition(f"\n{section}:\n")[2].partition("\n\n")[0]
    return [line.partition(":")[0].strip() for line in body.splitlines() if not line.startswith(" " * 8)]


PUBLIC_CLASSES = [bd.Experiment, bd.Registration, *(getattr(bd, name) for name in sorted(RESULTS))]


@pytest.mark.parametrize("kind", PUBLIC_CLASSES, ids=lambda kind: str(kind.__name__))
def test_methods_describe_their_arguments(kind: type) -> None:
    for name in [name for name in vars(kind) if not name.startswith("_")]:
        method = getattr(kind, name)
        if inspect.isfunction(method) or inspect.ismethod(method):
            wanted = [argument for argument in inspect.signature(method).parameters if argument != "self"]
            written = inspect.cleandoc(method.__doc__ or "")
            assert described(written, "Args") == wanted, name
            assert len(written) >= 25, name
