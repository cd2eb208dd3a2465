"""`banditto select`: race callables on fresh rewards until one is named."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditto.cli import parameters, stores
from banditto.cli.output import EXIT_OK, notices, print_json, print_text, print_warnings, progress_bar
from banditto.core.errors import InvalidArgument, masked
from banditto.core.exact import parsed_integer, real
from banditto.core.provenance import provenance

if TYPE_CHECKING:
    from banditto.cli.documents import SelectionDocument

_ALLOWED = "NAME=module:callable, such as new=prompts:score"
Arms = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME=MODULE:CALLABLE", help="An arm: a callable that returns a reward, or an iterable of rewards."
    ),
    parameters.StandsFor("arms"),
]
SelectGap = Annotated[str, typer.Option("--gap", metavar="X", help="The smallest lead that matters, such as 0.02.")]
SelectRho = Annotated[
    str,
    typer.Option("--rho", metavar="X", help="The largest probability with which two labs may name different winners."),
]
SelectPower = Annotated[
    str, typer.Option("--power", metavar="X", help="How likely the best arm wins if it leads by --gap.")
]
SelectSeed = Annotated[str, typer.Option("--seed", metavar="N", help="The seed of the shared coins.")]
SelectNoise = Annotated[
    str | None,
    typer.Option(
        "--noise-seed", metavar="N", help="The seed of the generator that callables get (default: derived from --seed)."
    ),
]
SelectStore = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="FILE", help="Keep every reward in this file or database, and continue from there next time."
    ),
    parameters.StandsFor("name"),
]
Workers = Annotated[str, typer.Option("--workers", metavar="N", help="How many threads make calls.")]
Retries = Annotated[
    str, typer.Option("--retries", metavar="N", help="How often to repeat a call that raised an error.")
]
SelectControl = Annotated[
    str | None, typer.Option("--control", metavar="NAME", help="The arm to keep unless another one leads.")
]
SelectSigma = Annotated[
    str | None,
    typer.Option(
        "--sigma", metavar="X", help="Rewards are Gaussian with this standard deviation (default: they lie in [0, 1])."
    ),
    parameters.StandsFor("rewards", where_given=True),
]


def select(
    arms: Arms,
    gap: SelectGap,
    rho: SelectRho = "0.1",
    power: SelectPower = "0.95",
    seed: SelectSeed = "2026",
    noise_seed: SelectNoise = None,
    store: SelectStore = None,
    workers: Workers = "1",
    retries: Retries = "0",
    control: SelectControl = None,
    rate_at_most: parameters.RateAtMost = None,
    sigma: SelectSigma = None,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Race Python callables until one wins. A second lab names the same winner with probability 1 - rho.

    Modules may be in the current folder. Exit code 3, with what is known so far, if a call raises an error or an
    iterable ends too early.
    """
    if store is not None:
        stores.check_extra()
    named = loaded(arms)
    from banditto.live.select import select as selected  # numerical libraries are loaded once there is work for them
    from banditto.problems.spec import typed

    with _told_what_is_kept(store), notices(quiet), progress_bar("select", quiet, "pulls") as progress:
        found = selected(
            named,
            gap=real(gap, "gap", "a number above 0, such as 0.02"),
            rho=real(rho, "rho"),
            power=real(power, "power"),
            seed=typed("seed", seed),
            noise_seed=None if noise_seed is None else typed("noise_seed", noise_seed),
            store=store,
            workers=parsed_integer(workers, "workers"),
            retries=parsed_integer(retries, "retries"),
            control=control,
            rate_at_most=None if rate_at_most is None else real(rate_at_most, "rate_at_most"),
            rewards=None if sigma is None else "gaussian",
            sigma=0.5 if sigma is None else real(sigma, "sigma"),
            progress=progress,
        )
    if as_json:
        content: SelectionDocument = {**found.to_dict(), **provenance()}
        print_json(content)
    else:
        print_text(found.table().partition("\nwarning: ")[0])
        print_warnings([] if quiet else list(found.warnings))
    return EXIT_OK


def loaded(arms: list[str]) -> dict[str, Any]:
    """Find what the arms are called and where their rewards come from."""
    found: dict[str, Any] = {}
    folder = os.getcwd()  # noqa: PTH109 (what Python itself would put there)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    for text in arms:
        name, mark, place = text.partition("=")
        module, colon, path = place.partition(":")
        if not (name and mark and module and colon and path):
            raise InvalidArgument("arms", text, _ALLOWED)
        if name in found:
            raise InvalidArgument("arms", f"{name} more than once", "different names")
        found[name] = _loaded(text, module, path)
    return found


def _loaded(text: str, module: str, path: str) -> Any:
    try:
        value: Any = import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # whatever a module does while it is loaded
        said = masked(" ".join(f"{type(error).__name__}: {error}".split()))
        raise InvalidArgument("arms", text, f"something that can be loaded ({said[:200]})") from None
    return value


@contextmanager
def _told_what_is_kept(store: str | None) -> Iterator[None]:
    """Say after Ctrl-C what is left, and let it go on."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing is kept without --store" if store is None else "what is done is kept; the same command goes on"
        sys.stderr.write(f"banditto: interrupted before there was a winner; {kept}\n")
        raise
