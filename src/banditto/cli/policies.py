"""`banditto policies`: what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from banditto.cli import parameters
from banditto.cli.output import EXIT_OK, print_json, print_text
from banditto.core.text import text_table
from banditto.problems.policy_names import listing

if TYPE_CHECKING:
    from banditto.cli.documents import ListedPolicy, PoliciesDocument

SCHEMA_VERSION: Final = 2
_SAME: Final = {"sequence": "every pull", "winner": "winner", None: "-"}  # as in the table of `compare`


def policies(as_json: parameters.Json = False) -> int:
    """List the policies, their constants and options, and where they come from."""
    rows: list[ListedPolicy] = [
        {
            "name": name,
            "kind": kind,
            "constants": list(entry.constants),
            "level": None if kind == "baseline" else "winner" if entry.by_winner else "sequence",
            "needs": list(entry.options),
            "takes": list(entry.optional),
            "source": entry.source,
            "summary": entry.summary,
        }
        for name, kind, entry in listing()
    ]
    if as_json:
        from banditto.core.provenance import provenance

        content: PoliciesDocument = {"schema_version": SCHEMA_VERSION, "policies": rows, **provenance()}
        print_json(content)
    else:
        header = ("policy", "kind", "same", "constants", "options", "source", "what it does")
        lines = [
            (r["name"], r["kind"], _SAME[r["level"]], ", ".join(r["constants"]), _options(r), r["source"], r["summary"])
            for r in rows
        ]
        print_text(text_table(header, lines))
    return EXIT_OK


def _options(row: ListedPolicy) -> str:
    """Write options as a synopsis does, in brackets what can be left out."""
    needed, taken = ([f"--{name.replace('_', '-')}" for name in row[key]] for key in ("needs", "takes"))
    return " ".join([*needed, *(f"[{name}]" for name in taken)])
