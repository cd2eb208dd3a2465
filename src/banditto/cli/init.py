"""`banditto init`: register a live experiment."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from banditto.cli import parameters, stores
from banditto.cli.output import EXIT_OK, collected_warnings, print_steps, print_warnings
from banditto.core.errors import InvalidArgument

if TYPE_CHECKING:
    from banditto.cli.documents import RegisteredContent
    from banditto.core.protocol import Protocol

SCHEMA_VERSION: Final = 2
ProtocolFile = Annotated[
    str, typer.Argument(metavar="PROTOCOL", help="A protocol file (.toml), as `banditto plan --save` writes it.")
]
NameOption = Annotated[str, typer.Option("--name", metavar="NAME", help="A name for the experiment.")]
ArmNames = Annotated[
    str | None,
    typer.Option("--arm-names", metavar="A,B,...", help="The names of the arms, in order (default: their numbers)."),
]
Rewards = Annotated[
    str | None,
    typer.Option(
        "--rewards",
        metavar="LOW,HIGH",
        help="The smallest and the largest reward, or `any` (default: what the policy expects).",
    ),
]

FallbackOption = Annotated[
    str | None,
    typer.Option("--fallback", metavar="NAME", help="The arm to show when no ticket is free."),
]
Deadline = Annotated[
    str | None,
    typer.Option(
        "--deadline", metavar="AGE", help="Give up a ticket that has waited this long for its reward: 45m, 12h, 7d."
    ),
]
OwnSeed = Annotated[
    str | None,
    typer.Option(
        "--seed", metavar="N", help="The seed of a protocol without one (default: a random one, which is printed)."
    ),
]


def init(
    protocol: ProtocolFile,
    name: NameOption,
    store: parameters.StoreOption = None,
    arm_names: ArmNames = None,
    rewards: Rewards = None,
    fallback: FallbackOption = None,
    deadline: Deadline = None,
    seed: OwnSeed = None,
    as_json: parameters.Json = False,
) -> int:
    """Register an experiment. From now on its protocol cannot change; publish the digest that is printed."""
    read, note = _with_seed(protocol, seed)
    url = stores.store_url(store)
    from banditto.live.experiment import Experiment
    from banditto.live.registration import registered
    from banditto.measure.random_play import decides_late, late_warning
    from banditto.measure.unknown_arms import decided_from, lead_warning

    names = None if arm_names is None else [part.strip() for part in arm_names.split(",")]
    with collected_warnings() as told:
        waits = None if deadline is None else parameters.seconds_of(deadline, "deadline")
        made = registered(read, names, _range(rewards), fallback, waits)
        policy = made.policy()
        lead = decided_from(policy)
        with Experiment.create(url, name, made) as experiment:
            status = experiment.status()
    coin = lead_warning(policy, lead)
    late = late_warning(None) if decides_late(policy) else ""
    warnings = list(dict.fromkeys([*told, *filter(None, (coin, late))]))  # a policy that is made twice warns twice
    content: RegisteredContent = {
        "name": name,
        "digest": made.digest,
        "head": status.head,
        "arm_names": list(made.arm_names),
        "decided_from": lead,
        "coin_decides": bool(coin),
        "warnings": warnings,
    }
    lines = f"{name} is registered\ndigest {made.digest}\nhead   {status.head}\n"
    if lead is not None:
        lines += f"Rewards decide where the best arm leads by about {lead:g} or more; below, a coin would do as well.\n"
    print_steps(content, lines, as_json, SCHEMA_VERSION)
    sys.stderr.write(note)
    if not as_json:
        print_warnings(warnings)
    return EXIT_OK


def _with_seed(path: str, seed: str | None) -> tuple[Protocol, str]:
    """Read a protocol; one without a seed gets the one that was given, or a random one and a note of it."""
    from banditto.core.protocol import Protocol, protocol_content
    from banditto.problems.spec import typed

    content = protocol_content(path)
    if "seed" in content:
        if seed is not None:
            raise InvalidArgument("seed", seed, "none, because the protocol has its own")
        return Protocol.from_dict(content), ""
    if seed is not None:
        return Protocol.from_dict({**content, "seed": typed("seed", seed)}), ""
    drawn = parameters.drawn_seed()
    return Protocol.from_dict({**content, "seed": drawn}), f"banditto: the protocol has no seed; drew {drawn}\n"


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    if text == "any":
        return -math.inf, math.inf
    from banditto.problems.spec import numbers

    ends = numbers(text, "rewards")
    if len(ends) != 2:
        raise InvalidArgument("rewards", text, "two numbers such as 0,1, or any")
    return ends[0], ends[1]
