"""A report of seven policies, 1,000 pairs and T = 10^8 is a file that one can send by mail. `make bench` times it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_seven_policies_make_less_than_three_megabytes(tmp_path: Path) -> None:
    names = "random-threshold,random-threshold:paper,mean-rounding,batched-elimination,ucb1,kl-ucb,thompson"
    words = [sys.executable, "-m", "banditto", "compare", "--means", "0.5,0.9,0.8,0.3", "--horizon", "1e8"]
    words += ["--rho", "0.1", "--pairs", "1000", "--policies", names, "--jobs", "2", "--out", str(tmp_path)]
    subprocess.run(words, check=True, capture_output=True, timeout=600)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 300_000 < len(page.encode()) < 3_000_000
    assert page.count("<figure>") == 5
    assert all(f">{name}<" in page for name in names.split(","))
