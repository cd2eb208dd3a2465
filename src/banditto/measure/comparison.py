"""What a comparison says: a row for each policy; as a table, as records, as data, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from typing_extensions import TypedDict

from banditto.core.json_types import Keywords
from banditto.core.results import Result, drawn
from banditto.core.text import PAGE, amount, at_least, escape, filled, html_table, hundredths, text_table
from banditto.engine.player import Run
from banditto.engine.watching import Curve, PairView
from banditto.measure.certificate import LEVELS, Certificate, MeasuredContent
from banditto.measure.findings import finding
from banditto.measure.least_regret import least_in_words, least_regret_of
from banditto.measure.random_play import percent
from banditto.policies.shared.replicable import CALIBRATED
from banditto.problems.environment import Environment, EnvironmentContent, LoggedContent
from banditto.problems.environment_words import environment_in_words

SCHEMA_VERSION: Final = 3
Picture = Literal["price", "agreement", "regret", "ribbons", "divergence", "guarantee"]
LeastRegret = Annotated[
    float | None,
    Keywords(
        minimum=0,
        description="proved: the least regret here of policies with this rho that find an arm which leads by the "
        "gap with probability 0.95; null where nothing is proved, and for policies without a proof for all arms",
    ),
]


class Entrant(NamedTuple):
    """One policy's row: its certificate and, if pictures were wanted, its regret curve and its first pair.

    `run` is what was played, so that pictures can be had later.
    """

    label: str
    certificate: Certificate
    curve: Curve | None
    view: PairView | None
    run: Run | None = None

    @property
    def executions(self) -> int:
        """How many executions there were: two for each pair."""
        return 2 * self.certificate.pairs

    @property
    def warning(self) -> str:
        """The certificate's warning after the label; empty if there is none."""
        return f"{self.label}: {self.certificate.warning}" if self.certificate.warning else ""

    @property
    def least_regret(self) -> float | None:
        """The regret that every policy with the same proof has on these arms; None where nothing is proved."""
        return least_regret_of(self.certificate)

    def to_dict(self) -> EnteredContent:
        """Return plain data: the keys of its `certificate`; `curve`, `view` and `run` are for pictures."""
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


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(Result):
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

    def __repr__(self) -> str:
        found = ", ".join(f"{row.label}: {row.certificate.verdict}" for row in self.entrants)
        return f"Comparison({found})"

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
        return [
            {"label": row.label, **row.certificate.records()[0], "least_regret": row.least_regret}
            for row in self.entrants
        ]

    def plot(self, kind: Picture = "price", *, ax: Any = None) -> Any:
        """Draw the comparison with Matplotlib.

        Args:
            kind: "price" shows what each policy loses against how often its pairs agree. The others are the figures of
                the report: "agreement", "regret" (over time), "ribbons" (a pair side by side), "divergence" (when
                pairs part) and "guarantee" (what is proved).
            ax: Matplotlib axes to draw into, for "price". Without them a new figure is made, which a notebook shows.

        Returns:
            The new figure, or the axes that were given.
        """
        return drawn("comparison_picture:comparison_figure", self, kind, ax=ax)

    def report(self, folder: str | Path, *, title: str | None = None, overwrite: bool = False) -> Path:
        """Write what `banditto compare --out` writes: report.html, figures, results, and a study that rebuilds them.

        There is a study.toml if a study file can name all policies and the environment. What the figures need and
        `compare` did not keep (`curves=False`) is played now.

        Args:
            folder: where to write; it is made if it is not there, and an earlier report in it is replaced.
            title: what the report is called; by default it says how many policies and arms there are.
            overwrite: whether to replace files that banditto did not write, too.

        Returns:
            The path of report.html.
        """
        path: Path = drawn("report_folder:write_report", self, folder, title=title, overwrite=overwrite)
        return path

    @property
    def finding(self) -> str:
        """Who replicates, who does not, and at what cost: a sentence or two."""
        return finding([(row.label, row.certificate) for row in self.entrants])

    def table(self) -> str:
        """Return what was found, what was measured, and a table with a line for each policy, as plain text."""
        columns, header, rows = shown(self)
        align = "".join(ALIGN[column] for column in columns)
        parts = (self.finding, setting(self), text_table(header, rows, align), explained(self).strip())
        return "\n\n".join(part if "\n" in part else filled(part, PAGE) for part in parts if part)

    def _repr_html_(self) -> str:
        _, header, rows = shown(self)
        return f"<p>{escape(self.finding)}</p><p>{escape(setting(self))}</p>{html_table(header, rows)}"


