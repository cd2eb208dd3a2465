"""All vertices of a polytope that has few of them, exactly.

From one vertex along every edge to the next, until nothing new is found. The search is over bases (d rows that hold a
point of the polytope), and a tie for the row that stops an edge is followed along each of its rows, so that vertices
where more than d rows meet are reached too: any vertex maximises some objective, and the simplex method with Bland's
rule would walk to it from any other basis along such exchanges.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from banditto.geometry.actions.exact_simplex import ExactHalfSpace, Vertex, dot, exchanged, inverse_columns, vertex_of

MOST_BASES = 2048


def all_vertices(
    rows: Sequence[ExactHalfSpace], first: Vertex, most: int = MOST_BASES
) -> list[tuple[Fraction, ...]] | None:
    """Return all vertices in lexicographic order, or None if there are more than `most` bases."""
    start = tuple(sorted(first.basis))
    inverse = inverse_columns([rows[number].row for number in start])
    assert inverse is not None
    seen = {start}
    waiting = [(start, *inverse)]
    found: set[tuple[Fraction, ...]] = set()
    while waiting:
        basis, columns, scale = waiting.pop()
        point = vertex_of([rows[number] for number in basis], columns)
        found.add(tuple(Fraction(value, scale) for value in point))
        slacks = [half.bound * scale - dot(half.row, point) for half in rows]
        products = [[dot(half.row, column) for column in columns] for half in rows]
        for leaving in range(len(basis)):
            for entering in _stops(slacks, products, leaving):
                # the columns belong to the rows in their order, so the new row takes the place of the old one
                changed = (*basis[:leaving], entering, *basis[leaving + 1 :])
                key = tuple(sorted(changed))
                if key not in seen:
                    if len(seen) >= most:
                        return None
                    seen.add(key)
                    waiting.append((changed, *exchanged(columns, scale, products[entering], leaving)))
    return sorted(found)


def _stops(slacks: list[int], products: list[list[int]], leaving: int) -> list[int]:
    """Return the rows that the edge meets first when `leaving` is let go: least slack for its speed, all of a tie."""
    best: list[int] = []
    for number, slack in enumerate(slacks):
        speed = -products[number][leaving]
        if speed > 0:
            if best:
                difference = slack * -products[best[0]][leaving] - slacks[best[0]] * speed
                if difference > 0:
                    continue
                if difference < 0:
                    best = []
            best.append(number)
    return best
