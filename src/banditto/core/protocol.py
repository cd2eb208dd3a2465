"""Protocol: everything a second lab needs to make the same decisions, frozen and hashed.

A protocol holds *resolved* constants: integer pulls and thresholds as exact binary fractions. Whatever search or
formula found them is not repeated by the reader, so a protocol written by one machine decides alike on another.
Its digest is the sha256 of its canonical JSON: keys sorted, no spaces, ASCII; floats appear as hexadecimal
strings (`float.hex`), because that is the number itself and not a rounding of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import tomli_w

from banditto.core.digest import canonical_json, digest_of
from banditto.core.errors import InvalidArgument, masked, shown
from banditto.core.exact import integer, open_unit, written
from banditto.core.input_files import MIB, MOST_PARTS, Unreadable, checked_path, parsed_json, parsed_toml, read_text
from banditto.core.results import Part, Result, TablePart

SCHEMA_VERSION = 1
_LONGEST_SETTING = 60  # letters, in a table
LARGEST_FILE = 64 * MIB
# larger than any policy allows, and small enough to calculate with until the policy refuses it
_LARGEST = {"decision_version": 10**6, "arms": 10**6, "horizon": 10**18, "seed": 2**128 - 1}

# What `settings` and `resolved` may hold: JSON without nulls and floats, which TOML can hold too.
Plain = bool | int | str | tuple["Plain", ...] | Mapping[str, "Plain"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Protocol(Result):
    """One policy with its constants, its problem and its seed.

    Two labs that hold protocols with the same digest, and pull what they say, share everything but the rewards. A
    policy's `protocol` writes it, and `policy_of` makes the policy again.

    Args:
        policy: The policy's name, such as "certified-elimination".
        decision_version: Rises only when a policy's decisions change; software versions do not belong here.
        arms: The number of arms; 0 for an infinite action set.
        horizon: The number of pulls in one execution.
        rho: The largest allowed probability that two executions differ, as a decimal.
        seed: That of the coins, which the labs share.
        settings: What the user chose, beyond arms, horizon and rho. Default: nothing.
        resolved: The constants that decide, as integers and exact fractions. Default: none.
        schema_version: The version of this format. Default: the newest.

    Examples:
        >>> from banditto import RandomThreshold
        >>> protocol = RandomThreshold(arms=2, horizon=10**6, rho=0.1).protocol(seed=1)
        >>> protocol.policy, protocol.rho, protocol.resolved["blowup"]
        ('random-threshold', '0.1', 29)
        >>> Protocol.from_toml(protocol.to_toml()) == protocol
        True
    """

    policy: str
    decision_version: int
    arms: int
    horizon: int
    rho: str
    seed: int
    settings: Mapping[str, Plain] = field(default_factory=dict)
    resolved: Mapping[str, Plain] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    _picture = "schedule_picture:protocol_figure"
    _named = ("policy", "arms", "horizon", "rho", "seed", "digest")

    def __post_init__(self) -> None:
        version = integer(self.schema_version, "schema_version", 1, 10**6)
        if version > SCHEMA_VERSION:
            allowed = f"at most {SCHEMA_VERSION}; a newer banditto wrote this protocol"
            raise InvalidArgument("schema_version", version, allowed)
        for name, largest in _LARGEST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidArgument(name, value, "an integer of at least 0")
            if value > largest:
                raise InvalidArgument(name, value, f"an integer of at most {shown(largest)}")
        for name in ("policy", "rho"):
            if not isinstance(getattr(self, name), str):
                raise InvalidArgument(name, getattr(self, name), "text")
        # one way to write a number, so that equal protocols have equal digests
        object.__setattr__(self, "rho", str(written(open_unit(self.rho, "rho"))))
        for name in ("settings", "resolved"):
            if not isinstance(getattr(self, name), Mapping):
                raise InvalidArgument(name, getattr(self, name), "a table")
            object.__setattr__(self, name, _frozen(getattr(self, name), name))

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property  # a live run asks for it at every step
    def digest(self) -> str:
        """The sha256 of the canonical JSON, in hexadecimal."""
        return digest_of(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the content as plain dictionaries, lists, integers and strings."""
        return {entry.name: _thawed(getattr(self, entry.name)) for entry in fields(self)}

    def _parts(self) -> list[Part]:
        rows = [
            ("policy", self.policy),
            ("decision version", str(self.decision_version)),
            ("arms", f"{self.arms:,}"),
            ("horizon", f"{self.horizon:,}"),
            ("rho", self.rho),
            ("seed", str(self.seed)),
            *((name, _brief(value)) for name, value in self.settings.items()),
            ("constants that decide", ", ".join(self.resolved) or "none"),
            ("digest", self.digest),
        ]
        return [TablePart(("protocol", ""), rows)]

    def records(self) -> list[dict[str, Any]]:
        """Return one flat record: policy, sizes, seed, digest; settings that are lists or tables are left out."""
        plain = {name: value for name, value in self.settings.items() if isinstance(value, bool | int | str)}
        own = {"policy": self.policy, "decision_version": self.decision_version, "arms": self.arms}
        sizes = {"horizon": self.horizon, "rho": self.rho, "seed": self.seed}
        return [{**own, **sizes, **plain, "digest": self.digest}]

    def to_json(self) -> str:
        """Return the canonical JSON: what the digest is taken of."""
        return canonical_json(self.to_dict())

    def to_toml(self) -> str:
        """Return the same content for people and version control, with the digest in a comment."""
        return f"# banditto protocol, sha256 {self.digest}\n" + tomli_w.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Protocol:
        """Read what `to_dict` wrote, and return the protocol; unknown and missing keys are refused."""
        known = {entry.name for entry in fields(cls)}
        if not isinstance(content, Mapping):
            raise InvalidArgument("protocol", content, "a table with " + ", ".join(sorted(known)))
        version = content.get("schema_version")
        if isinstance(version, int) and version > SCHEMA_VERSION:
            # said before anything else: a newer file may well have keys that are unknown here
            allowed = f"at most {SCHEMA_VERSION}; a newer banditto wrote this protocol"
            raise InvalidArgument("schema_version", version, allowed)
        for name in sorted(set(content) - known):
            raise InvalidArgument("protocol", f"unknown key {name!r}", ", ".join(sorted(known)))
        for name in sorted(known - set(content)):
            raise InvalidArgument("protocol", f"no key {name!r}", ", ".join(sorted(known)))
        return cls(**content)

    @classmethod
    def from_json(cls, text: str) -> Protocol:
        """Read canonical or any other JSON of the same content, and return the protocol."""
        return cls.from_dict(_json_content(text))

    @classmethod
    def from_toml(cls, text: str) -> Protocol:
        """Read what `to_toml` wrote, and return the protocol."""
        return cls.from_dict(_toml_content(text))

    @classmethod
    def load(cls, path: str | Path) -> Protocol:
        """Read a .toml or .json file, and return its protocol."""
        return cls.from_dict(protocol_content(path))


