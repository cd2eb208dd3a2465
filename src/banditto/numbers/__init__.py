"""Numbers that are the same on every machine: fixed-order algebra, intervals, confidence sequences, the lattice."""
