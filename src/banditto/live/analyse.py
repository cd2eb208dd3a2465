"""`analyse`: what an experiment taught, with intervals whose coverage is proved; from wherever it was played."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from banditto.core.errors import ContractError, InvalidArgument
from banditto.engine.observations import Observations, Observed
from banditto.engine.progress import Progress
from banditto.measure.analysis.analysis import Analysis
from banditto.measure.analysis.checks import FlowCheck, assignment_check, loss_check

_ALLOWED = (
    "an experiment, URL#NAME, an exported log, a selection, an execution of watch_pair, or a replay, such as "
    "replay(policy, log) makes of a reward log"
)


def analyse(
    source: Observed | str | Path,
    confidence: float = 0.95,
    *,
    binary: bool | None = None,
    metric_ranges: Mapping[str, tuple[float, float]] | None = None,
    guardrails: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """Say what an experiment taught: who won and by what, each arm's mean, and by how much the winner is better.

    All intervals hold at once with probability `confidence` or more; docs/analyse.md has the proof. Only pulls whose
    number was fixed in advance are used, or pulls after a choice; where pulls followed rewards one by one, the
    intervals hold at any time, and are wider.

    Args:
        source: An `Experiment` or its address URL#NAME, the file of a log that `export --format json` wrote, a
            `Replay`, a `Selection`, or one of the two `executions` of `watch_pair`.
        confidence: How likely all intervals hold at once, between 0.5 and 1. Default 0.95.
        binary: Whether rewards can be nothing but the two ends of their range, for which intervals are exact. Default
            None: whether all of them were.
        metric_ranges: The smallest and the largest value that a metric can have, by its name: what its intervals need
            to be proved. Default None: they are approximate.
        guardrails: Bounds that metrics' means should keep, such as "latency<=300". Default None.
        progress: Called with the number of events of a log that were read, and how many there are.

    Raises:
        InvalidArgument: There are no rewards yet, or of one arm alone, or no batch is complete.
        LogError: A log does not verify.

    Examples:
        >>> from banditto import Bernoulli, OneCut, watch_pair
        >>> policy = OneCut(arms=2, horizon=10**6, rho=0.1, gap=0.05)
        >>> found = analyse(watch_pair(policy, Bernoulli([0.55, 0.5])).executions[0])
        >>> found.winner, found.decided_by
        ('0', 'lead')
    """
    from banditto.measure.analysis.analysing import analysis_of, checked_confidence
    from banditto.measure.analysis.metric_analysis import MetricOptions, with_metrics

    confidence, options = checked_confidence(confidence), MetricOptions.of(metric_ranges, guardrails)
    seen = observed(source, progress)
    _check_width(seen)
    return with_metrics(with_checks(analysis_of(seen, confidence, binary)), options)


def observed(source: object, progress: Progress | None = None) -> Observations:
    """Turn anything that `analyse` accepts (an object, a file, URL#NAME) into observations, batch by batch."""
    if isinstance(source, Observed):
        return source.observations()
    if isinstance(source, Path) or (isinstance(source, str) and "#" not in source):
        from banditto.live.exported_log import read_exported

        return read_exported(Path(source), progress)
    if isinstance(source, str):
        from banditto.live.experiment import Experiment
        from banditto.live.replicate import split_address

        url, name = split_address(source)
        with Experiment.open(url, name) as experiment:
            return experiment.observations()
    raise InvalidArgument("source", source, _ALLOWED)


def analysed_if_possible(seen: Observations) -> Analysis | None:
    """Analyse observations with default settings; return None where no batch is complete or no analysis exists."""
    if not seen.batches:
        return None
    from banditto.measure.analysis.analysing import analysis_of  # SciPy is loaded once there is work for it
    from banditto.measure.analysis.metric_analysis import MetricOptions, with_metrics

    try:
        _check_width(seen)
        return with_metrics(with_checks(analysis_of(seen)), MetricOptions.of(None, None))
    except (InvalidArgument, ContractError):
        return None


def _check_width(seen: Observations) -> None:
    """Refuse rewards whose range is so wide that no mean could be turned back into their units."""
    if seen.ends is not None and not math.isfinite(seen.ends[1] - seen.ends[0]):
        given = f"rewards from {seen.ends[0]:g} to {seen.ends[1]:g}"
        raise InvalidArgument("source", given, "a range whose width is a finite number")


def with_checks(found: Analysis) -> Analysis:
    """Return the analysis with the checks on how tickets were handed out and lost, and the observations' warnings."""
    seen = found.observations
    checks: tuple[FlowCheck, ...] = ()
    if seen.flow is not None:
        flow = seen.flow
        checks = (
            assignment_check(seen.names, flow.assigned, flow.planned),
            loss_check(seen.names, flow.handed, flow.lost),
        )
    return dataclasses.replace(found, checks=checks, warnings=seen.warnings)