def protocol_content(path: str | Path) -> dict[str, Any]:
    """Return what a .toml or .json file says, unchecked: it need not be a whole protocol."""
    path = checked_path(path, "protocol")
    try:
        text = read_text(path, LARGEST_FILE)
    except Unreadable as error:
        raise InvalidArgument("protocol", str(path), f"a readable text file ({masked(str(error))})") from None
    return _json_content(text) if path.suffix == ".json" else _toml_content(text)


def _json_content(text: str) -> dict[str, Any]:
    """Return the object that JSON text holds, as a dictionary; refuse text that is no JSON, or no object."""
    try:
        content = parsed_json(text)
    except ValueError as error:  # also: integers of thousands of digits
        raise InvalidArgument("protocol", f"no JSON ({error})", "a protocol as JSON") from None
    if not isinstance(content, dict):
        raise InvalidArgument("protocol", text, "a JSON object")
    return content


def _toml_content(text: str) -> dict[str, Any]:
    try:
        return parsed_toml(text)
    except ValueError as error:
        raise InvalidArgument("protocol", f"no TOML ({error})", "a protocol as TOML") from None


class WithProtocol:
    """The base class of all policies that lets them write their own protocol."""

    name: ClassVar[str]
    decision_version: ClassVar[int]

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose, beyond arms, horizon and rho."""
        raise NotImplementedError

    def resolved(self) -> Mapping[str, Plain]:
        """Return the constants that decide, as integers and exact fractions."""
        raise NotImplementedError

    def protocol(
        self, *, seed: int, arms: int | None = None, horizon: int | None = None, rho: float | None = None
    ) -> Protocol:
        """Write down what a second lab needs to decide alike, and return it: the protocol, with a digest.

        A replicable policy knows its arms, its horizon and its rho, and takes none of them from the caller. Those that
        a baseline does not know must be given.

        Args:
            seed: That of the coins, which the labs share.
            arms: The number of arms, for a baseline that does not know it.
            horizon: The number of pulls, for a baseline that does not know it.
            rho: What a baseline is measured against.

        Examples:
            >>> from banditto import RandomThreshold, UCB1
            >>> RandomThreshold(arms=2, horizon=10**6, rho=0.1).protocol(seed=1).digest[:8]
            'b182763b'
            >>> UCB1().protocol(seed=1, arms=2, horizon=10**6, rho=0.1).digest[:8]
            '56858da2'
        """
        known: dict[str, Any] = {}
        for name, given in (("arms", arms), ("horizon", horizon), ("rho", rho)):
            own = getattr(self, name, None)
            if own is None and given is None:
                raise InvalidArgument(name, "nothing", f"a number, because {self.name} has none of its own")
            if own is not None and given is not None:
                raise InvalidArgument(name, given, f"nothing, because {self.name} has its own: {own}")
            known[name] = given if own is None else own
        return Protocol(
            policy=self.name,
            decision_version=self.decision_version,
            arms=known["arms"],
            horizon=known["horizon"],
            rho=str(written(known["rho"])),
            seed=seed,
            settings=self.settings(),
            resolved=self.resolved(),
        )


def fraction(value: float) -> str:
    """Return a float as the exact binary fraction that it is, written out as text."""
    return float(value).hex()


def from_fraction(text: object, argument: str) -> float:
    """Return the float that `fraction` wrote; other text is refused."""
    try:
        value = float.fromhex(str(text))
    except (ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise InvalidArgument(argument, text, "a finite hexadecimal fraction such as 0x1.8p+1")
    return value


class Table(Mapping[str, Plain]):
    """A dictionary that cannot be changed, but can be compared, hashed, copied and sent to another process."""

    __slots__ = ("_content",)

    def __init__(self, content: Mapping[str, Plain]) -> None:
        self._content = dict(content)

    def __getitem__(self, key: str) -> Plain:
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._content)))

    def __repr__(self) -> str:
        return repr(self._content)

    def __reduce__(self) -> tuple[type[Table], tuple[dict[str, Plain]]]:
        return Table, (self._content,)


def _brief(value: Plain) -> str:
    """Write a setting in a few letters."""
    text = str(_thawed(value))
    return text if len(text) <= _LONGEST_SETTING else f"{text[: _LONGEST_SETTING - 1]}…"


def _frozen(value: object, name: str, depth: int = 0) -> Plain:
    """Return the value with lists as tuples and dictionaries as `Table`, so that nothing in it can be changed."""
    if depth > MOST_PARTS:
        raise InvalidArgument(name, "tables in tables", f"at most {MOST_PARTS} levels of nesting")
    if isinstance(value, Mapping):
        return Table({str(key): _frozen(item, name, depth + 1) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(_frozen(item, name, depth + 1) for item in value)
    if isinstance(value, bool | int | str):
        return value
    raise InvalidArgument(name, value, "integers, text, true or false, lists and tables of them")


def _thawed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _thawed(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_thawed(item) for item in value]
    return value
