"""Comparing policies: many of them on one environment, each measured like a certificate.

A batched policy runs its whole horizon, whatever it is. A per-round policy pays for every round, so it is given a
budget of rounds, and its horizon and its pairs are cut to fit; every row says what it got.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from typing_extensions import TypedDict

from banditto.core.errors import InvalidArgument, MissingExtra
from banditto.core.exact import integer, open_unit
from banditto.core.horizons import LONGEST_ROUND_HORIZON, SHORTEST_HORIZON
from banditto.core.json_types import Keywords
from banditto.core.text import html_table, text_table
from banditto.engine.pool import shared_workers, submitted
from banditto.engine.run import Run, run_of
from banditto.engine.watching import Curve, PairView, regret_curve, watch_pair
from banditto.measure.certify import MOST_JOBS, Certificate, MeasuredContent, certify, checked_rho, identity_of
from banditto.measure.study_file import FEWEST_ROUNDS, MOST_ROUNDS
from banditto.numbers.intervals import MOST_PAIRS
from banditto.policies.policy import AnyPolicy, own_horizon, own_rho
from banditto.policies.shared.replicable import CALIBRATED
from banditto.problems.catalogue import protocol_on
from banditto.problems.environment import Environment, EnvironmentContent, LoggedContent

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION: Final = 1
KEPT = "pairs"  # the folder of finished pairs within that of a report
DEFAULT_ROUNDS = 2 * 10**7
_EXECUTIONS = 200  # of a per-round policy, at least, before its horizon grows
MOST_POLICIES = 24

# (label, pairs done, pairs in all)
CompareProgress = Callable[[str, int, int], None]


class Entrant(NamedTuple):
    """One policy's row: its certificate and, if pictures were wanted, its regret curve and its first pair."""

    label: str
    certificate: Certificate
    curve: Curve | None
    view: PairView | None

    @property
    def executions(self) -> int:
        """Two for each pair."""
        return 2 * self.certificate.pairs


class EntrantContent(MeasuredContent):
    """An `Entrant` as plain data: the keys of its `certificate`, without `curve` and `view`, which are for pictures."""

    label: str
    executions: Annotated[int, Keywords(minimum=2)]
    environment: EnvironmentContent


