"""What a comparison says: a row for each policy; as a table, as records, as data, as HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from typing_extensions import TypedDict

from banditto.core.errors import MissingExtra
from banditto.core.json_types import Keywords
from banditto.core.text import html_table, text_table
from banditto.engine.watching import Curve, PairView
from banditto.measure.certificate import Certificate, MeasuredContent
from banditto.measure.least_regret import least_in_words, least_regret_of
from banditto.measure.random_play import percent
from banditto.policies.shared.replicable import CALIBRATED
from banditto.problems.environment import Environment, EnvironmentContent, LoggedContent

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION: Final = 3
LeastRegret = Annotated[
    float | None,
    Keywords(
        minimum=0,
        description="proved: the least regret here of policies with this rho that find an arm which leads by the "
        "gap with probability 0.95; null where nothing is proved, and for policies without a proof for all arms",
    ),
]


class Entrant(NamedTuple):
    """One policy's row: its certificate and, if pictures were wanted, its regret curve and its first pair."""

    label: str
    certificate: Certificate
    curve: Curve | None
    view: PairView | None

    @property
    def executions(self) -> int:
        """How many executions there were: two for each pair."""
        return 2 * self.certificate.pairs

    @property
    def warning(self) -> str:
        """That of its certificate, with the label before it; empty if there is none."""
        return f"{self.label}: {self.certificate.warning}" if self.certificate.warning else ""

    @property
    def least_regret(self) -> float | None:
        """What no policy with the same proof can do with less on these arms; None where nothing is proved."""
        return least_regret_of(self.certificate)

    def to_dict(self) -> EnteredContent:
        """Return plain data: the keys of its `certificate`, without `curve` and `view`, which are for pictures."""
        return {
            "label": self.label,
            "executions": self.executions,
            "least_regret": self.least_regret,
            **self.certificate.to_dict(),
        }


class EnteredContent(MeasuredContent):
    """An `Entrant` as plain data."""

    label: str
    executions: Annotated[int, Keywords(minimum=2)]
    environment: EnvironmentContent
    least_regret: LeastRegret


class ComparisonContent(TypedDict):
    """A `Comparison` as plain data."""

    schema_version: Literal[3]
    environment: LoggedContent
    rounds: Annotated[int, Keywords(minimum=10_000)]
    policies: Annotated[list[EnteredContent], Keywords(minItems=1)]
    interrupted: bool


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What was measured of several policies on one environment: a row for each that was finished, in the order given.

    Made by `compare`. Each row is a certificate; docs/compare.md describes the table, the files and the report.

    Attributes:
        environment: what they were measured on.
        entrants: the rows: `label`, `certificate`, and with `curves` its regret `curve` and a `view` of its first pair.
        rounds: what each per-round policy was allowed to play in all.
        interrupted: whether Ctrl-C ended it early.

    Examples:
        >>> from banditto import BatchedElimination, Bernoulli, ExploreThenCommit, compare
        >>> policy = ExploreThenCommit(arms=2, horizon=10**4, rho=0.2, gap=0.4)
        >>> rival = BatchedElimination(arms=2, horizon=10**4)
        >>> compared = compare([policy, rival], Bernoulli([0.9, 0.5]), pairs=100)
        >>> [row["policy"] for row in compared.records()]
        ['explore-then-commit', 'batched-elimination']
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
            "policies": [row.to_dict() for row in self.entrants],
            "interrupted": self.interrupted,
        }

    def records(self) -> list[dict[str, Any]]:
        """Return a flat record for each policy, for data frames and CSV files."""
        return [_record(row) for row in self.entrants]

    def to_frame(self) -> pd.DataFrame:
        """Return the records as a pandas data frame; needs `pip install 'banditto[data]'`."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("to_frame()", "pandas", "data") from None
        return pd.DataFrame(self.records())

    def table(self) -> str:
        """Return a table in plain text, with a line for each policy."""
        return text_table(HEADER, [cells(row) for row in self.entrants], align="llrrrrrrrl")

    def _repr_html_(self) -> str:
        return html_table(HEADER, [cells(row) for row in self.entrants])


GROWN = "*"  # marks a confidence sequence
HEADER = ("policy", "same", "horizon", "executions", "agree", "interval", "proved", "regret", "of random", "verdict")


def explained(comparison: Comparison) -> str:
    """Say what the words and marks in the table mean, where that is needed; else empty."""
    told = ""
    if any(row.certificate.level == "winner" for row in comparison.entrants):
        told += " Same winner: pairs are compared by the arm that they name; same sequence: by every pull."
    if all(row.certificate.interval_kind == "fixed" for row in comparison.entrants):
        return told
    return f"{told} {GROWN} This result grew or was looked at before: a confidence sequence, valid at every look."


def least_explained(comparison: Comparison) -> list[str]:
    """Say what no replicable policy can do with less on these arms: a sentence for each rho, if something is proved."""
    return least_in_words([(row.label, row.certificate) for row in comparison.entrants])


def cells(row: Entrant) -> tuple[str, ...]:
    """Write a row of the table under `HEADER`, cell by cell."""
    certificate = row.certificate
    low, high = certificate.interval
    regret = certificate.regret
    reach = regret.interval[1] - regret.mean
    return (
        row.label if len(row.label) <= 40 else row.label[:39] + "…",
        certificate.level,
        power_of_ten(certificate.horizon),
        f"{row.executions:,}",
        f"{certificate.agreement:.1%}",
        f"{100 * low:.1f}-{high:.1%}" + ("" if certificate.interval_kind == "fixed" else GROWN),
        _proved(certificate),
        _amount(regret.mean) + ("" if math.isinf(reach) else f" ± {_amount(reach)}"),
        percent(certificate.share_of_random_play),
        certificate.verdict,
    )


def _proved(certificate: Certificate) -> str:
    if certificate.bound is not None:
        return f"{certificate.bound:.3g}"
    return CALIBRATED if certificate.constants == CALIBRATED else "none"


def _amount(value: float) -> str:
    """Write whole numbers with commas, small ones with two digits."""
    return f"{value:,.0f}" if abs(value) >= 10.0 or value == 0.0 else f"{value:.2g}"


def power_of_ten(number: int) -> str:
    """Write 1e8 where that is what it is, else digits with commas."""
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
        "level": certificate.level,
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
        "share_of_random_play": certificate.share_of_random_play,
        "coin_decides": certificate.coin_decides,
        "least_regret": row.least_regret,
        "verdict": certificate.verdict,
        "seed": certificate.seed,
        "noise_seed": certificate.noise_seed,
        "digest": certificate.digest,
    }
