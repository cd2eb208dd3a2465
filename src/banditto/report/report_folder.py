"""The report of a comparison in a folder: what `banditto compare --out` and `Comparison.report` write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from banditto.core.errors import InvalidArgument
from banditto.core.output_files import output_directory, remove_stale, write_together
from banditto.core.provenance import provenance
from banditto.measure.compare import CompareProgress, illustrate
from banditto.measure.comparison import Comparison, Entrant
from banditto.measure.study_file import StudyFile, checked_title
from banditto.measure.study_of import study_of

# every file that a report may have: what is in the way is found before the work, and what is stale goes after it
NAMES = (
    *("report.html", "results.json", "results.csv", "curves.csv", "divergence.csv", "study.toml"),
    *("arms.json", "actions.csv", "action_set.json", "log.csv"),
    *(
        f"figures/{name}.{kind}"
        for name in ("agreement", "regret", "ribbons", "divergence", "guarantee")
        for kind in ("png", "svg")
    ),
)


def write_report(
    comparison: Comparison, folder: str | Path, *, title: str | None = None, overwrite: bool = False
) -> Path:
    """Write the report of a comparison that was made in Python; the path of report.html comes back."""
    if not comparison.entrants:
        raise InvalidArgument("comparison", "no finished policy", "a comparison with one policy or more")
    if not isinstance(folder, str | Path) or not str(folder):
        raise InvalidArgument("folder", folder, "the path of a folder")
    title = None if title is None else checked_title(title)
    with output_directory(Path(folder), NAMES, overwrite, "folder") as place:
        assert place is not None
        shown = illustrated(comparison)
        content = {
            "title": title,
            **shown.to_dict(),
            "warnings": [row.warning for row in shown.entrants if row.warning],
            **provenance(),
            "command": ["Comparison.report"],
        }
        study = study_of(shown)
        if not write_files(place, shown, None if study is None else replace(study, title=title), content):
            raise KeyboardInterrupt
    return Path(folder) / "report.html"


def illustrated(comparison: Comparison) -> Comparison:
    """Play what figures need and `compare` did not keep: regret curves, and the first pair of each policy."""
    return replace(comparison, entrants=tuple(_illustrated(row) for row in comparison.entrants))


def _illustrated(row: Entrant) -> Entrant:
    if row.run is None or (row.curve is not None and row.view is not None):
        return row
    curve, view = illustrate(row.run, row.certificate.pairs)
    return row._replace(curve=curve, view=view)


def write_files(
    folder: Path,
    comparison: Comparison,
    study: StudyFile | None,
    content: Mapping[str, Any],
    progress: CompareProgress | None = None,
) -> bool:
    """Write results first, then what takes longer; the answer is False if Ctrl-C came between them."""
    from banditto.report.comparison_report import drawn_files, raw_files  # Matplotlib is loaded to draw

    raw = raw_files(comparison, study, content)
    write_together(folder, raw)
    try:
        drawn = drawn_files(comparison, study, content, progress)
        write_together(folder, drawn)
    except KeyboardInterrupt:
        remove_stale(folder, [name for name in NAMES if name not in raw])
        return False
    remove_stale(folder, [name for name in NAMES if name not in raw | drawn])
    return True
