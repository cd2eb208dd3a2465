"""How rarely CertifiedElimination eliminates, as its page says; the search of 80 policies takes a while."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import eliminations

pytestmark = pytest.mark.long


def test_the_page_says_how_rarely_eliminations_pay() -> None:
    page = Path(__file__).parents[2] / "docs" / "certified-elimination.md"
    text = " ".join(page.read_text(encoding="utf-8").split())
    found = eliminations.count()
    said = f"of {found.made} random policies with 3 to 100 arms {found.testing} have batches with tests"
    assert f"{said}, and {found.eliminating} of these eliminations" in text
