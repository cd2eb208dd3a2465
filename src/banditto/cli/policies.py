"""`banditto policies`: what there is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from banditto.cli import parameters
from banditto.cli.output import EXIT_OK, print_json
from banditto.core.provenance import provenance
from banditto.core.text import text_table
from banditto.problems.catalogue import listing

if TYPE_CHECKING:
    from banditto.cli.documents import PoliciesDocument, PolicyContent

SCHEMA_VERSION: Final = 1


def policies(as_json: parameters.Json = False) -> int:
    """List the policies, where they come from and their constants."""
    rows: list[PolicyContent] = [
        {
            "name": name,
            "kind": kind,
            "constants": list(entry.constants),
            "source": entry.source,
            "summary": entry.summary,
        }
        for name, kind, entry in listing()
    ]
    if as_json:
        content: PoliciesDocument = {"schema_version": SCHEMA_VERSION, "policies": rows, **provenance()}
        print_json(content)
    else:
        header = ("policy", "kind", "constants", "source", "what it does")
        lines = [(r["name"], r["kind"], ", ".join(r["constants"]), r["source"], r["summary"]) for r in rows]
        sys.stdout.write(text_table(header, lines) + "\n")
    return EXIT_OK
