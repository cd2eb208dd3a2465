"""Three walks through the code, traced: which modules one call crosses, and how many switches stand on its way.

`python -m tools.walks` prints them. A switch is an `if`, a conditional expression or a `match` in a function that was
entered. Importing a module is no part of a walk.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import banditto as bd

PACKAGE = Path(bd.__file__).parent
CERTIFY = "certify certified-elimination --means 0.6,0.5 --horizon 1e6 --rho 0.2 --pairs 200"


class Walk(NamedTuple):
    """The modules that a call crosses, in the order in which it enters them, and the switches on its way."""

    modules: list[str]
    switches: int


def traced(call: Callable[[], Any]) -> Walk:
    """Make a call, and note every function of the package that it enters."""
    entered: dict[CodeType, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            entered.setdefault(frame.f_code)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    codes = [code for code in entered if code.co_flags & inspect.CO_OPTIMIZED]  # bodies of modules and classes are not
    names = dict.fromkeys(str(Path(code.co_filename).relative_to(PACKAGE)) for code in codes)
    return Walk(list(names), sum(map(_switches, codes)))


def _switches(code: CodeType) -> int:
    tree = ast.parse(Path(code.co_filename).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        lines = (getattr(node, "lineno", 0), *(line.lineno for line in getattr(node, "decorator_list", [])))
        if getattr(node, "name", None) == code.co_name and code.co_firstlineno in lines:
            return sum(isinstance(part, ast.If | ast.IfExp | ast.Match) for part in ast.walk(node))
    return 0  # a lambda or a comprehension: its function is counted itself


def certify() -> Walk:
    """Walk through one `banditto certify`."""
    from banditto.cli.app import run

    with contextlib.redirect_stdout(io.StringIO()):
        run(CERTIFY.replace("1e6", "1e5").split())  # loads and compiles; the walk is to another problem
        return traced(lambda: run(CERTIFY.split()))


def ask_tell() -> Walk:
    """Walk through one `ask` and the `tell` of its reward."""
    protocol = bd.CertifiedElimination(arms=2, horizon=2_000, rho=0.3).protocol(seed=7)
    registration = bd.Registration.of(protocol, arm_names=["A", "B"])
    with (
        tempfile.TemporaryDirectory() as folder,
        bd.Experiment.create(f"sqlite:///{folder}/trial.db", "walk", registration) as experiment,
    ):
        experiment.tell(experiment.ask()[0].id, 1.0)
        return traced(lambda: experiment.tell(experiment.ask()[0].id, 0.0))


def linear_batch() -> Walk:
    """Walk through one batch of a linear policy: its plan and its decision."""
    from banditto.chance.coins import Coins

    policy = bd.CertifiedLinear(
        actions=[[1, 0], [0.8, 0.5], [0, 1], [-0.5, 0.5]], horizon=10**7, rho=0.2, method="thresholds"
    )
    state = policy.init(4)

    def batch() -> None:
        pulls = policy.plan(state)
        assert pulls is not None
        policy.decide(state, pulls / 2.0, Coins(1, 0, 4))

    return traced(batch)


WALKS = {"one certify": certify, "one ask and tell": ask_tell, "one linear batch": linear_batch}


def main() -> None:
    """Print every walk."""
    for name, walk in WALKS.items():
        found = walk()
        print(f"{name}: {len(found.modules)} modules, {found.switches} switches")
        for module in found.modules:
            print(f"  {module}")


if __name__ == "__main__":
    main()
