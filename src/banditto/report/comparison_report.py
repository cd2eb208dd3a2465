"""A comparison as files: report.html, figures as PNG and SVG, raw results, and the study that rebuilds them."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from banditto.core.text import amount, hundredths, short, without_empty
from banditto.measure.certify import DEFAULT_PAIRS
from banditto.measure.compare import CompareProgress
from banditto.measure.comparison import Comparison, explained, least_explained, setting, shown
from banditto.measure.study_file import StudyFile
from banditto.policies.plain_words import LETTERS, TERMS
from banditto.policies.policy import GUARANTEE_HEADER
from banditto.problems.environment import LinearEnvironment
from banditto.problems.environments.resampled import Resampled
from banditto.report import page
from banditto.report.figures import agreement_figure, divergence_figure, guarantee_figure, regret_figure
from banditto.report.page import Picture
from banditto.report.ribbons import ribbon_figure
from banditto.report.style import LOOKS, Look, as_png, as_svg, drawn_in

Files = dict[str, str | bytes]
Draw = Callable[[Look], Figure | None]
DRAWING = "drawing the report"


def raw_files(comparison: Comparison, study: StudyFile | None, content: Mapping[str, Any]) -> Files:
    """Make the results and the study that rebuilds them, which are there before anything is drawn.

    There is no study of policies, or of an environment, that a study file cannot name.
    """
    files: Files = {"results.json": json.dumps(content, indent=2, allow_nan=False) + "\n"}
    files["results.csv"] = _csv(comparison.records())
    files["curves.csv"] = _csv(_curve_records(comparison))
    files["divergence.csv"] = _csv(_divergence_records(comparison))
    if study is not None:
        files |= _study_files(comparison, _complete(comparison, study))
    return files


def _study_files(comparison: Comparison, study: StudyFile) -> Files:
    """Make the study and the files that it names."""
    files: Files = {"study.toml": study.to_toml()}
    arms = comparison.environment.to_dict().get("arms")
    if isinstance(comparison.environment, Resampled):
        files["log.csv"] = comparison.environment.log.to_csv()
    if arms is not None:
        files["arms.json"] = json.dumps({"arms": arms}, indent=2) + "\n"
    world = comparison.environment
    if study.actions == "actions.csv" and isinstance(world, LinearEnvironment):
        rows = world.actions.to_array().tolist()  # as they are used, to the last bit
        files["actions.csv"] = "".join(",".join(repr(value) for value in row) + "\n" for row in rows)
    if study.action_set == "action_set.json" and isinstance(world, LinearEnvironment):
        files["action_set.json"] = json.dumps(world.actions.to_dict(), indent=2) + "\n"
    return files


def drawn_files(
    comparison: Comparison, study: StudyFile | None, content: Mapping[str, Any], progress: CompareProgress | None = None
) -> Files:
    """Return report.html and its figures, by name; `content` is what `--json` prints."""
    pictures, files = _pictures(comparison, progress)
    whole = None if study is None else _complete(comparison, study)
    files["report.html"] = _report(comparison, whole, content, pictures)
    return files


def _complete(comparison: Comparison, study: StudyFile) -> StudyFile:
    """Return the study with every default written out, so that other defaults could not change it."""
    first = comparison.entrants[0].certificate
    world = comparison.environment
    from_file = "arms" in world.to_dict()
    if isinstance(world, Resampled):
        ends = (world.log.low, world.log.high)
        study = replace(study, log="log.csv", reward_range=ends, log_digest=world.log.digest)
        study = replace(study, arm_column=None, reward_column=None)
    else:
        study = replace(study, environment="discrete:arms.json" if from_file else study.environment or "bernoulli")
    return replace(
        study,
        actions=None if study.actions is None else "actions.csv",
        action_set="action_set.json" if (study.action_set or "").endswith(".json") else study.action_set,
        normalise=None,
        pairs=max(study.pairs or DEFAULT_PAIRS, *(row.certificate.pairs for row in comparison.entrants)),  # it may grow
        rounds=comparison.rounds,
        seed=first.seed,
        confidence=first.confidence,
    )


# -- figures ----------------------------------------------------------------------------------------------------------


def _pictures(comparison: Comparison, progress: CompareProgress | None) -> tuple[list[Picture], Files]:
    """Draw all figures in every look; return them for the page, and as files by name."""
    views = [(row.label, row.view) for row in comparison.entrants if row.view is not None]
    shares = [row.certificate.agreement for row in comparison.entrants if row.view is not None]
    world = comparison.environment
    means, names = world.means, world.log.arms if isinstance(world, Resampled) else ()
    drawings: list[tuple[str, Draw]] = [
        ("agreement", lambda look: agreement_figure(comparison, look)),
        ("regret", lambda look: regret_figure(comparison, look)),
        ("ribbons", lambda look: ribbon_figure(views, means, look, names, shares)),
        ("divergence", lambda look: divergence_figure(comparison, look)),
        ("guarantee", lambda look: guarantee_figure(comparison, look)),
    ]
    pictures: list[Picture] = []
    files: Files = {}
    for done, (name, draw) in enumerate(drawings):
        if progress is not None:
            progress(DRAWING, done, len(drawings))
        looks: dict[tuple[str, str], bytes] = {}
        for key, look in LOOKS.items():
            with drawn_in(look):
                figure = draw(look)
                if figure is None:
                    break
                looks[key] = as_svg(figure)
                if key == ("light", "wide"):
                    files[f"figures/{name}.svg"] = looks[key]
                    files[f"figures/{name}.png"] = as_png(figure)
        if looks:
            pictures.append(Picture(*_words(name, comparison), looks))
    if progress is not None:
        progress(DRAWING, len(drawings), len(drawings))
    return pictures, files


def _words(name: str, comparison: Comparison) -> tuple[str, str, str]:
    """Return a figure's heading, its description for readers who cannot see it, and its caption."""
    rows = comparison.entrants
    level = f"{100 * rows[0].certificate.confidence:g}%"
    winners = ", ".join(row.label for row in rows if row.certificate.level == "winner")
    but = f" Pairs of {winners} are compared by the winner that they name." if winners else ""
    match name:
        case "agreement":
            spoken = ", ".join(f"{row.label} {hundredths(row.certificate.agreement)}" for row in rows)
            return (
                "Do two labs pull the same arms?",
                f"Agreement of pairs: {spoken}.",
                "The share of pairs whose two executions, with the same coins and fresh rewards, pulled the same arm"
                f" in every round.{but} Bars are {level} intervals. Right of the red line a policy replicates.",
            )
        case "regret":
            spoken = ", ".join(f"{row.label} {amount(row.certificate.regret.mean)}" for row in rows)
            drawn = ", ".join(f"{row.label} {row.curve.executions:,}" for row in rows if row.curve is not None)
            return (
                "What does it cost?",
                f"Mean regret at the end: {spoken}.",
                "Regret after so many pulls: the mean of the executions drawn, and the band that holds nine of ten."
                " The dashed line is random play. Lines end at each policy's horizon."
                f" Executions drawn: {drawn}; the table's means are over all.",
            )
        case "ribbons":
            seen = [(row.label, row.view) for row in rows if row.view is not None]
            spoken = ", ".join(f"{label} {'the same' if view.same else 'different'}" for label, view in seen)
            typical = " Titles say how many of all pairs agree."
            return (
                "One pair, side by side",
                f"The first pair of each policy: {spoken}.",
                "The first pair of each policy, not a chosen one. Time runs to the right on a logarithmic axis; the"
                f" thin strip is red where the two labs pull different arms.{typical}"
                + (f" What is left once {winners} has named a winner is the winner's." if winners else ""),
            )
        case "divergence":
            never = ", ".join(row.label for row in rows if not row.certificate.mismatches)
            return (
                "When do they part?",
                "The share of pairs that have parted, by number of pulls.",
                "The share of pairs whose arms have differed by then. A replicable policy stays below the dashed line"
                f" at rho to the end. Both axes are logarithmic.{but}"
                + (f" No pair parted: {never}." if never else ""),
            )
        case _:
            return (
                "What is proved?",
                "Terms of each guarantee against rho.",
                "The terms of each policy's guarantee: a bound on the probability that two executions differ, whatever"
                " the rewards (or under the promise that is named below). It holds where the bar ends left of the red"
                " line; ordinary policies have none.",
            )


