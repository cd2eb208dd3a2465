"""Plans as the service gives them: plain data, and a seed that nobody can guess where none was given."""

from __future__ import annotations

import secrets
from typing import Any


def planned(arguments: dict[str, Any]) -> dict[str, Any]:
    """Plan an experiment, in whichever process this is called; plain data comes back: the plan and its protocol."""
    from banditto.measure.plan import plan

    if arguments.get("seed") is None:  # who knows the seed knows which arm comes next
        arguments = {**arguments, "seed": secrets.randbits(63)}
    found = plan(**arguments)
    return {
        "plan": found.to_dict(),
        "protocol": found.protocol.to_dict(),
        "warnings": [found.warning] if found.warning else [],
    }
