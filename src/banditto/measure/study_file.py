"""Studies as files: what `banditto compare` is asked to do, in TOML.

    title = "Three buttons"            # optional, for the report
    means = [0.5, 0.9, 0.8]
    environment = "bernoulli"          # as on the command line; files are looked for beside the study
    horizon = 1e8
    rho = 0.1
    policies = ["random-threshold", "random-threshold:paper", "ucb1",
                {policy = "explore-then-commit", gap = 0.1, label = "ETC"}, "one-cut"]
    pairs = 1000
    rounds = 2e7                       # what each per-round policy may play in all
    seed = 7
    noise_seed = 8
    confidence = 0.95
    gap = 0.1                          # for policies that take one and have none of their own; as are
    power = 0.9                        # how likely one-cut is right at the gap
    control = 0                        # the arm that one-cut keeps unless another one leads
    rate_at_most = 0.95                # a promise that no arm's mean is above this

A linear problem has, instead of means,

    theta = [0.3, 0.2]
    actions = "arms.csv"               # one action a line, or
    action_set = "ball"                # box, simplex or a JSON file, and
    dimension = 2                      # of a ball, box or simplex
    normalise = false                  # divide all actions of a file by the length of the longest

and rewards that were logged, instead of either,

    log = "rewards.csv"                # or a Parquet file; its rows are drawn with replacement
    arm_column = "arm"
    reward_column = "reward"
    reward_range = [0, 1]              # rewards are rescaled from this to [0, 1]
    log_digest = "8bdec3cc..."         # what the log must be, if it is to be checked

Keys that are not listed here are refused. Only `policies`, `horizon`, `rho` and what the environment needs must be
there, in the file or as flags, which win.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from banditto import policies
from banditto.chance.coins import LARGEST_SEED
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, open_unit, real
from banditto.core.horizons import LONGEST_HORIZON, SHORTEST_HORIZON
from banditto.core.input_files import MIB, Unreadable, parsed_toml, read_text
from banditto.numbers.intervals import MOST_PAIRS
from banditto.policies import baselines
from banditto.policies.policy import AnyPolicy
from banditto.problems.catalogue import OPTIONS, build_policy, lookup, takes_option
from banditto.problems.environment import Environment
from banditto.problems.spec import LINEAR, LOGGED, ProblemSpec, typed

LONGEST_TEXT, LONGEST_LABEL = 200, 60


@dataclass(frozen=True, kw_only=True)
class PolicyLine:
    """One policy of a study: its name, such as `random-threshold:paper`, and its own label and options, if any."""

    policy: str
    label: str | None = None
    gap: float | None = None
    power: float | None = None
    control: int | None = None
    rate_at_most: float | None = None

    @property
    def name(self) -> str:
        """Return the label of its row."""
        return self.label or self.policy

    def takes(self, option: str) -> bool:
        """Say whether the policy has an argument of this name."""
        return takes_option(self.policy, option)


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """A study as it was written, checked; None for keys that were left out."""

    title: str | None = None
    means: tuple[float, ...] | None = None
    environment: str | None = None
    horizon: int | None = None
    rho: float | None = None
    policies: tuple[PolicyLine, ...] | None = None
    pairs: int | None = None
    rounds: int | None = None
    seed: int | None = None
    noise_seed: int | None = None
    confidence: float | None = None
    gap: float | None = None
    power: float | None = None
    control: int | None = None
    rate_at_most: float | None = None
    theta: tuple[float, ...] | None = None
    actions: str | None = None
    action_set: str | None = None
    dimension: int | None = None
    normalise: bool | None = None
    log: str | None = None
    arm_column: str | None = None
    reward_column: str | None = None
    reward_range: tuple[float, float] | None = None
    log_digest: str | None = None

    @classmethod
    def load(cls, path: str) -> StudyFile:
        """Read and check a study file; paths in it are relative to its folder."""
        try:
            text = read_text(path, 16 * MIB)
        except Unreadable as error:
            raise InvalidArgument("study", path, f"a file that can be read ({error})") from None
        try:
            content = parsed_toml(text)
        except ValueError as error:
            raise InvalidArgument("study", path, f"a TOML file ({error})") from None
        study = cls.of(content)
        name, _, file = (study.environment or "").partition(":")
        if name == "discrete" and file and not Path(file).is_absolute():
            study = replace(study, environment=f"{name}:{Path(path).parent / file}")
        files = {key: file for key in ("actions", "log") if (file := getattr(study, key)) is not None}
        beside: dict[str, Any] = {key: str(Path(path).parent / file) for key, file in files.items()}
        study = replace(study, **beside)  # an absolute path stays what it is
        named = study.action_set or ""
        if named.endswith(".json") and not Path(named).is_absolute():
            study = replace(study, action_set=str(Path(path).parent / named))
        return study

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> StudyFile:
        """Check plain data key by key, and return the study."""
        _refuse_unknown(content, [field.name for field in fields(cls)], "study")
        found: dict[str, Any] = {key: _CHECKS[key](content[key], key) for key in content}
        return cls(**found)

    def with_flags(self, **flags: Any) -> StudyFile:
        """Return the study with command-line flags in place of its own values, and without what they replace."""
        given = {name: typed(name, value) for name, value in flags.items() if value is not None}
        study = self
        # a linear problem, means and a log take each other's place
        if "log" in given:
            study = replace(study, means=None, environment=None, **dict.fromkeys((*LINEAR, *LOGGED)))
        elif given.keys() & LINEAR:
            study = replace(study, means=None, **dict.fromkeys(LOGGED))
        elif "means" in given:
            study = replace(study, **dict.fromkeys((*LINEAR, *LOGGED)))
        for one, other in (("actions", "action_set"), ("action_set", "actions")):
            if one in given and other not in given:
                study = replace(study, **{other: None, "dimension": None})
        study = replace(study, **given)
        if not given.keys() & {"means", "log"} and str(given.get("environment", "")).startswith("discrete"):
            study = replace(study, means=None, **dict.fromkeys(LOGGED))
        lines = given.get("policies", ())
        idle = [name for name in OPTIONS if name not in given and lines and not any(line.takes(name) for line in lines)]
        return replace(study, **dict.fromkeys(idle))

    def to_toml(self) -> str:
        """Return the study as TOML that `load` reads; keys that were not given are left out."""
        content = {key: value for key, value in asdict(self).items() if value is not None}
        if self.policies is not None:
            content["policies"] = [
                line.policy
                if line == PolicyLine(policy=line.policy)
                else {key: value for key, value in asdict(line).items() if value is not None}
                for line in self.policies
            ]
        return tomli_w.dumps(
            {key: list(value) if isinstance(value, tuple) else value for key, value in content.items()}
        )

    def built(self) -> Built:
        """Make the policies and the environment that the study names."""
        world = ProblemSpec(**{name: getattr(self, name) for name in _PROBLEM}).instance()
        horizon = _needed(self.horizon, "horizon", "an integer, such as 1e8")
        rho = _needed(self.rho, "rho", "a number between 0 and 1, both excluded")
        lines = _needed(self.policies, "policies", "names separated by commas, such as random-threshold,ucb1")
        for line in lines:
            lookup(line.policy.partition(":")[0], policies.REGISTRY | baselines.REGISTRY, "policies")
        for name in OPTIONS:
            if (value := getattr(self, name)) is not None and not any(line.takes(name) for line in lines):
                raise InvalidArgument(name, value, "none, because no policy here needs one")
        made = [
            build_policy(
                line.policy,
                arms=len(world.means),
                horizon=horizon,
                rho=rho,
                environment=world,
                **{name: self._option(line, name) for name in OPTIONS},
            )
            for line in lines
        ]
        return Built(made, world, [line.name for line in lines])

    def _option(self, line: PolicyLine, name: str) -> Any:
        """Return a policy's own value of an option, else the study's if the policy takes it, else None."""
        own = getattr(line, name)
        return getattr(self, name) if own is None and line.takes(name) else own


_PROBLEM = ("means", "environment", *LINEAR, *LOGGED)  # the keys that say where rewards come from


class Built(NamedTuple):
    """The policies of a study, their environment, and their labels."""

    policies: list[AnyPolicy]
    environment: Environment
    labels: list[str]


def _needed(value: Any, name: str, allowed: str) -> Any:
    if value is None:
        raise InvalidArgument(name, "nothing", allowed)
    return value


def _refuse_unknown(content: Mapping[str, Any], known: list[str], where: str) -> None:
    for key in content:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise InvalidArgument(where, f"the key {key!r}", hint + ", ".join(known))


def _text(value: Any, name: str, longest: int = LONGEST_TEXT) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > longest or not value.isprintable():
        raise InvalidArgument(name, value, f"one line of text, at most {longest} printable characters")
    return value


def checked_title(title: Any) -> str:
    """Check the title of a report."""
    return _text(title, "title")


def _numbers(value: Any, name: str) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise InvalidArgument(name, value, "a list of numbers")
    return tuple(real(number, name) for number in value)


def _ends(value: Any, name: str) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise InvalidArgument(name, value, "two numbers, the lower one first, such as 0 and 5")
    return real(value[0], name), real(value[1], name)


def _lines(value: Any, name: str) -> tuple[PolicyLine, ...]:
    if not isinstance(value, list) or not value:
        raise InvalidArgument(name, value, "a list of policies")
    return tuple(_line(row) for row in value)


def _line(row: Any) -> PolicyLine:
    """Parse one policy of a study, which is a name or a table."""
    if isinstance(row, str):
        return PolicyLine(policy=_text(row, "policies"))
    if not isinstance(row, dict) or "policy" not in row:
        raise InvalidArgument("policies", row, f"names, or tables with policy, label, {', '.join(OPTIONS)}")
    _refuse_unknown(row, ["policy", "label", *OPTIONS], "policies")
    return PolicyLine(
        policy=_text(row["policy"], "policy"),
        label=_text(row["label"], "label", LONGEST_LABEL) if "label" in row else None,
        **{name: read(row[name], name) for name, read in OPTIONS.items() if name in row},
    )


FEWEST_ROUNDS, MOST_ROUNDS = 10**4, 10**13  # of the budget of a per-round policy
_RANGES = {
    "horizon": (SHORTEST_HORIZON, LONGEST_HORIZON),
    "pairs": (1, MOST_PAIRS),
    "dimension": (1, 500),
    "rounds": (FEWEST_ROUNDS, MOST_ROUNDS),
    "seed": (0, LARGEST_SEED),
    "noise_seed": (0, LARGEST_SEED),
}


def _count(value: Any, name: str) -> int:
    return integer(value, name, *_RANGES[name])


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(name, value, "true or false")
    return value


_CHECKS: dict[str, Any] = {
    "title": _text,
    "means": _numbers,
    "environment": _text,
    "horizon": _count,
    "rho": open_unit,
    "policies": _lines,
    "pairs": _count,
    "rounds": _count,
    "seed": _count,
    "noise_seed": _count,
    "confidence": open_unit,
    **OPTIONS,
    "theta": _numbers,
    "actions": _text,
    "action_set": _text,
    "dimension": _count,
    "normalise": _flag,
    "log": _text,
    "arm_column": _text,
    "reward_column": _text,
    "reward_range": _ends,
    "log_digest": _text,
}
