"""All claims of the paper, quick, by the command line as a reader would."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from banditto.paper import claims

pytestmark = pytest.mark.long

SCHEMAS = Path(__file__).parents[2] / "src" / "banditto" / "schemas"
PLACES = {
    *("Definition 1", "Warm-up I", "Proposition 2", "Theorem 3", "Theorem 4", "Lemma 5", "Theorem 6", "Lemma 7"),
    *("Lemma 8", "Lemma 9", "Theorem 10", "Corollary 12", "Appendix G", "Algorithm 1", "Algorithm 3", "Conclusion"),
    "beyond",
}


def test_every_claim_has_a_verdict_and_every_disagreement_a_reason(tmp_path: Path) -> None:
    began = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "banditto",
        "reproduce",
        "--quick",
        "--jobs",
        "2",
        "--out",
        str(tmp_path),
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    content = json.loads(done.stdout)
    jsonschema.validate(content, json.loads((SCHEMAS / "reproduction.json").read_text()))
    rows = content["claims"]
    assert [row["name"] for row in rows] == [claim.name for claim in claims.claims()]
    assert {row["place"] for row in rows} >= PLACES
    assert sum(row["verdict"] == "not testable" for row in rows) <= 3
    reasons = {claim.name: claim.reason for claim in claims.claims()}
    assert all(reasons[row["name"]] for row in rows if row["verdict"] == "disagrees")
    # rows that must not agree: what is printed and fails
    printed = {row["name"]: row["verdict"] for row in rows if row["name"].startswith("printed-")}
    for name, verdict in printed.items():
        assert verdict == ("agrees" if name.endswith("-repaired") else "disagrees"), name
    assert len(printed) >= 6
    assert (tmp_path / "report.html").stat().st_size > 10**5
    print(f"{len(rows)} claims in {time.monotonic() - began:.0f} s")
