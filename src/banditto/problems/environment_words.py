"""An environment in words, for the tables that say what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

_KINDS: Final = {
    "bernoulli": "0/1 rewards",
    "linear-bernoulli": "0/1 rewards",
    "gaussian": "Gaussian rewards",
    "linear-gaussian": "Gaussian rewards",
}
_MOST: Final = 12  # numbers that are listed


def environment_in_words(content: Mapping[str, Any]) -> str:
    """Say how many arms there are, what rewards they have, and their means; `content` is what `to_dict` returns."""
    means = content.get("means", ())
    kind = _KINDS.get(content["name"], f"{content['name']} rewards")
    for name in ("sigma", "concentration"):
        kind += f" ({name} {content[name]:g})" if name in content else ""
    if "log" in content:
        log = content["log"]
        named = [f"{arm} {mean:.4g}" for arm, mean in zip(log["arms"], means, strict=True)]
        return f"{len(means)} arms of a log with {sum(log['rows']):,} rows, average rewards {_listed(named)}"
    if "theta" in content:
        theta = ", ".join(f"{value:g}" for value in content["theta"])
        count = f"{len(means):,} actions" if means else f"infinitely many actions ({content['actions']['type']})"
        return f"{count} with {len(content['theta'])} features, {kind}, theta ({theta})"
    return f"{len(means)} arms, {kind} with means {_listed([f'{mean:.6g}' for mean in means])}"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:_MOST]) + (f" and {len(words) - _MOST} more" if len(words) > _MOST else "")
