"""The audit report of a live experiment: one HTML file that opens anywhere.

What the experiment taught comes first. The other headings follow CONSORT-ACE, the checklist for reports of trials with
an adaptive design (Dimairo et al., BMJ and Trials 2020), as far as a log can answer; what only the people who ran the
trial know is named at the end.
"""

from __future__ import annotations

import numpy as np

from banditto.core.text import short
from banditto.live.event_log import Event
from banditto.live.export import VerifiedLog
from banditto.live.folded_log import Decision, FoldedLog
from banditto.live.promises import contradictions
from banditto.live.registration import Registration
from banditto.live.replicate import grounds_of
from banditto.live.ticket_book import LATE, MISSING, STATES, TOLD
from banditto.live.tickets import Ticket
from banditto.live.verify import Verification, clock_sentence
from banditto.live.winners import found_by
from banditto.measure.analysis.analysis import Analysis
from banditto.policies.plain_words import LETTERS, TERMS, column_keys, readable
from banditto.policies.policy import GUARANTEE_HEADER, PlacedPolicy
from banditto.report import page
from banditto.report.taught import TAUGHT, taught

_OPEN_ITEMS = (
    "Title, abstract, background and objectives (items 1 and 2)",
    "Participants, settings and interventions (items 4 and 5)",
    "Outcomes, how and when they were assessed (item 6)",
    "Blinding, and who could see interim results (items 11 and 11c)",
    "Baseline data, harms, limitations and interpretation (items 15, 19 to 22)",
    "Registration and funding (items 23 and 25)",
)
_MOST_CHANGES = 1000  # lines of a report, which must open in a browser
_RULES = ("rule", "default", "window", "end", "final batch", "final choice")  # what policies say of their decisions


_LEVELS = {
    "sequence": "sequence: two runs make the same pulls",
    "winner": "winner: two runs name the same winner, after pulls that may differ",
}


def audit_page(log: VerifiedLog) -> str:
    """Return the audit report of a log as HTML, from its events that verify."""
    found, fold = log.verification, log.fold
    title = f"Audit report: {found.name}"
    parts = [page.heading(1, title), _verdict(found)]
    if fold is None:  # not even the registration can be trusted
        return page.page(title, parts)
    registration, analysis = fold.registration, log.analysis()
    parts += [
        *([] if analysis is None else taught(analysis)),
        *_summary(found, fold),
        *_design(registration, found),
        *_randomisation(registration),
        *_adaptations(found, registration),
        *_flow(fold),
        *_outcomes(analysis, found),
        *_changes(fold),
        *_timeline(fold),
        page.heading(2, "What this report cannot say"),
        page.paragraph("A log knows nothing of these items of the checklist; they are for the authors:"),
        page.table(("item",), [(item,) for item in _OPEN_ITEMS], "text"),
    ]
    return page.page(title, parts)


def _verdict(found: Verification) -> str:
    if found.holds:
        clock = "" if found.clock_steps is None else f" {clock_sentence(found.clock_steps)}"
        return page.paragraph(f"The log verifies: {found.events:,} events, replayed from the protocol alone.{clock}")
    where = "" if found.event is None else f" at event {found.event}"
    below = "" if found.event is None else " What follows is from the events before that one."
    return page.paragraph(f"The log does NOT verify{where}: {found.problem}.{below}", "note")


def _summary(found: Verification, fold: FoldedLog) -> list[str]:
    """Return the HTML parts on the registration: digest, head, times and software."""
    versions = "; ".join(", ".join(f"{key} {value}" for key, value in line.items()) for line in fold.versions)
    rows = [
        ("digest of the registration", found.digest),
        ("head of the log", found.head),
        ("registered", _moment(fold.timeline[0].time)),
        ("last event", _moment(fold.last.time)),
        ("software, in the order of its first events", versions or "none yet"),
    ]
    return [page.heading(2, "Protocol and registration (item 24)"), page.table(("what", "value"), rows, "text")]