# -- the page ---------------------------------------------------------------------------------------------------------


def _report(
    comparison: Comparison, study: StudyFile | None, content: Mapping[str, Any], pictures: Sequence[Picture]
) -> str:
    rows = comparison.entrants
    number = "1 policy" if len(rows) == 1 else f"{len(rows)} policies"
    arms = len(comparison.environment.means)
    title = content["title"] or f"{number} on {f'{arms} arms' if arms else 'infinitely many actions'}"
    parts = [
        page.heading(1, title),
        page.paragraph(comparison.finding),
        page.paragraph(_opening(comparison), "soft"),
    ]
    if comparison.interrupted:
        parts.append(page.paragraph("This run was interrupted; what is shown was finished.", "note"))
    parts += [page.paragraph(warning, "note") for warning in content["warnings"]]
    _, header, lines = shown(comparison)
    first = ("policy", "verdict", "agree", "of random play", "proved", "same")  # a telephone shows the first few
    order = sorted(range(len(header)), key=lambda column: (header[column] not in first, _place(header[column], first)))
    heads, cells = without_empty([header[k] for k in order], [[line[k] for k in order] for line in lines])
    parts.append(page.table([str(head) for head in heads], [[str(cell) for cell in line] for line in cells], marked=1))
    parts.append(
        page.paragraph(
            "A verdict is about this environment: PASS if the exact interval for agreement begins above 1 - rho, FAIL "
            "if it ends below; between them CONSISTENT with a proof that the pairs do not contradict, or INCONCLUSIVE. "
            "From 90% of random play on a coin would do as well." + explained(comparison),
            "soft",
        )
    )
    parts += [page.paragraph(sentence) for sentence in least_explained(comparison)]
    parts += [page.picture(figure) for figure in pictures]
    if len(set(comparison.environment.means)) == 1:
        parts.append(page.paragraph("All arms are equally good, so nobody has any regret.", "soft"))
    terms = [
        (row.label, term.name, short(term.value), TERMS.get(term.name, term.statement), term.statement)
        for row in rows
        if row.certificate.guarantee is not None
        for term in row.certificate.guarantee.terms
    ]
    if terms:
        parts.append(page.table(("policy", *GUARANTEE_HEADER, "formula"), terms, "text"))
        parts.append(page.paragraph(LETTERS, "soft"))
    for row in rows:
        if row.certificate.guarantee is not None and row.certificate.guarantee.note:
            parts.append(page.paragraph(f"{row.label}: {row.certificate.guarantee.note}", "soft"))
    parts += _rebuilding(comparison, study, content)
    return page.page(title, parts)


