"""The claims, in the order of the paper: an explicit list of the modules that hold them."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from banditto.core.errors import ContractError, InvalidArgument
from banditto.paper.claims import Claim

MODULES: tuple[str, ...] = (
    "definition",
    "warm_up",
    "mean_estimation",
    "finite_arms",
    "undecided",
    "least_squares",
    "linear_finite",
    "core_set_lemmas",
    "rounded_regression",
    "linear_infinite",
    "naive_net",
    "computation",
    "printed",
    "printed_linear",
    "beyond_prices",
    "beyond_rivals",
    "beyond_lattice",
)


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim."""
    found = tuple(claim for name in MODULES for claim in import_module(f"banditto.paper.{name}").CLAIMS)
    names = [claim.name for claim in found]
    if len(set(names)) != len(names):
        raise ContractError(f"two claims share a name: {sorted(name for name in names if names.count(name) > 1)}")
    return found


def chosen(only: str | None) -> tuple[Claim, ...]:
    """The claim of this name, or the group whose names begin with it and a hyphen; all without a name."""
    if only is None:
        return claims()
    found = tuple(claim for claim in claims() if claim.name == only or claim.name.startswith(f"{only}-"))
    if not found:
        raise InvalidArgument("only", only, f"a claim or the beginning of its name: {', '.join(groups())}")
    return found


def groups() -> list[str]:
    """The beginnings that several claims share, and the names of the others."""
    return list(dict.fromkeys("-".join(claim.name.split("-")[:2]) for claim in claims()))


def claim_of(name: str) -> Claim:
    """The claim of a name."""
    return next(claim for claim in claims() if claim.name == name)
