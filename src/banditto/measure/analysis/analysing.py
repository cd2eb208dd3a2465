"""From what was seen to an analysis: by numbers of pulls that were known in advance, or at any time."""

from __future__ import annotations

from collections.abc import Sequence

from banditto.core.errors import InvalidArgument
from banditto.core.exact import Real, real
from banditto.engine.observations import Observations, check_told
from banditto.measure.analysis import stages
from banditto.measure.analysis.analysis import Analysis, Coverage
from banditto.measure.analysis.any_time import AnyTime
from banditto.measure.analysis.estimates import ArmEstimate, Difference
from banditto.measure.analysis.planned import Planned, limits_for
from banditto.policies.policy import own_level


def checked_confidence(confidence: Real) -> float:
    """Check that a confidence is allowed, and return it as a float."""
    allowed = "a number between 0.5 and 1, both excluded"
    value = real(confidence, "confidence", allowed)
    if not 0.5 < value < 1.0:
        raise InvalidArgument("confidence", confidence, allowed)
    return value


def analysis_of(seen: Observations, confidence: float = 0.95, binary: bool | None = None) -> Analysis:
    """Estimate every arm and the winner against all others, with intervals that hold at once.

    `binary` says whether rewards can be nothing but the ends of their range; by default, whether all of them were.
    """
    confidence = checked_confidence(confidence)
    check_told(seen.names, seen.pulls)
    if binary is None:
        binary = seen.binary
    elif binary and not seen.binary:
        raise InvalidArgument("binary", True, "False: some rewards are between the ends of their range")
    made: Planned | AnyTime
    if stages.has_stages(seen.policy):
        kind = limits_for(seen.rewards, binary, all(batch.squares is not None for batch in seen.batches))
        made = Planned(seen, seen.policy, confidence, kind)
        coverage = Coverage(proved=True, method=kind.words, assumes=kind.assumes, design=made.design)
    else:
        made = AnyTime(seen, confidence)
        method, assumes = made.method
        coverage = Coverage(proved=True, method=method, assumes=assumes, design="any time")
    best, arms = made.compared(), made.arms()
    return Analysis(
        observations=seen,
        arms=arms,
        differences=with_ratios(arms, made.against_all(best), seen.ends),
        compared=best,
        confidence=confidence,
        level=own_level(seen.policy),
        coverage=coverage,
    )


def with_ratios(
    arms: Sequence[ArmEstimate], differences: Sequence[Difference], ends: tuple[float, float] | None
) -> tuple[Difference, ...]:
    """Add the ratio of the two means to each difference, with an interval, if values begin at 0."""
    if ends is None or ends[0] != 0.0:
        return tuple(differences)
    known = {arm.name: arm for arm in arms}
    return tuple(one.with_ratio(known[one.arm], known[one.against]) for one in differences)
