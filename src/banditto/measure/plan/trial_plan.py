"""What a plan says: the numbers, the price, the batches, and the protocol to run it by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from banditto import policies
from banditto.core.protocol import Protocol
from banditto.core.results import Part, Result, TablePart
from banditto.core.text import amount, at_least, short, text_table
from banditto.measure.certificate import Regret
from banditto.measure.lower_bounds import LowerBound
from banditto.measure.plan.plan_content import SCHEMA_VERSION, PlanContent
from banditto.measure.plan.planner import LEAST_RHO, Planner, Settled
from banditto.measure.plan.questions import ONE_CUT, Question
from banditto.measure.plan.winner_pulls import WinnerPulls
from banditto.measure.plan.yardsticks import Alternative, Yardstick
from banditto.measure.random_play import coin_warning, in_words, is_a_coins, late_warning, share_of_random_play
from banditto.policies.policy import Level, Policy
from banditto.problems.environment import Environment, LinearEnvironment

_MOST_ROWS, _SHOWN_ROWS = 24, 8  # more batches than that are shown in part


@dataclass(frozen=True, kw_only=True, repr=False)
class TrialPlan(Result):
    """An experiment before it begins: its policy, its numbers, and what it will cost.

    Made by `plan`.

    Attributes:
        question: what was asked for: the policy by name, the arms or actions, the rewards and the promise.
        policy: the policy to run, with its constants.
        constants: which constants it has, such as "certified" or "paper".
        gap: by how much the best arm leads every other.
        rho: the largest probability that two runs differ.
        horizon: how many pulls there are.
        instance: the environment on which the plan was rehearsed.
        resolved: the share of rehearsals that kept the promise.
        regret: expected pseudo-regret on `instance`, with an interval that holds 95% of all runs and the mean.
        pulls: of each arm until the winner is named, at the gap; None where two runs repeat every pull.
        pulls_elsewhere: the same at twice the gap and on a tie.
        exploration_pulls: the mean number of pulls after which no arm that is `gap` worse is pulled again, or after
            which the winner is named.
        bound: on the probability that two runs differ, proved; None without a proof that gives rho.
        paper_regret: expected regret of the paper's algorithm with the paper's constants; None if it cannot be made.
        paper_horizon: about the shortest horizon at which that algorithm keeps the promise; None if not looked for.
        ordinary_regret: expected regret of a policy in batches that is not replicable; None if there is none.
        lower_bound: pulls that no replicable policy can do without; None where none is proved.
        ordinary_test: what an ordinary test of the same question needs; None for infinitely many actions.
        alternatives: other policies for the same promise, with their shortest horizons.
        executions: how many executions a rehearsal had.
        seed: the seed of the protocol.
        protocol: what to run the experiment by, here and in a second lab.

    Examples:
        >>> from banditto import plan
        >>> found = plan(arms=2, gap=0.5, rho=0.3, policy="explore-then-commit")
        >>> found.resolved >= 0.95, found.regret.mean < found.paper_regret, found.bound <= 0.3
        (True, True, True)
    """

    question: Question
    policy: Policy[Any]
    constants: str | None
    gap: float
    rho: float
    horizon: int
    instance: Environment
    resolved: float
    regret: Regret
    pulls: WinnerPulls | None
    pulls_elsewhere: tuple[WinnerPulls, ...]
    exploration_pulls: float
    bound: float | None
    paper_regret: float | None
    paper_horizon: int | None
    ordinary_regret: float | None
    lower_bound: LowerBound | None
    ordinary_test: Yardstick | None
    alternatives: tuple[Alternative, ...]
    executions: int
    seed: int
    protocol: Protocol

    _picture = "price_pictures:plan_figure"

    def __repr__(self) -> str:
        sizes = f"arms={self.arms}, gap={self.gap:g}, rho={self.rho:g}, horizon={self.horizon:,}"
        return f"TrialPlan({self.policy.name}, {sizes}, level={self.level!r})"

    @property
    def level(self) -> Level:
        """What two runs have in common: "sequence", every pull, or "winner"."""
        return self.question.level

    @property
    def share_of_random_play(self) -> float | None:
        """Regret, divided by that of pulling every arm equally often; None for infinitely many actions."""
        return share_of_random_play(self.regret.mean, self.instance.means, self.horizon)

    @property
    def coin_decides(self) -> bool:
        """Whether a coin would do as well: regret is 0.9 of random play or more, and the promise is not kept."""
        return is_a_coins(self.share_of_random_play) and self.resolved < self.question.resolve

    @property
    def warning(self) -> str:
        """A warning where a coin would do as well, with what would help; empty otherwise."""
        if self.share_of_random_play is None or not is_a_coins(self.share_of_random_play) or self.pulls is not None:
            return ""  # an experiment that ends with its winner has no pulls to spend better
        if not self.coin_decides:  # it is right in the end, and pays with every pull until then
            return late_warning(self.share_of_random_play)
        return coin_warning(self.share_of_random_play, self.policy.settings(), replicable=True)

    @property
    def ratio_to_paper(self) -> float | None:
        """Regret, divided by that of the paper's algorithm with the paper's constants at the same horizon."""
        return _ratio(self.regret.mean, self.paper_regret)

    @property
    def ratio_to_nonreplicable(self) -> float | None:
        """Regret, divided by that of a policy that works in batches and is not replicable."""
        return _ratio(self.regret.mean, self.ordinary_regret)

    @property
    def power(self) -> float:
        """The probability with which the promise is to be kept; a policy is aimed a little above it."""
        return self.question.resolve

    @property
    def arms(self) -> int:
        """How many arms there are; 0 for infinitely many actions."""
        return len(self.instance.means)

    def to_dict(self) -> PlanContent:
        """Return plain data.

        The `question` is there as what it asked for (`power`, `by`, rates) and the names of the policies that it
        compares with, whose `paper_regret` and `ordinary_regret` are there as ratios. `regret` is `expected_regret` and
        `regret_interval`. The `protocol` is a file of its own and is there by its digest.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "policy": self.policy.name,
            "constants": self.constants,
            "level": self.level,
            "arms": self.arms,
            "gap": self.gap,
            "rho": self.rho,
            "horizon": self.horizon,
            "resolve": self.question.resolve,
            "power": self.question.resolve,
            "by": self.question.by,
            "rate_at_most": self.question.rate_at_most,
            "baseline": self.question.baseline,
            "control": self.question.control,
            "resolved": self.resolved,
            "expected_regret": self.regret.mean,
            "regret_interval": list(self.regret.interval),
            "share_of_random_play": self.share_of_random_play,
            "coin_decides": self.coin_decides,
            "exploration_pulls": self.exploration_pulls,
            "pulls": None if self.pulls is None else self.pulls.counts(),
            "pulls_elsewhere": [other.to_dict() for other in self.pulls_elsewhere],
            "bound": self.bound,
            "ratio_to_paper": self.ratio_to_paper,
            "paper_policy": self.question.papers,
            "paper_horizon": self.paper_horizon,
            "ratio_to_nonreplicable": self.ratio_to_nonreplicable,
            "nonreplicable_policy": self.question.ordinary,
            "lower_bound": None if self.lower_bound is None else self.lower_bound.to_dict(),
            "ordinary_test": None if self.ordinary_test is None else self.ordinary_test.to_dict(),
            "alternatives": [other.to_dict() for other in self.alternatives],
            "batches": self.policy.describe().to_dict()["batches"],
            "instance": self.instance.to_dict(),
            "executions": self.executions,
            "seed": self.seed,
            "digest": self.protocol.digest,
        }

    def rows(self) -> list[tuple[str, str]]:
        """Return what a reader wants to know, as pairs of a label and its text."""
        name = self.policy.name if self.constants is None else f"{self.policy.name}, {self.constants} constants"
        lowest = " (plans go no lower)" if self.rho <= LEAST_RHO else ""
        winner = self.level == "winner"
        differ = "name different winners" if winner else "differ"
        return [
            ("policy", name),
            (
                "same",
                "the same winner in two runs; their pulls may differ"
                if winner
                else "the same sequence: every pull of two runs",
            ),
            ("instance", self._described()),
            ("rho", f"{self.rho:g}{lowest}: two runs {differ} with at most this probability{self._promise()}"),
            *(self._until_the_winner() if winner else self._until_the_horizon()),
            ("proved", "nothing" if self.bound is None else f"{at_least(self.bound)} of pairs of runs agree"),
            *self._limits(),
            *([] if winner else self._comparisons()),
            *(("instead", _instead(other)) for other in self.alternatives),
            ("seed", str(self.seed)),
            ("digest", self.protocol.digest),
        ]

    def _until_the_horizon(self) -> list[tuple[str, str]]:
        """Return rows for a plan that repeats every pull: when worse arms are dropped, and the regret."""
        low, high = self.regret.interval
        share = self.exploration_pulls / self.horizon
        return [
            ("horizon", f"{self.horizon:,} pulls"),
            (
                "resolved",
                f"{self.resolved:.2%} of runs drop every arm that is {self.gap:g} worse before {self.question.by:.0%} "
                f"of the horizon is spent (asked for: {self.question.resolve:.4g})",
            ),
            ("exploration", f"{self.exploration_pulls:,.0f} pulls, {share:.0%} of the horizon; mean of all runs"),
            ("expected regret", f"{amount(self.regret.mean)} (95% of runs: {amount(low)} to {amount(high)})"),
            ("of random play", in_words(self.share_of_random_play, self.instance.means, coin=self.coin_decides)),
        ]

    def _until_the_winner(self) -> list[tuple[str, str]]:
        """Return rows for a plan that repeats the winner: how often it is the best arm, and its pulls."""
        assert self.pulls is not None, "it is measured where a winner is named"
        low, high = self.regret.interval
        over = f"over {self.horizon:,} pulls, of which the winner has those that are left"
        return [
            (
                "right",
                f"{self.resolved:.2%} of runs name the best arm (asked for: {self.question.resolve:.4g})",
            ),
            ("pulls in all", self.pulls.in_words(self.arms, most=True)),
            *((other.where, other.in_words(self.arms)) for other in self.pulls_elsewhere),
            ("horizon", f"{self.horizon:,} pulls; the experiment ends as soon as the winner is named"),
            ("expected regret", f"{amount(self.regret.mean)} (95% of runs: {amount(low)} to {amount(high)}) {over}"),
        ]

    def _comparisons(self) -> list[tuple[str, str]]:
        """Return rows that compare the regret with that of other policies at the same horizon."""
        return [
            ("against", _times(self.ratio_to_nonreplicable, self.question.ordinary, "not replicable")),
            ("against", _times(self.ratio_to_paper, self.question.papers, "the paper's constants") + self._longer()),
        ]

    def _promise(self) -> str:
        return f", if the best arm does lead by {self.gap:g}" if self.question.promised else ""

    def _limits(self) -> list[tuple[str, str]]:
        """Return rows with the lower bound on pulls, and the pulls of an ordinary test."""
        rows = []
        if self.lower_bound is not None and self.lower_bound.total > 0:
            total = self.lower_bound.total
            times = f"this plan explores {amount(self.exploration_pulls / total)} times as long"
            rows.append(("at least", f"{total:,} pulls in all: no replicable policy can do with less; {times}"))
        if self.ordinary_test is not None:
            total = self.ordinary_test.total
            rows.append(("ordinary test", f"{total:,} pulls in all: {self.ordinary_test.statement}"))
        return rows

    def _described(self) -> str:
        if not self.instance.means:
            return f"infinitely many actions; those that are {self.gap:g} worse than the best are to be dropped"
        least = "at least " if self.question.actions is not None else ""
        return f"{self.arms} arms, the best one {least}{self.gap:g} better than every other"

    def _longer(self) -> str:
        if self.paper_horizon is None:
            return ""
        return f"; it would keep this promise from {self.paper_horizon:,} pulls on"

    def table(self) -> str:
        """Return the rows, and below them the batches, as tables in plain text; of many batches a few."""
        described = self.policy.describe()
        places, note = _some_of(len(described.rows))
        return f"{text_table(('plan', ''), self.rows())}\n\n{described.batches_table(places)}{note}"

    def _parts(self) -> list[Part]:
        described = self.policy.describe()
        places, note = _some_of(len(described.rows))
        return [TablePart(("plan", ""), self.rows()), *described.batch_parts(places), *([note.strip()] if note else [])]

    def records(self) -> list[dict[str, Any]]:
        """Return one flat record of the plan's numbers; `policy.describe().to_frame()` has its batches."""
        test, least = self.ordinary_test, self.lower_bound
        return [
            {
                "policy": self.policy.name,
                "constants": self.constants,
                "level": self.level,
                "arms": self.arms,
                "gap": self.gap,
                "rho": self.rho,
                "horizon": self.horizon,
                "power": self.power,
                "resolved": self.resolved,
                "regret": self.regret.mean,
                "regret_low": self.regret.interval[0],
                "regret_high": self.regret.interval[1],
                "share_of_random_play": self.share_of_random_play,
                "exploration_pulls": self.exploration_pulls,
                "bound": self.bound,
                "ordinary_test": None if test is None else test.total,
                "lower_bound": None if least is None else least.total,
                "seed": self.seed,
                "digest": self.protocol.digest,
            }
        ]


