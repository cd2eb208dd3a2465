"""Ordinary policies to compare with: one formula per file. None of them is replicable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditto.core.registry import Entry

if TYPE_CHECKING:
    from banditto.policies.baselines.batched_elimination import BatchedElimination
    from banditto.policies.baselines.gaussian_thompson import GaussianThompson
    from banditto.policies.baselines.kl_ucb import KLUCB
    from banditto.policies.baselines.lin_thompson import LinThompson
    from banditto.policies.baselines.lin_ucb import LinUCB
    from banditto.policies.baselines.moss import MOSS
    from banditto.policies.baselines.phased_elimination import PhasedElimination
    from banditto.policies.baselines.successive_elimination import SuccessiveElimination
    from banditto.policies.baselines.thompson import Thompson
    from banditto.policies.baselines.ucb1 import UCB1

__all__ = [
    "KLUCB",
    "MOSS",
    "UCB1",
    "BatchedElimination",
    "GaussianThompson",
    "LinThompson",
    "LinUCB",
    "PhasedElimination",
    "SuccessiveElimination",
    "Thompson",
]

REGISTRY = {
    "ucb1": Entry(
        module="banditto.policies.baselines.ucb1",
        class_name="UCB1",
        summary="the arm with the largest upper confidence bound",
        source="Auer, Cesa-Bianchi and Fischer 2002",
    ),
    "kl-ucb": Entry(
        module="banditto.policies.baselines.kl_ucb",
        class_name="KLUCB",
        summary="the largest mean that an arm's rewards do not contradict",
        source="Garivier and Cappe 2011",
    ),
    "moss": Entry(
        module="banditto.policies.baselines.moss",
        class_name="MOSS",
        summary="confidence bounds that shrink with an arm's share of the horizon",
        source="Audibert and Bubeck 2009",
    ),
    "thompson": Entry(
        module="banditto.policies.baselines.thompson",
        class_name="Thompson",
        summary="the arm with the largest sample from its Beta posterior",
        source="Thompson 1933; Agrawal and Goyal 2012",
    ),
    "gaussian-thompson": Entry(
        module="banditto.policies.baselines.gaussian_thompson",
        class_name="GaussianThompson",
        summary="the arm with the largest sample from its normal posterior",
        source="Korda, Kaufmann and Munos 2013",
    ),
    "successive-elimination": Entry(
        module="banditto.policies.baselines.successive_elimination",
        class_name="SuccessiveElimination",
        summary="survivors in turn, dropped once clearly behind",
        source="Even-Dar, Mannor and Mansour 2006",
    ),
    "batched-elimination": Entry(
        module="banditto.policies.baselines.batched_elimination",
        class_name="BatchedElimination",
        summary="successive elimination in a few batches (BaSE)",
        source="Gao, Han, Ren and Zhou 2019",
    ),
    "lin-ucb": Entry(
        module="banditto.policies.baselines.lin_ucb",
        class_name="LinUCB",
        summary="the largest upper confidence bound of least squares (OFUL)",
        source="Abbasi-Yadkori, Pal and Szepesvari 2011",
        linear=True,
    ),
    "lin-thompson": Entry(
        module="banditto.policies.baselines.lin_thompson",
        class_name="LinThompson",
        summary="the best arm for a sample from the posterior of least squares",
        source="Agrawal and Goyal 2013",
        linear=True,
    ),
    "phased-elimination": Entry(
        module="banditto.policies.baselines.phased_elimination",
        class_name="PhasedElimination",
        summary="optimal designs on the survivors, phase by phase",
        source="Lattimore and Szepesvari 2020",
        linear=True,
    ),
}