def _design(registration: Registration, found: Verification) -> list[str]:
    """Return the HTML parts on the design: arms, horizon, decision rules, and what is proved."""
    protocol = registration.protocol
    policy = registration.policy()
    guarantee = policy.guarantee()
    differ = "name different winners" if guarantee.level == "winner" else "differ"
    rows = [
        ("policy", f"{protocol.policy}, decision version {protocol.decision_version}"),
        ("arms", ", ".join(registration.arm_names)),
        ("horizon", f"{protocol.horizon:,} pulls"),
        ("rewards", registration.rewards.text()),
        ("level", _LEVELS[guarantee.level]),
        ("rho", f"{protocol.rho}: two runs of this protocol {differ} with at most this probability"),
        ("seed of the coins", str(protocol.seed)),
    ]
    terms = [
        (term.name, short(term.value), TERMS.get(term.name, term.statement), term.statement) for term in guarantee.terms
    ]
    description = policy.describe()
    headings, cells, _ = readable(description.header, description.rows)
    facts = description.facts
    broken = contradictions(registration, [(decision.counts, decision.totals) for decision in found.decisions])
    return [
        page.heading(2, "Trial design and planned adaptations (items 3a and 3b)"),
        page.table(("what", "value"), rows, "text"),
        page.heading(2, "Sample size and decision rules (items 7a and 7b)"),
        page.table(headings, cells),
        page.paragraph(column_keys(description.header), "soft"),
        *(page.paragraph(f"{key}: {facts[key]}", "soft") for key in _RULES if key in facts),
        page.heading(2, "Statistical methods (item 12)"),
        page.paragraph(f"Proved: two runs {differ} with probability at most {guarantee.total:.4g}. {guarantee.note}"),
        *(page.paragraph(f"The promise is broken. {line[0].upper()}{line[1:]}.", "note") for line in broken),
        page.table((*GUARANTEE_HEADER, "formula"), terms, "text"),
        page.paragraph(LETTERS, "soft"),
    ]


def _randomisation(registration: Registration) -> list[str]:
    return [
        page.heading(2, "Randomisation: sequence generation and allocation (items 8 to 10)"),
        page.paragraph(
            "Arms come in permuted blocks, each block permuted by coins of its own address under the seed above."
            " Whoever has the registration can compute every assignment again; nobody could choose one."
        ),
    ]


def _adaptations(found: Verification, registration: Registration) -> list[str]:
    """Return the HTML parts on each decision: means, cuts and coins, and what followed."""
    parts = [page.heading(2, "Interim decisions that were taken (items 14b and 14c)")]
    if not found.decisions:
        return [*parts, page.paragraph("No batch is complete yet.")]
    parts += _lead(found, registration)
    names, ends = registration.arm_names, registration.rewards
    if registration.scales and (ends.low, ends.high) != (0, 1):
        units = f"(reward - {ends.low:g}) / ({ends.high:g} - {ends.low:g})"
        parts.append(page.paragraph(f"Means and cuts here are those that the policy sees, of {units}.", "soft"))
    if isinstance(registration.policy(), PlacedPolicy):
        own = "This policy compares least-squares values, of all arms' rewards; the means here are each arm's own."
        parts.append(page.paragraph(own, "soft"))
    for place, decision in enumerate(found.decisions):
        numbers = grounds_of(registration, found.decisions[: place + 1])
        rows = [
            (
                names[arm],
                f"{count:,}",
                short(numbers.side.means[names[arm]]),
                short(numbers.side.behind[names[arm]]),
                _next(decision, arm),
            )
            for arm, count in enumerate(decision.counts)
            if count
        ]
        mean = "mean of all batches so far" if numbers.so_far else "mean"
        cuts = ", ".join(f"{key} at {short(value)}" for key, value in numbers.cuts.items())
        tosses = ", ".join(f"{toss.purpose} {toss.value:.6f}" for toss in numbers.coins[:6])
        parts += [
            page.paragraph(f"Batch {decision.batch}, decided {_moment(decision.time)} (event {decision.event})."),
            page.table(("arm", "rewards", mean, "behind the best", "pulls in the next batch"), rows),
            page.paragraph(f"Cuts: {cuts or 'none'}. Coins: {tosses or 'none'}.", "soft"),
        ]
    return parts


def _lead(found: Verification, registration: Registration) -> list[str]:
    """Return a paragraph on the best mean's lead and the lead that it needed; empty if the policy does not tell."""
    if found.decisions[-1].winner is None:
        return []
    how = found_by(registration, [(decision.counts, decision.totals) for decision in found.decisions])
    if how is None:
        return []
    led = f"At the last look the best mean led by {short(how.lead)}"
    if how.decided_by == "lead":
        return [page.paragraph(f"{led}, and more than {short(how.needed)} was needed.")]
    return [page.paragraph(f"{led}, and not by more than {short(how.needed)}, so that the shared default was named.")]


