"""`banditto init`: register a live experiment."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from banditto.cli import parameters
from banditto.cli.output import EXIT_OK, print_steps
from banditto.core.errors import InvalidArgument
from banditto.problems.spec import numbers

if TYPE_CHECKING:
    from banditto.cli.documents import RegisteredContent

ProtocolFile = Annotated[
    str, typer.Argument(metavar="PROTOCOL", help="A protocol file (.toml), as `banditto plan --save` writes it.")
]
NameOption = Annotated[str | None, typer.Option("--name", metavar="NAME", help="What to call the experiment.")]
ArmNames = Annotated[str | None, typer.Option("--arm-names", metavar="A,B,...", help="Names of the arms, in order.")]
Rewards = Annotated[
    str | None,
    typer.Option(
        "--rewards", metavar="LOW,HIGH", help="What a reward may be, or any (default: 0,1, or what the policy is for)."
    ),
]


def init(
    protocol: ProtocolFile,
    store: parameters.StoreOption = None,
    name: NameOption = None,
    arm_names: ArmNames = None,
    rewards: Rewards = None,
    as_json: parameters.Json = False,
) -> int:
    """Register an experiment: from now on its protocol cannot change. Prints the digest to publish."""
    from banditto.core.protocol import Protocol

    read = Protocol.load(protocol)
    url = parameters.store_url(store)
    if name is None:
        raise InvalidArgument("name", "nothing", "what to call the experiment")
    from banditto.live.experiment import Experiment
    from banditto.live.registration import registered

    names = None if arm_names is None else [part.strip() for part in arm_names.split(",")]
    made = registered(read, names, _range(rewards))
    with Experiment.create(url, name, made) as experiment:
        status = experiment.status()
    content: RegisteredContent = {
        "name": name,
        "digest": made.digest,
        "head": status.head,
        "arm_names": list(made.arm_names),
    }
    print_steps(content, f"{name} is registered\ndigest {made.digest}\nhead   {status.head}", as_json)
    return EXIT_OK


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    if text == "any":
        return -math.inf, math.inf
    ends = numbers(text, "rewards")
    if len(ends) != 2:
        raise InvalidArgument("rewards", text, "two numbers such as 0,1, or any")
    return ends[0], ends[1]
