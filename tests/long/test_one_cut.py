"""A sample of the attacks on OneCut in benchmarks/one_cut.py: the hardest laws and sizes, 200,000 pairs each."""

from __future__ import annotations

import pytest
from benchmarks import one_cut

pytestmark = pytest.mark.long

GRID = [
    *((arms, rho, law, None) for arms, rho in ((2, 0.1), (5, 0.5), (20, 0.1)) for law in one_cut.LAWS),
    (10, 0.01, "coins", None),
    (3, 0.3, "skewed", None),
    (2, 0.3, "coins", 1),
    (5, 0.1, "coins", 0),
]


@pytest.mark.parametrize(("arms", "rho", "law", "control"), GRID)
def test_no_cell_exceeds_rho(arms: int, rho: float, law: str, control: int | None) -> None:
    """False failures: 1e-6 over all cells. 5 standard errors above rho would be seen: 0.1035 at rho 0.1."""
    cell = one_cut.attacked(arms, rho, law, control=control, pairs=200_000, pilot=5000, cells=len(GRID))
    assert not cell.broken
    assert cell.share > (0.9 if arms == 2 and control is None and law == "coins" else 0.2) * rho  # it is awake
