"""The planner: feasible or not, by rehearsal, and what that leaves for the one or two numbers that are open.

Feasibility is a yes or no: with a longer horizon, a larger rho or a wider gap, yes stays yes. (Nearly: batches whose
number jumps with the horizon, as those of the paper's algorithms do, make short stretches of no behind a yes. Then the
first yes on a fixed ladder of horizons counts, refined downwards.) Numbers are compared on logarithmic scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, NamedTuple

from banditto.core.errors import BandittoError, InvalidArgument, NoPlan, Offer
from banditto.core.exact import first_true
from banditto.core.horizons import LONGEST_HORIZON, SHORTEST_HORIZON
from banditto.measure.plan.questions import EARLY_CUT, MARGINS, ONE_CUT, Question
from banditto.measure.plan.rehearsal import Allowance, Rehearsal, rehearse, rehearse_within
from banditto.measure.plan.root_finding import (
    FINEST,
    first_on_ladder,
    first_within,
    near,
    offered,
    rounded_up,
    smallest,
)
from banditto.numbers.intervals import lower_limit
from banditto.policies.policy import Policy
from banditto.problems.environment import Environment, LinearEnvironment

LEAST_RHO, LARGEST_RHO = 1e-5, 0.98
COARSE = 1.01  # what is good enough on the way to an answer
_DOUBT = 1e-3  # that a promise which a rehearsal kept does not hold
NARROWEST = 1e-6  # gap, of the widest
_GAP_STEP, _NEAR = 1.08, 1.03
_RUNGS_BELOW = 5  # of what a larger rho takes, from which on horizons are tried
_OFFERED = (0.1, 0.3)  # rhos for which a refusal says what can be had

Progress = Callable[[str], None]


class Open(NamedTuple):
    """Gap, rho and horizon as a caller gave them, None for the one to solve for; and the budget of regret, if any."""

    gap: float | None
    rho: float | None
    horizon: int | None
    regret: float | None = None


class Settled(NamedTuple):
    """Gap, rho and horizon of a plan, with nothing left open."""

    gap: float
    rho: float
    horizon: int


class Played(NamedTuple):
    """A policy, and how its rehearsal went."""

    policy: Policy[Any]
    rehearsal: Rehearsal


class Planner:
    """Solves for the number that is left open; all rehearsals have the same coins and the same noise."""

    def __init__(self, question: Question, seed: int, tell: Progress, effort: PlanEffort | None = None) -> None:
        self.question, self.seed, self.tell = question, seed, tell
        self.effort = effort or effort_for(question)
        self.widest = question.widest
        self._known: dict[Settled, Played | None] = {}
        self._last_gap: float | None = None

    def settled(self, numbers: Open) -> Settled:
        """Solve for the open number and return all three; the error, if there is no solution, says what is possible."""
        gap, rho, horizon, regret = numbers
        if regret is not None:
            return self._within(numbers, regret)
        finest = self.effort.finest
        if gap is not None and rho is not None:
            length = self.horizon(gap, rho, finest)
            if length is None:
                raise self._no_horizon(gap, rho)
            return Settled(gap, rho, length)
        assert horizon is not None, "exactly one is open"
        if gap is not None:
            share = self.rho(gap, horizon, finest)
            if share is None:
                raise self._too_short(horizon, gap=gap)
            return Settled(gap, share, horizon)
        assert rho is not None, "exactly one is open"
        lead = self.gap(rho, horizon, finest)
        if lead is None:
            raise self._too_short(horizon, rho=rho)
        return Settled(lead, rho, horizon)

    # -- one number is open -------------------------------------------------------------------------------------

    def horizon(self, gap: float, rho: float, finest: float = COARSE, begin: float = 0.0) -> int | None:
        """Find the shortest feasible horizon, to four digits; None if there is none.

        That of a policy which names a winner is the cap of all arms, and a pull for the winner: to the last digit.
        Horizons below `begin` are taken for too short where all would have to be tried.
        """
        if self.question.level == "winner":
            found = self._first_kept(lambda margin: self._capped(gap, rho, margin))
            return None if found is None else found.horizon
        return self._shortest(gap, rho, finest, begin)

    def horizons(self, gap: float, rhos: Sequence[float]) -> Iterator[tuple[float, int | None]]:
        """Find the shortest feasible horizon for each rho, the largest rho first, as fine as the answer of a plan.

        A smaller rho takes no fewer pulls, so each search begins a little below what the last one found; unless a
        policy relies on the gap, which may explore too little with a large rho.
        """
        begin = 0.0
        for rho in sorted(rhos, reverse=True):
            length = self.horizon(gap, rho, self.effort.finest, begin)
            yield rho, length
            if length is not None and not self.question.promised:
                begin = length / self.effort.step**_RUNGS_BELOW

    def _shortest(self, gap: float, rho: float, finest: float, begin: float) -> int | None:
        blank = self.question.blank()
        shortest = max(SHORTEST_HORIZON, len(blank.means), int((blank.rewards.sigma / gap) ** 2))
        low, guess = min(shortest, LONGEST_HORIZON), self.question.likely_horizon(gap, rho)

        def feasible(length: float) -> bool:
            return self.feasible(gap, rho, rounded_up(length))

        if guess is not None:
            found = near(feasible, max(guess, low), low, LONGEST_HORIZON, _NEAR, finest)
        else:
            found = first_on_ladder(feasible, low, LONGEST_HORIZON, self.effort.step, finest, begin)
        return None if found is None else rounded_up(found)

    def rho(self, gap: float, horizon: int, finest: float = COARSE) -> float | None:
        """Find the smallest feasible rho, to six digits; None if there is none."""
        if self.question.level == "winner":

            def least(margin: float) -> Settled | None:
                rho = first_within(
                    lambda value: self.question.most_pulls(gap, _digits(value), margin),
                    *(horizon, LEAST_RHO, LARGEST_RHO, finest),
                )
                return None if rho is None else Settled(gap, _digits(rho), horizon)

            kept = self._first_kept(least)
            return None if kept is None else kept.rho
        found = smallest(lambda rho: self.feasible(gap, _digits(rho), horizon), LEAST_RHO, LARGEST_RHO, finest)
        return None if found is None else _digits(found)

    def gap(self, rho: float, horizon: int, finest: float = COARSE) -> float | None:
        """Find the narrowest feasible gap, to six digits; None if there is none."""
        low, high = NARROWEST * self.widest, self.widest
        if self.question.level == "winner":

            def narrowest(margin: float) -> Settled | None:
                gap = first_within(
                    lambda value: self.question.most_pulls(_digits(value), rho, margin), horizon, low, high, finest
                )
                return None if gap is None else Settled(_digits(gap), rho, horizon)

            kept = self._first_kept(narrowest)
            return None if kept is None else kept.gap

        def feasible(gap: float) -> bool:
            return self.feasible(_digits(gap), rho, horizon)

        if self._last_gap is not None:  # whoever asks again asks for something similar
            found = near(feasible, self._last_gap, low, high, _GAP_STEP, finest)
        else:
            found = smallest(feasible, low, high, finest)
        self._last_gap = found
        return None if found is None else _digits(found)

    def _capped(self, gap: float, rho: float, margin: float) -> Settled | None:
        most = self.question.most_pulls(gap, rho, margin)
        return Settled(gap, rho, int(most)) if most <= LONGEST_HORIZON else None

    def _first_kept(self, numbers: Callable[[float], Settled | None]) -> Settled | None:
        """Return the first numbers that keep the promise, aimed at more and more power; None if none does.

        A rehearsal of each is enough, so that nothing has to be searched for by rehearsals.
        """
        for margin in MARGINS:
            found = numbers(margin)
            if found is None:
                return None
            if self.feasible(*found):
                return found
        return None

    def feasible(self, gap: float, rho: float, horizon: int) -> bool:
        """Say whether a plan with these numbers keeps the promise, with little doubt."""
        return self.best(Settled(gap, rho, horizon)) is not None

    @cached_property
    def _allowed(self) -> Allowance:
        """How many executions of a rehearsal may miss the promise."""
        executions = self.effort.executions

        def enough(kept: int) -> bool:
            return lower_limit(kept, executions, _DOUBT) >= self.question.resolve

        fewest = first_true(enough, 0, executions) if enough(executions) else executions + 1
        return Allowance(executions - fewest, self.question.by)

    def best(self, numbers: Settled) -> Played | None:
        """Play policies for these numbers on the plan's instance; the first that keeps the promise comes back, if any.

        None where no policy for these numbers keeps it.
        """
        if numbers not in self._known:
            gap, rho, horizon = numbers
            self.tell(f"rehearsal {len(self._known) + 1}: gap {gap:.4g}, rho {rho:.4g}, horizon {horizon:,}")
            self._known[numbers] = None
            try:
                instance = self.question.instance(gap)
                for policy in self.question.candidates(gap=gap, rho=rho, horizon=horizon):
                    if self.question.falls_short(policy):
                        break  # and so would one that is aimed at more
                    if not policy.describe().rows:
                        continue  # not a single test: whatever arm it plays, it plays without evidence
                    rehearsal = rehearse_within(policy, instance, gap, self.effort.executions, self.seed, self._allowed)
                    if rehearsal is not None:
                        self._known[numbers] = Played(policy, rehearsal)
                        break
            except InvalidArgument:  # a rho that is too small for the horizon, a net that is too fine
                pass
        return self._known[numbers]

    def played(self, policy: Any, instance: Environment, gap: float) -> Rehearsal:
        """Rehearse any policy on an instance, with the plan's effort and seed."""
        return rehearse(policy, instance, gap, self.effort.executions, self.seed)

    # -- two numbers are open, and there is a budget of regret ----------------------------------------------------

    def _within(self, numbers: Open, budget: float) -> Settled:
        """Return the plan with the smallest rho, or the narrowest gap, whose regret is within the budget."""
        gap, rho, horizon, _ = numbers

        @cache
        def solved(value: float) -> Settled | None:
            """Return the plan's numbers with `value` for what is varied; None if nothing is feasible there."""
            value = _digits(value)
            if horizon is not None:  # and rho is varied
                found = self.gap(value, horizon)
                return None if found is None else Settled(found, value, horizon)
            lead, share = (value, rho) if rho is not None else (gap, value)
            assert lead is not None
            length = self.horizon(lead, share)
            return None if length is None else Settled(lead, share, length)

        def regret(value: float) -> float | None:
            found = solved(value)
            played = None if found is None else self.best(found)
            return None if played is None else float(played.rehearsal.regrets.mean())

        def affordable(value: float) -> bool:
            lost = regret(value)
            return lost is not None and lost <= budget

        name, low, high = ("rho", LEAST_RHO, self._generous_rho)
        if rho is not None:
            name, low, high = ("gap", NARROWEST * self.widest, self.widest)
        value = smallest(affordable, low, high, COARSE) if affordable(high) else None
        if value is None:
            least = regret(high)
            if least is None and horizon is not None:
                raise self._too_short(horizon, gap=gap, rho=rho)
            offer = "more" if least is None else f"at least {offered(least)}, which {name} = {high:.3g} would cost"
            raise InvalidArgument("regret", budget, offer)
        found = solved(value)
        assert found is not None, "it was affordable"
        return found

    @property
    def _generous_rho(self) -> float:
        """The rho that allows most; 0.3 for a policy that relies on a gap, which explores too little with more."""
        return 0.3 if self.question.promised else LARGEST_RHO

    # -- what would be possible ------------------------------------------------------------------------------------

    def _no_horizon(self, gap: float, rho: float) -> BandittoError:
        found = []
        if (narrowest := self.gap(rho, LONGEST_HORIZON)) is not None:
            found.append(f"a gap of at least {offered(narrowest)}")
        if (least := self.rho(gap, LONGEST_HORIZON)) is not None:
            found.append(f"rho of at least {offered(least)}")
        given = f"{gap:g} with rho = {rho:g}, for which no horizon is long enough"
        return self._refusal("gap", given, found, self._offers(gap, rho, LONGEST_HORIZON))

    def _too_short(self, horizon: int, gap: float | None = None, rho: float | None = None) -> BandittoError:
        """Return the error for a horizon that is too short, with the nearest numbers that are possible."""
        found = []
        lead, share = gap or self.widest, rho or self._generous_rho
        if (shortest := self.horizon(lead, share)) is not None:
            found.append(f"at least {shortest:,} (gap {lead:.3g}, rho {share:.3g})")
        if gap is not None and (narrowest := self.gap(share, horizon)) is not None:
            found.append(f"a gap of at least {offered(narrowest)} (rho {share:.3g})")
        if rho is not None and (least := self.rho(lead, horizon)) is not None:
            found.append(f"rho of at least {offered(least)} (gap {lead:.3g})")
        what = f"a gap of {gap:g}, whatever rho is" if gap is not None else "any gap"
        given = f"{horizon:,}, too short for {what}"
        return self._refusal("horizon", given, found, self._offers(gap, rho, horizon))

    def _offers(self, gap: float | None, rho: float | None, horizon: int) -> list[Offer]:
        """Return plans near what was asked for, for a few values of rho."""
        found: list[Offer] = []
        level = self.question.level
        for share in sorted({rho or _OFFERED[0], *_OFFERED}):
            self.tell(f"what can be had with rho = {share:g}")
            lead = gap or self.widest
            length = self.horizon(lead, share)
            if length is not None:
                found.append(Offer(share, lead, length, level))
            winner = self._for_a_winner(lead, share, LONGEST_HORIZON + 1 if length is None else length)
            if winner is not None:
                found.append(Offer(share, lead, winner, "winner"))
            narrowest = self.gap(share, horizon)
            if narrowest is not None:
                found.append(Offer(share, float(offered(narrowest)), horizon, level))
        return found

    def _for_a_winner(self, gap: float, rho: float, below: int) -> int | None:
        """Find the most pulls that the same winner would take, where every pull was asked for; None elsewhere.

        None, too, where it takes as many as `below` or more: that is no offer.
        """
        if self.question.level == "winner" or self.question.actions is not None or self.question.promised:
            return None
        question = replace(self.question, policy=EARLY_CUT, by=1.0)
        if question.most_pulls(gap, rho) >= below:  # and more power takes more
            return None
        found = Planner(question, self.seed, self.tell, PlanEffort(4096, 1.15, COARSE)).horizon(gap, rho)
        return found if found is not None and found < below else None

    def _refusal(self, argument: str, given: str, found: list[str], offers: list[Offer]) -> BandittoError:
        if any(offer.level != self.question.level for offer in offers):
            found = [*found, "same = winner, which takes fewer pulls on average"]
        allowed = "; or ".join(found) or f"another policy than {self.question.policy}"
        return NoPlan(argument, given, allowed, offers)


