"""Numbers that are the same on every machine: fixed-order linear algebra, exact intervals, the lattice."""
