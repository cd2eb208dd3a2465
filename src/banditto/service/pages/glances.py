"""The list of experiments: each at a glance, from its row alone; nothing is analysed, and no log is read."""

from __future__ import annotations

from typing import Literal, NamedTuple

from banditto.core.errors import BandittoError
from banditto.live.follower import Follower
from banditto.live.opening import wanted_registration
from banditto.live.reading import Reading

Sort = Literal["newest", "name", "state", "progress"]
SORTS: tuple[Sort, ...] = ("newest", "name", "state", "progress")
_ORDER = {"running": 0, "finished": 1, "stopped": 2, "unreadable": 3}


class Glance(NamedTuple):
    """An experiment as a row of the list."""

    name: str
    state: str
    registered: str
    spent: int  # pulls of decided batches, and rewards of this one
    horizon: int
    waits: str
    winner: str

    @property
    def share(self) -> float:
        """How much of the horizon has a reward."""
        return self.spent / self.horizon if self.horizon else 0.0


def glance(view: Reading, name: str) -> Glance:
    """Return one experiment's row for the list; one that this version cannot read gets a row that says so."""
    row = view.known(name)
    try:
        registration = wanted_registration(row["registration"], name, None)
        _, standing = Follower(name, registration).found(view)
    except BandittoError as error:
        return Glance(name, "unreadable", row["created"], 0, 0, str(error), "")
    stage = standing.stage
    told, planned, left = standing.told, sum(stage.pulls), sum(stage.pulls) - standing.issued
    if standing.status == "finished":
        waits = "nobody: it is finished"
    elif standing.status == "stopped":
        waits = "nobody: it was stopped"
    elif left > 0:
        waits = f"visitors: {left:,} tickets of batch {stage.batch} can be handed out"
    else:
        waits = f"results: {planned - told:,} tickets of batch {stage.batch} are out"
    winner = stage.winner
    names = registration.arm_names
    return Glance(
        name=name,
        state=standing.status,
        registered=row["created"],
        spent=stage.spent + told,
        horizon=registration.protocol.horizon,
        waits=waits,
        winner="" if winner is None else names[winner],
    )


def arranged(found: list[Glance], words: str, sort: Sort) -> list[Glance]:
    """Return the experiments whose name or state contains all of these words, sorted as asked."""
    wanted = words.lower().split()
    kept = [one for one in found if all(word in f"{one.name} {one.state}".lower() for word in wanted)]
    if sort == "name":
        return sorted(kept, key=lambda one: one.name.lower())
    if sort == "state":
        return sorted(kept, key=lambda one: (_ORDER[one.state], one.name.lower()))
    if sort == "progress":
        return sorted(kept, key=lambda one: -one.share)
    return sorted(kept, key=lambda one: one.registered, reverse=True)