def _place(name: str, first: Sequence[str]) -> int:
    return first.index(name) if name in first else 0


def _opening(comparison: Comparison) -> str:
    """Return the first paragraph: the environment, how pairs were played, and the budget."""
    world = comparison.environment
    logged = f" {world.explained()}" if isinstance(world, Resampled) else ""
    told = setting(comparison)
    return (
        f"{told[0].upper()}{told[1:]}{logged} Each policy was run in pairs: the two executions of a pair share their "
        f"coins and see fresh rewards.{_budget(comparison)}"
    )


def _budget(comparison: Comparison) -> str:
    """Write a sentence on per-round policies, if there are any that got fewer pairs or a shorter horizon."""
    rows = [row.certificate for row in comparison.entrants]
    longest, most = max(row.horizon for row in rows), max(row.pairs for row in rows)
    cut = [row for row in rows if row.divergence_unit == "round" and (row.horizon < longest or row.pairs < most)]
    if not cut:
        return ""
    shorter = "horizons are shorter and their pairs" if any(row.horizon < longest for row in cut) else "pairs are"
    given = f"Policies that choose round by round were given {comparison.rounds:,} rounds each in all"
    return f" {given}, so their {shorter} fewer."


def _rebuilding(comparison: Comparison, study: StudyFile | None, content: Mapping[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    digests = [(row.label, row.certificate.digest) for row in comparison.entrants]
    how = [
        page.paragraph(
            "No study file can name these policies on this environment: they were made in Python. The digests below "
            "say which protocols were played."
        )
    ]
    if study is not None:
        how = [
            page.paragraph("With the study file that lies beside this report (and is printed here):"),
            page.code("banditto compare study.toml --out report"),
            page.code(study.to_toml()),
        ]
    return [
        page.heading(2, "Rebuild it"),
        *how,
        page.paragraph("It was made by"),
        page.code(shlex.join(content["command"])),
        page.paragraph(f"on {content['created']} with {versions}, {content['platform']}.", "soft"),
        page.heading(2, "Raw results"),
        page.paragraph(
            "Beside this file: results.json (all of it), results.csv (a line per policy), curves.csv (regret), "
            "divergence.csv (pairs by the first pull that differs), figures/ (PNG and SVG).",
        ),
        page.table(("policy", "digest of its protocol"), digests, "text"),
    ]


# -- raw results ------------------------------------------------------------------------------------------------------


def _csv(records: Sequence[Mapping[str, Any]]) -> str:
    if not records:
        return ""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def _curve_records(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {"label": row.label, "pulls": int(n), "mean": float(mean), "low": float(low), "high": float(high)}
        for row in comparison.entrants
        if row.curve is not None
        for n, mean, low, high in zip(row.curve.pulls, row.curve.mean, row.curve.low, row.curve.high, strict=True)
    ]


def _divergence_records(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {"label": row.label, "pull": pull, "pairs": pairs}
        for row in comparison.entrants
        for pull, pairs in row.certificate.divergence_pulls.items()
    ]