def _some_of(batches: int) -> tuple[Sequence[int], str]:
    """Return the places of all batches, or of very many some that are spread evenly, and a line that says so."""
    if batches <= _MOST_ROWS:
        return range(batches), ""
    places = sorted({round(step * (batches - 1) / (_SHOWN_ROWS - 1)) for step in range(_SHOWN_ROWS)})
    return places, f"\n({len(places)} of {batches} batches: the protocol has them all, and --json)"


def _instead(other: Alternative) -> str:
    length = "no horizon is long enough" if other.horizon is None else f"from {other.horizon:,} pulls on"
    return f"{other.policy}: {length}" + (f" ({other.caveat})" if other.caveat else "")


def _ratio(regret: float, other: float | None) -> float | None:
    return None if other is None or other <= 0.0 else regret / other


def _times(ratio: float | None, name: str | None, what: str) -> str:
    if name is None or ratio is None:
        return f"none ({what})" if name is None else f"{name} ({what}): it has no regret, or cannot be made for this"
    return f"{name} ({what}): {short(ratio)} times its regret"


RHOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


CurveProgress = Callable[[str, int, int], None]


class CurvePoint(NamedTuple):
    """The shortest horizon that keeps the plan's promise, and the expected regret there."""

    policy: str
    rho: float
    horizon: int
    regret: float