def _digits(value: float) -> float:
    """Round a solved number to six digits."""
    return float(f"{value:.6g}")


_FAILURES = 100  # that a rehearsal expects of a plan which just keeps its promise


class PlanEffort(NamedTuple):
    """How many executions a rehearsal has, how far apart horizons are tried, and how fine the answer is."""

    executions: int
    step: float
    finest: float


def effort_for(question: Question) -> PlanEffort:
    """Choose the effort: more for what is quick; constants that are searched for and designs take their time."""
    blank = question.blank()
    fewest = math.ceil(_FAILURES / (1.0 - question.resolve))  # else luck would decide
    if isinstance(blank, LinearEnvironment):
        return (
            PlanEffort(max(1024, fewest // 2), 2.0, 1.01)
            if blank.means
            else PlanEffort(max(192, fewest // 10), 2.0, 1.02)
        )
    if question.level == "winner":  # a few dozen batches, and rehearsals of the answer alone
        return PlanEffort(max(min(32_768, 200_000 // len(blank.means)), fewest), 1.15, FINEST)
    if question.policy == ONE_CUT:  # two batches and no search
        return PlanEffort(max(min(65_536, 1_600_000 // len(blank.means)), fewest), 1.15, FINEST)
    usual = min(8192, max(2048, 400_000 // len(blank.means)))
    return PlanEffort(max(usual, fewest), 1.15, FINEST)
