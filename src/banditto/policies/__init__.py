"""Replicable policies, a file or a folder for each algorithm. This registry is the only other place that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditto.core.registry import Entry

if TYPE_CHECKING:
    from banditto.policies.certified_elimination.certified_elimination import CertifiedElimination
    from banditto.policies.certified_linear.certified_linear import CertifiedLinear
    from banditto.policies.early_cut.early_cut import EarlyCut
    from banditto.policies.explore_then_commit import ExploreThenCommit
    from banditto.policies.least_squares_rounding.least_squares_rounding import LeastSquaresRounding
    from banditto.policies.linear_threshold.linear_threshold import LinearThreshold
    from banditto.policies.linear_threshold.net_threshold import NetThreshold
    from banditto.policies.mean_rounding.mean_rounding import MeanRounding
    from banditto.policies.one_cut.one_cut import OneCut
    from banditto.policies.random_threshold.random_threshold import RandomThreshold

__all__ = [
    "CertifiedElimination",
    "CertifiedLinear",
    "EarlyCut",
    "ExploreThenCommit",
    "LeastSquaresRounding",
    "LinearThreshold",
    "MeanRounding",
    "NetThreshold",
    "OneCut",
    "RandomThreshold",
]

REGISTRY = {
    "certified-elimination": Entry(
        module="banditto.policies.certified_elimination.certified_elimination",
        class_name="CertifiedElimination",
        summary="fresh batches, random cuts and a shared final choice, tuned under a proof",
        source="banditto; after Komiyama et al. 2024",
        optional=("gap", "rate_at_most"),
    ),
    "one-cut": Entry(
        module="banditto.policies.one_cut.one_cut",
        class_name="OneCut",
        summary="one batch and one shared cut, the smallest experiment for --gap, the smallest lead that matters",
        source="banditto",
        options=("gap",),
        optional=("power", "control", "rate_at_most"),
    ),
    "early-cut": Entry(
        module="banditto.policies.early_cut.early_cut",
        class_name="EarlyCut",
        summary="the same winner as early as the data allow, for --gap; its pulls may differ",
        source="banditto",
        by_winner=True,
        options=("gap",),
        optional=("power", "control", "rate_at_most"),
    ),
    "random-threshold": Entry(
        module="banditto.policies.random_threshold.random_threshold",
        class_name="RandomThreshold",
        summary="elimination against a shared random threshold",
        source="Esfandiari et al. 2023, Algorithm 2",
        constants=("certified", "paper"),
        optional=("rate_at_most",),
    ),
    "mean-rounding": Entry(
        module="banditto.policies.mean_rounding.mean_rounding",
        class_name="MeanRounding",
        summary="elimination on sample means rounded to shared grids",
        source="Esfandiari et al. 2023, Algorithm 1",
        constants=("certified", "paper"),
        optional=("rate_at_most",),
    ),
    "explore-then-commit": Entry(
        module="banditto.policies.explore_then_commit",
        class_name="ExploreThenCommit",
        summary="all arms equally often, then the best one; needs --gap, a promised lead",
        source="Esfandiari et al. 2023, Warm-up I",
        constants=("certified", "paper"),
        options=("gap",),
        optional=("rate_at_most",),
    ),
    "certified-linear": Entry(
        module="banditto.policies.certified_linear.certified_linear",
        class_name="CertifiedLinear",
        summary="random cuts on values by design, or a lattice for theta, whichever is cheaper",
        source="banditto",
        linear=True,
        any_set=True,
    ),
    "linear-threshold": Entry(
        module="banditto.policies.linear_threshold.linear_threshold",
        class_name="LinearThreshold",
        summary="elimination by least squares against a shared random threshold",
        source="Esfandiari et al. 2023, Algorithm 3",
        constants=("certified", "paper"),
        linear=True,
    ),
    "least-squares-rounding": Entry(
        module="banditto.policies.least_squares_rounding.least_squares_rounding",
        class_name="LeastSquaresRounding",
        summary="elimination on a least-squares estimate rounded to a shared lattice; any action set",
        source="Esfandiari et al. 2023, Algorithm 4",
        constants=("certified", "paper"),
        linear=True,
        any_set=True,
    ),
    "net-threshold": Entry(
        module="banditto.policies.linear_threshold.net_threshold",
        class_name="NetThreshold",
        summary="linear-threshold on a net of an action set of one or two dimensions",
        source="Esfandiari et al. 2023, Corollary 12",
        constants=("certified", "paper"),
        linear=True,
        any_set=True,
    ),
}
