"""Figures and pages: comparisons, the paper's claims, audits of live experiments, the self-test of a machine."""