def _moment(time: str) -> str:
    """Return a time of the log in a form for people."""
    return f"{time[:10]} {time[11:19]} UTC"


def _next(decision: Decision, arm: int) -> str:
    if decision.winner is not None:
        return "the winner" if arm == decision.winner else "0"
    return f"{decision.next_pulls[arm]:,}" if decision.next_pulls else "the end"


def _flow(fold: FoldedLog) -> list[str]:
    """Return the HTML parts that count each arm's tickets, rewards and losses."""
    names = fold.registration.arm_names
    counts = np.zeros((len(STATES), len(names)), dtype=np.int64)
    for batch in fold.book.batches:
        counts += fold.book.counts(batch, len(names))
    totals = [event.content for event in fold.timeline if event.kind == "totals"]
    told = counts[TOLD] + sum((np.array(content["counts"]) for content in totals), np.zeros(len(names), dtype=np.int64))
    columns = (counts.sum(axis=0), told, counts[MISSING] + counts[LATE], counts[LATE])
    rows = [(name, *(f"{column[arm]:,}" for column in columns)) for arm, name in enumerate(names)]
    parts = [
        page.heading(2, "Participant flow and numbers analysed (items 13 and 16)"),
        page.table(("arm", "tickets", "rewards that count", "missing", "came too late, excluded"), rows),
    ]
    summed = [str(content["batch"]) for content in totals]
    if summed:
        batches = f"{'Batches' if len(summed) > 1 else 'Batch'} {', '.join(summed)}"
        words = "told as totals: the rewards were added up elsewhere, and no tickets were handed out for them."
        parts.append(page.paragraph(f"{batches} {'were' if len(summed) > 1 else 'was'} {words}", "soft"))
    return parts


def _outcomes(analysis: Analysis | None, found: Verification) -> list[str]:
    """Return the HTML parts on estimates: where they stand, or why there are none."""
    parts = [page.heading(2, "Outcomes and estimation (item 17)")]
    if analysis is None:
        said = "Nothing can be estimated from the batches so far." if found.decisions else "No batch is complete yet."
        return [*parts, page.paragraph(said)]
    note = (
        f"Estimates with intervals stand at the top ({TAUGHT}). There is no table of means over all batches: an arm"
        " that looks worse than it is gets dropped and cannot recover, so that such means lean away from the truth."
    )
    return [*parts, page.paragraph(note)]


def _changes(fold: FoldedLog) -> list[str]:
    """Return the HTML parts that list corrections, exclusions and stopping."""
    parts = [page.heading(2, "Corrections, exclusions and stopping (items 3c and 14b)")]
    rows = [(_moment(event.time), *change) for event in fold.changes for change in _change(event, fold)]
    if not rows:
        return [*parts, page.paragraph("None.")]
    parts.append(page.table(("time", "what", "change", "reason"), rows[:_MOST_CHANGES], "text"))
    if len(rows) > _MOST_CHANGES or fold.change_events > len(fold.changes):
        said = f"These are the first {_MOST_CHANGES:,}. The log has them all: `banditto export --format json`."
        parts.append(page.paragraph(said, "soft"))
    return parts


def _change(event: Event, fold: FoldedLog) -> list[tuple[str, str, str]]:
    """Return a row for each thing that an event changed: what, how, and why."""
    content, name = event.content, fold.ids.write
    if event.kind == "correct":
        ticket = name(Ticket(*content["ticket"]))
        return [(f"correction of {ticket}", f"{content['before']!r} to {content['after']!r}", content["reason"])]
    if event.kind == "missing":
        return [(f"missing {name(Ticket(*content['ticket']))}", "given up", content["reason"])]
    if event.kind == "lost":
        by = f" (said by {content['by']})" if content["by"] else ""
        return [(f"missing {name(Ticket(*place))}", "given up", content["reason"] + by) for place in content["tickets"]]
    if event.kind == "late":
        late = [(name(Ticket(*place)), reward) for *place, reward in content["rewards"]]
        return [(f"late {ticket}", f"{reward!r}, excluded", "it was given up before") for ticket, reward in late]
    if event.kind == "stop":
        return [("stopped", "before the horizon", content["reason"])]
    return []


def _timeline(fold: FoldedLog) -> list[str]:
    rows = [(_moment(event.time), event.kind, str(event.number)) for event in fold.timeline]
    return [page.heading(2, "Timeline"), page.table(("time", "what", "event"), rows, "text")]