SAME: Final = {"sequence": "every pull", "winner": "winner"}
GROWN = "*"  # marks a confidence sequence
HEADER = ("policy", "same", "horizon", "pairs", "agree", "interval", "proved", "regret", "of random play", "verdict")
ALIGN = "llrrrrrrrl"


def shown(comparison: Comparison) -> tuple[list[int], list[str], list[list[str]]]:
    """Return the numbers, headings and cells of the columns in which rows differ or that every row needs."""
    rows = [cells(row) for row in comparison.entrants]
    certificates = [row.certificate for row in comparison.entrants]
    told = {  # by `setting`, once for all rows
        "same": len({certificate.level for certificate in certificates}) == 1,
        "horizon": len({certificate.horizon for certificate in certificates}) == 1,
    }
    columns = [column for column, name in enumerate(HEADER) if not told.get(name, False)]
    return columns, [HEADER[column] for column in columns], [[row[column] for column in columns] for row in rows]


def setting(comparison: Comparison) -> str:
    """Say what was measured: arms and their rewards, and what all rows share of horizon, rho and seed."""
    certificates = [row.certificate for row in comparison.entrants]
    first = certificates[0]
    facts = [environment_in_words(comparison.environment.to_dict())]
    if len({certificate.horizon for certificate in certificates}) == 1:
        facts.append(f"horizon {first.horizon:,}")
    if len({certificate.rho for certificate in certificates}) == 1:
        facts.append(f"rho {first.rho:g}")
    facts.append(f"seed {first.seed}")
    if len({certificate.level for certificate in certificates}) == 1:
        facts.append(LEVELS[first.level].partition(": ")[2])
    return f"{'; '.join(facts)}."


def explained(comparison: Comparison) -> str:
    """Say what the words and marks in the table mean, where that is needed."""
    rows = [row.certificate for row in comparison.entrants]
    sure = f"{100 * rows[0].confidence:g}%"
    told = f" agree: the share of pairs whose two runs are the same, with its {sure} interval."
    if any(row.bound is not None for row in rows):
        told += f" proved: what that share is at least, whatever the arms{_under_a_promise(rows)}."
    if len({row.level for row in rows}) > 1:
        told += " same: what the two runs of a pair are compared by."
    if any(row.share_of_random_play is not None for row in rows):
        told += " of random play: regret as a share of that of pulling every arm equally often."
    if any(row.interval_kind != "fixed" for row in rows):
        told += f" {GROWN} This result grew or was looked at before: a confidence sequence, valid at every look."
    return told


def _under_a_promise(rows: Sequence[Certificate]) -> str:
    """Name the policies whose bound holds only because these arms keep a promise; empty if there are none."""
    named = [row.policy for row in rows if row.bound is not None and row.guarantee and row.guarantee.promised_gap]
    return f" ({', '.join(dict.fromkeys(named))}: because these arms keep the promised gap)" if named else ""


def least_explained(comparison: Comparison) -> list[str]:
    """Return a sentence for each rho on the regret that no replicable policy can beat on these arms."""
    return least_in_words([(row.label, row.certificate) for row in comparison.entrants])


def cells(row: Entrant) -> tuple[str, ...]:
    """Write a row of the table under `HEADER`, cell by cell."""
    certificate = row.certificate
    low, high = certificate.interval
    return (
        row.label if len(row.label) <= 40 else row.label[:39] + "…",
        SAME[certificate.level],
        f"{certificate.horizon:,}",
        f"{certificate.pairs:,}",
        hundredths(certificate.agreement),
        f"{100 * low:.1f}-{100 * high:.1f}" + ("" if certificate.interval_kind == "fixed" else GROWN),
        _proved(certificate),
        _regret(certificate),
        percent(certificate.share_of_random_play),
        certificate.verdict,
    )


def _proved(certificate: Certificate) -> str:
    if certificate.bound is not None:
        return at_least(certificate.bound)
    return CALIBRATED if certificate.constants == CALIBRATED else "none"


def _regret(certificate: Certificate) -> str:
    """Write the mean regret, and how far it may be off if that is known from more than one pair."""
    regret = certificate.regret
    return amount(regret.mean, regret.interval[1] - regret.mean)
