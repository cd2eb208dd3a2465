"""The least regret on given arms of any policy that is replicable on all arms and finds one that leads by their gap.

To find it is to give it more than half of the pulls, with a probability of 0.95. The bound is Theorem 3 or 4 of
docs/lower-bounds.md, arm by arm: a worse arm must be pulled until the policy would have noticed that it is the best.
Where nothing is proved there is none: equal arms, rewards that are neither 0/1 nor Gaussian, actions with features, and
0/1 arms of which the best can lead, but not be led by the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from banditto.measure.certificate import Certificate
from banditto.measure.crossing_paths import Demand, coin_moves, normal_arm_moves

POWER = 0.95  # that of `lower_bound`, `OneCut` and `plan`
_ROUNDING = 2.0**-40  # of the means: gaps below are none, and rates may be so much too high


def least_regret(
    means: Sequence[float], rho: float, *, power: float = POWER, sigma: float | None = None, top: float = 1.0
) -> float | None:
    """Return the regret of Theorem 3 (Gaussian, this sigma) or 4 (rates up to `top`); None if neither applies."""
    gap = lead(means)
    if gap is None:
        return None
    best, asked = max(means), Demand(rho, power)
    worse = sorted(means)[:-1]
    if sigma is not None:
        return fsum((best - mean) * normal_arm_moves(asked, (best - mean + gap) / sigma) for mean in worse)
    if best + gap > top * (1.0 + _ROUNDING):
        return None
    return fsum((best - mean) * coin_moves(asked, mean, min(top, best + gap)) for mean in worse)


def lead(means: Sequence[float]) -> float | None:
    """Return by how much the best mean leads the second best; None on a tie."""
    if len(means) < 2:
        return None
    second, best = sorted(means)[-2:]
    return best - second if best - second > _ROUNDING * max(abs(best), abs(second)) else None


def least_regret_of(certificate: Certificate) -> float | None:
    """Return the least regret of policies with this policy's proved rho on its arms; None where nothing is proved."""
    family, proved = _family(certificate), certificate.guarantee
    if certificate.level != "sequence":  # the bound is for policies that repeat every pull
        return None
    if family is None or certificate.bound is None or proved is None or proved.promised_gap is not None:
        return None
    world = certificate.environment
    top = float(str(certificate.protocol.settings.get("rate_at_most", 1)))
    return least_regret(world["means"], certificate.rho, sigma=world.get("sigma"), top=top)


def _family(certificate: Certificate) -> str | None:
    """Name the arms for which the policy is proved replicable; None if the theorems do not cover them."""
    world = certificate.environment
    if "theta" in world or "means" not in world:
        return None
    match world["name"]:
        case "bernoulli":
            rate = certificate.protocol.settings.get("rate_at_most")
            return "arms with 0/1 rewards" + ("" if rate is None else f" and rates of at most {rate}")
        case "gaussian":
            return f"Gaussian arms with sigma {world['sigma']:g}"
        case _:
            return None


def least_in_words(rows: Sequence[tuple[str, Certificate]]) -> list[str]:
    """Return a sentence for each rho and family among labelled rows, with each policy's regret as a multiple."""
    multiples: dict[str, list[tuple[str, float]]] = {}
    for label, certificate in rows:
        least, gap = least_regret_of(certificate), lead(certificate.environment.get("means", ()))
        if least is None or gap is None:
            continue
        said = (
            f"No policy that is replicable with rho = {certificate.rho:g} on all {_family(certificate)}, and that with "
            f"probability {POWER:g} gives more than half of its pulls to one that leads by {gap:.3g}, can do with less "
            f"regret here than {_amount(least)}."
        )
        multiples.setdefault(said, []).append((label, certificate.regret.mean / least))
    sentences = []
    for said, found in multiples.items():
        listed = ", ".join(f"{label} {_amount(ratio)}" for label, ratio in found)
        fails = " (below 1: it does not find such an arm so surely)" if any(ratio < 1.0 for _, ratio in found) else ""
        sentences.append(f"{said} In multiples of that: {listed}{fails}.")
    return sentences


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.2g}"
