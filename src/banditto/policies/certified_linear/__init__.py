"""CertifiedLinear: cuts on values by design, or a lattice for theta, whichever is predicted to be cheaper."""
