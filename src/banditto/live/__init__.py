"""Live experiments: the same policies, driven by rewards that arrive late, twice, out of order or never."""