class ComparisonContent(TypedDict):
    """A `Comparison` as plain data."""

    schema_version: Literal[1]
    environment: LoggedContent
    rounds: Annotated[int, Keywords(minimum=10_000)]
    policies: Annotated[list[EntrantContent], Keywords(minItems=1)]
    interrupted: bool


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The rows of all policies that were finished, in the order in which they were given.

    Each row is a certificate; docs/compare.md describes the table, the files and the report.
    """

    environment: Environment
    entrants: tuple[Entrant, ...]
    rounds: int
    interrupted: bool

    def to_dict(self) -> ComparisonContent:
        """Return plain data: the environment, and as `policies` each entrant's certificate with its label.

        Its entries are called `policies` there, not `entrants`.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "environment": self.environment.to_dict(),
            "rounds": self.rounds,
            "policies": [
                {"label": row.label, "executions": row.executions, **row.certificate.to_dict()} for row in self.entrants
            ],
            "interrupted": self.interrupted,
        }

    def records(self) -> list[dict[str, Any]]:
        """One flat record per policy, for data frames and CSV files."""
        return [_record(row) for row in self.entrants]

    def to_frame(self) -> pd.DataFrame:
        """The records as a pandas data frame; needs `pip install 'banditto[data]'`."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("to_frame()", "pandas", "data") from None
        return pd.DataFrame(self.records())

    def table(self) -> str:
        """One line per policy."""
        return text_table(HEADER, [cells(row) for row in self.entrants], align="lrrrrrrl")

    def _repr_html_(self) -> str:
        return html_table(HEADER, [cells(row) for row in self.entrants])


def compare(
    policies: Sequence[AnyPolicy],
    environment: Environment,
    *,
    horizon: int | None = None,
    rho: float | None = None,
    pairs: int = 1000,
    rounds: int = DEFAULT_ROUNDS,
    seed: int = 0,
    noise_seed: int | None = None,
    confidence: float = 0.95,
    labels: Sequence[str] | None = None,
    curves: bool = False,
    out: str | Path | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: CompareProgress | None = None,
) -> Comparison:
    """Measure many policies on one environment.

    `horizon` and `rho` are for baselines, which have none; by default they are the replicable policies'. `rounds` is
    what each per-round policy may play in all. `curves` adds regret curves and one pair to look at, for a report. In
    the folder `out` finished pairs of every policy are kept, as `certify` keeps them; what is there of other policies,
    environments or seeds is left alone.

    Examples:
        >>> from banditto import UCB1, Bernoulli, CertifiedElimination
        >>> rivals = [CertifiedElimination(arms=2, horizon=10**5, rho=0.2), UCB1()]
        >>> compared = compare(rivals, Bernoulli([0.9, 0.5]), pairs=200, rounds=10**5)
        >>> [row.certificate.verdict for row in compared.entrants]
        ['PASS', 'FAIL']
    """
    names = _checked_labels(policies, labels)
    if not hasattr(environment, "means"):
        raise InvalidArgument("environment", environment, "an environment object, such as Bernoulli([0.9, 0.8, 0.7])")
    pairs = integer(pairs, "pairs", 1, MOST_PAIRS)
    rounds = integer(rounds, "rounds", FEWEST_ROUNDS, MOST_ROUNDS)
    jobs = integer(jobs, "jobs", 1, MOST_JOBS)
    confidence = open_unit(confidence, "confidence")
    horizon, rho = _common_horizon(policies, horizon), _common_rho(policies, rho)
    if rho is None and any(own_rho(policy) is None for policy in policies):
        raise InvalidArgument("rho", None, "a number between 0 and 1, which baselines do not have themselves")
    plans = [_allotment(policy, environment, horizon, pairs, rounds) for policy in policies]
    runs = [
        run_of(policy, environment, seed=seed, noise_seed=noise_seed, horizon=length)
        for policy, (length, _) in zip(policies, plans, strict=True)
    ]
    rows: list[Entrant] = []
    with shared_workers(jobs, executor) as workers:
        for label, run, (_, share) in zip(names, runs, plans, strict=True):
            kept = None if out is None else _place(Path(out), run, checked_rho(run.policy, _own(run.policy, rho)))
            try:
                certificate = certify(
                    run.policy,
                    environment,
                    pairs=share,
                    seed=run.seed,
                    noise_seed=run.noise_seed,
                    horizon=run.horizon,
                    rho=_own(run.policy, rho),
                    confidence=confidence,
                    out=kept,
                    executor=workers,
                    progress=None if progress is None else _labelled(progress, label),
                )
                drawn = _pictures(run, certificate.pairs, workers) if curves else (None, None)
            except KeyboardInterrupt:
                if kept is not None:
                    with suppress(OSError):  # only empty folders go
                        kept.rmdir()
                        kept.parent.rmdir()
                return Comparison(environment=environment, entrants=tuple(rows), rounds=rounds, interrupted=True)
            rows.append(Entrant(label, certificate, *drawn))
            if certificate.interrupted:
                break
    stopped = len(rows) < len(policies) or rows[-1].certificate.interrupted
    return Comparison(environment=environment, entrants=tuple(rows), rounds=rounds, interrupted=stopped)


def _own(policy: AnyPolicy, rho: float | None) -> float | None:
    """A replicable policy has a rho of its own."""
    return rho if own_rho(policy) is None else None


def _place(out: Path, run: Run, rho: float) -> Path:
    """Where a policy's pairs are kept: another run has another folder, so that nothing is ever mixed."""
    protocol = protocol_on(run.policy, arms=len(run.environment.means), seed=run.seed, horizon=run.horizon, rho=rho)
    text = json.dumps(identity_of(run, protocol), sort_keys=True)
    return out / KEPT / hashlib.sha256(text.encode()).hexdigest()[:16]


def illustrate(run: Run, pairs: int) -> tuple[Curve, PairView]:
    """What a report draws of a policy; sent to a worker."""
    view = watch_pair(run.policy, run.environment, seed=run.seed, noise_seed=run.noise_seed, horizon=run.horizon)
    return regret_curve(run, pairs), view


def _pictures(run: Run, pairs: int, workers: Executor | None) -> tuple[Curve, PairView]:
    return illustrate(run, pairs) if workers is None else submitted(workers, illustrate, run, pairs).result()


