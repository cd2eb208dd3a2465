"""What a comparison found, in a sentence or two that stand at the top of its table and of its report."""

from __future__ import annotations

from collections.abc import Sequence

from banditto.core.text import hundredths
from banditto.measure.certificate import Certificate, Verdict
from banditto.measure.random_play import percent

Labelled = tuple[str, Certificate]
_MOST_NAMED = 8


def finding(rows: Sequence[Labelled]) -> str:
    """Say which policies replicate, which do not, and what the cheapest of those that do costs."""
    judged: dict[Verdict, list[Labelled]] = {"PASS": [], "CONSISTENT": [], "FAIL": [], "INCONCLUSIVE": []}
    for row in rows:
        judged[row[1].verdict].append(row)
    wanted = {certificate.rho for _, certificate in rows}
    enough = f"in {hundredths(1.0 - wanted.pop(), 0)} of pairs or more" if len(wanted) == 1 else "as often as they must"
    parts = []
    if judged["PASS"]:
        parts.append(f"Two runs with the same seed agree {enough} with {_named(judged['PASS'])}.")
    if judged["FAIL"]:
        begins = "They do not with" if judged["PASS"] else f"Two runs with the same seed do not agree {enough} with"
        parts.append(f"{begins} {_named(judged['FAIL'])}.")
    if judged["CONSISTENT"]:
        said = "Consistent with their proof, but too few pairs to show it by measurement alone"
        parts.append(f"{said}: {_named(judged['CONSISTENT'])}.")
    if judged["INCONCLUSIVE"]:
        parts.append(f"Too few pairs to tell: {_named(judged['INCONCLUSIVE'])}.")
    agreeing = [*judged["PASS"], *judged["CONSISTENT"]]
    coins = [label for label, certificate in agreeing if certificate.coin_decides]
    if coins:
        parts.append(f"But here {_listed(coins)} might as well toss a coin: regret is that of random play.")
    late = [label for label, certificate in agreeing if certificate.warning and label not in coins]
    if late:
        parts.append(
            f"With {_listed(late)} nearly all pulls are spent before the decision, so its use comes after them."
        )
    able = [row for row in agreeing if row[0] not in (*coins, *late)]
    if len({certificate.horizon for _, certificate in able}) == 1:
        parts += _cheapest(able)
    if len({certificate.horizon for _, certificate in rows}) > 1:
        parts.append("Horizons differ: compare regrets only between rows with the same one.")
    return " ".join(parts)


def _named(rows: Sequence[Labelled]) -> str:
    """List policies with the share of their pairs that agree; of very many the first few."""
    words = [f"{label} ({hundredths(certificate.agreement)})" for label, certificate in rows[:_MOST_NAMED]]
    if len(rows) > _MOST_NAMED:
        words.append(f"{len(rows) - _MOST_NAMED} more")
    return _listed(words)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _cheapest(rows: Sequence[Labelled]) -> list[str]:
    """Say whose regret is the smallest share of random play; nothing where there is no choice, or no share."""
    priced = [(row[1].share_of_random_play, row[0], row[1].level) for row in rows]
    known = sorted((share, label, level) for share, label, level in priced if share is not None)
    if len(known) < 2:
        return []
    share, label, level = known[0]
    cheapest = f"The cheapest of those that agree is {label}, with {percent(share)} of the regret of random play"
    if level != "winner":
        return [f"{cheapest}."]
    every = next((other for other in known if other[2] == "sequence"), None)
    more = "" if every is None else f"; if every pull must be the same, {every[1]}, with {percent(every[0])}"
    return [f"{cheapest}, if the same winner is enough{more}."]
