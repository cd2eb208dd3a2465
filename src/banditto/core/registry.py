"""Entries of the registries: where a class lives and what a listing says of it. Reading one imports nothing."""

from __future__ import annotations

from typing import NamedTuple


class Earlier(NamedTuple):
    """Where the class lives that decides as an earlier decision version of a policy did, for protocols that name it."""

    decision_version: int
    module: str
    class_name: str


class Entry(NamedTuple):
    """One policy, baseline or environment; `module` and `class_name` are those of its newest decision version."""

    module: str
    class_name: str
    summary: str
    source: str = ""
    constants: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # arguments of its own: a policy cannot do without, an environment can
    optional: tuple[str, ...] = ()  # arguments of its own that a policy can do without
    reads_file: bool = False
    reads_log: bool = False  # is made from a log of rewards
    linear: bool = False  # needs the features of the arms
    any_set: bool = False  # and can do with infinitely many actions
    by_winner: bool = False  # is replicable at the level of winners, not of sequences
    earlier: tuple[Earlier, ...] = ()  # decision versions before the newest one