def _labelled(progress: CompareProgress, label: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(label, done, total)


def _checked_labels(policies: Sequence[AnyPolicy], labels: Sequence[str] | None) -> list[str]:
    """A name for each row, all different."""
    if not isinstance(policies, Sequence) or isinstance(policies, str) or not 1 <= len(policies) <= MOST_POLICIES:
        given = f"{len(policies)} of them" if isinstance(policies, list | tuple) else policies
        raise InvalidArgument("policies", given, f"a list of 1 to {MOST_POLICIES} policies")
    names = [label_of(policy) for policy in policies]
    if labels is not None:
        if isinstance(labels, str) or not isinstance(labels, Sequence):
            raise InvalidArgument("labels", labels, "a list of names")
        names = [str(label) for label in labels]
    if len(names) != len(policies):
        raise InvalidArgument("labels", f"{len(names)} of them", f"{len(policies)}, one for each policy")
    for name in names:
        if not name.strip() or not name.isprintable():
            raise InvalidArgument("labels", repr(name), "one line of text each")
        if names.count(name) > 1:
            raise InvalidArgument("policies", f"{name} more than once", "different policies, or labels of their own")
    return names


def label_of(policy: AnyPolicy) -> str:
    """The name on the command line: `random-threshold`, `random-threshold:paper`, `ucb1`."""
    if isinstance(policy, type) or not hasattr(policy, "settings"):
        raise InvalidArgument("policies", policy, "policy objects")
    constants = policy.settings().get("constants")
    if constants == CALIBRATED:
        return f"{policy.name}:calibrated"
    return policy.name if constants in (None, "certified") else f"{policy.name}:{constants}"


def _common_horizon(policies: Sequence[AnyPolicy], horizon: int | None) -> int | None:
    """The horizon for those that have none: the longest of the others."""
    if horizon is not None:
        return horizon
    return max((own for policy in policies if (own := own_horizon(policy)) is not None), default=None)


def _common_rho(policies: Sequence[AnyPolicy], rho: float | None) -> float | None:
    """The rho for those that have none: that of the others, if they agree on it."""
    own = {share for policy in policies if (share := own_rho(policy)) is not None}
    return own.pop() if rho is None and len(own) == 1 else rho


def _allotment(
    policy: AnyPolicy, environment: Environment, horizon: int | None, pairs: int, rounds: int
) -> tuple[int | None, int]:
    """A policy's horizon (None: its own) and pairs."""
    if own_horizon(policy) is not None or horizon is None:
        return None, pairs
    longest = max(rounds // _EXECUTIONS, SHORTEST_HORIZON, len(environment.means))
    length = min(integer(horizon, "horizon", 1, 10**15), longest, LONGEST_ROUND_HORIZON)
    return length, min(pairs, max(1, rounds // (2 * length)))


GROWN = "*"  # marks a confidence sequence
HEADER = ("policy", "horizon", "executions", "agree", "interval", "proved", "regret", "verdict")


def explained(comparison: Comparison) -> str:
    """What the mark in the table means, if it is there."""
    if all(row.certificate.interval_kind == "fixed" for row in comparison.entrants):
        return ""
    return f" {GROWN} This result grew or was looked at before: a confidence sequence, valid at every look."


def cells(row: Entrant) -> tuple[str, ...]:
    """A row of the table under `HEADER`."""
    certificate = row.certificate
    low, high = certificate.interval
    regret = certificate.regret
    reach = regret.interval[1] - regret.mean
    return (
        row.label if len(row.label) <= 40 else row.label[:39] + "…",
        power_of_ten(certificate.horizon),
        f"{row.executions:,}",
        f"{certificate.agreement:.1%}",
        f"{100 * low:.1f}-{high:.1%}" + ("" if certificate.interval_kind == "fixed" else GROWN),
        _proved(certificate),
        _amount(regret.mean) + ("" if math.isinf(reach) else f" ± {_amount(reach)}"),
        certificate.verdict,
    )


def _proved(certificate: Certificate) -> str:
    if certificate.bound is not None:
        return f"{certificate.bound:.3g}"
    return CALIBRATED if certificate.constants == CALIBRATED else "none"


def _amount(value: float) -> str:
    """Whole numbers with commas; small ones with two digits."""
    return f"{value:,.0f}" if abs(value) >= 10.0 or value == 0.0 else f"{value:.2g}"


def power_of_ten(number: int) -> str:
    """1e8 where that is what it is, else digits with commas."""
    digits = str(number)
    round_number = len(digits) > 4 and not digits[1:].strip("0")
    return f"{digits[0]}e{len(digits) - 1}" if round_number else f"{number:,}"


def _record(row: Entrant) -> dict[str, Any]:
    certificate = row.certificate
    regret = certificate.regret
    known = not math.isinf(regret.interval[1])
    return {
        "label": row.label,
        "policy": certificate.policy,
        "constants": certificate.constants,
        "horizon": certificate.horizon,
        "rho": certificate.rho,
        "pairs": certificate.pairs,
        "executions": row.executions,
        "mismatches": certificate.mismatches,
        "agreement": certificate.agreement,
        "agreement_low": certificate.interval[0],
        "agreement_high": certificate.interval[1],
        "interval_kind": certificate.interval_kind,
        "bound": certificate.bound,
        "regret": regret.mean,
        "regret_low": regret.interval[0] if known else None,
        "regret_high": regret.interval[1] if known else None,
        "regret_largest": regret.largest,
        "verdict": certificate.verdict,
        "seed": certificate.seed,
        "noise_seed": certificate.noise_seed,
        "digest": certificate.digest,
    }
