"""Where simulated rewards come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditto.core.registry import Entry

if TYPE_CHECKING:
    from banditto.problems.environments.bernoulli import Bernoulli
    from banditto.problems.environments.beta import Beta
    from banditto.problems.environments.discrete import Discrete
    from banditto.problems.environments.gaussian import Gaussian
    from banditto.problems.environments.linear_rewards import LinearBernoulli, LinearGaussian
    from banditto.problems.environments.resampled import Resampled

__all__ = ["Bernoulli", "Beta", "Discrete", "Gaussian", "LinearBernoulli", "LinearGaussian", "Resampled"]

REGISTRY = {
    "bernoulli": Entry(
        module="banditto.problems.environments.bernoulli",
        class_name="Bernoulli",
        summary="rewards 0 or 1",
    ),
    "gaussian": Entry(
        module="banditto.problems.environments.gaussian",
        class_name="Gaussian",
        summary="normal rewards with a known standard deviation",
        options=("sigma",),
    ),
    "beta": Entry(
        module="banditto.problems.environments.beta",
        class_name="Beta",
        summary="Beta rewards in (0, 1); draws every single one",
        options=("concentration",),
    ),
    "discrete": Entry(
        module="banditto.problems.environments.discrete",
        class_name="Discrete",
        summary="finitely many rewards in [0, 1], read from a file",
        reads_file=True,
    ),
    "resampled": Entry(
        module="banditto.problems.environments.resampled",
        class_name="Resampled",
        summary="rows of a log, drawn with replacement",
        reads_log=True,
    ),
    "linear-bernoulli": Entry(
        module="banditto.problems.environments.linear_rewards",
        class_name="LinearBernoulli",
        summary="rewards 0 or 1 with mean 1/2 + <theta, a>/2",
        linear=True,
    ),
    "linear-gaussian": Entry(
        module="banditto.problems.environments.linear_rewards",
        class_name="LinearGaussian",
        summary="normal rewards with mean <theta, a>",
        options=("sigma",),
        linear=True,
    ),
}