def policies_for(question: Question) -> list[str]:
    """List every replicable policy that the problem allows, and the paper's constants for comparison."""
    blank = question.blank()
    linear = isinstance(blank, LinearEnvironment)
    names = [
        name
        for name, entry in policies.REGISTRY.items()
        if entry.linear == linear and (entry.any_set or blank.means) and name != "net-threshold"
    ]
    names = names if linear else [*names, "random-threshold:paper"]
    names = [name for name in names if replace(question, policy=name).level == "sequence"]
    if question.level == "winner":  # what every pull would cost, beside it
        names = [ONE_CUT]
    return names if question.policy in names else [question.policy, *names]


def price_curves(
    question: Question,
    gap: float,
    *,
    rhos: Sequence[float] = RHOS,
    seed: int = 0,
    progress: CurveProgress | None = None,
) -> list[CurvePoint]:
    """Plan for each policy and rho; a point for each comes back, but for those for which no horizon is long enough."""
    names, tell = policies_for(question), progress or (lambda name, done, total: None)

    points = []
    for name in names:
        planner = Planner(replace(question, policy=name), seed, lambda line: None)
        found = []
        tell(name, 0, len(rhos))
        for number, (rho, horizon) in enumerate(planner.horizons(gap, rhos), 1):
            played = None if horizon is None else planner.best(Settled(gap, rho, horizon))  # as `plan` would
            if horizon is not None and played is not None:
                found.append(CurvePoint(name, rho, horizon, float(played.rehearsal.regrets.mean())))
            tell(name, number, len(rhos))
        points += sorted(found, key=lambda point: rhos.index(point.rho))
    return points
