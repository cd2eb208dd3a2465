"""Comparing policies: many of them on one environment, each measured like a certificate.

A batched policy runs its whole horizon, whatever it is. A per-round policy pays for every round, so it is given a
budget of rounds, and its horizon and its pairs are cut to fit; every row says what it got.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path

from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, open_unit
from banditto.core.horizons import LONGEST_ROUND_HORIZON, SHORTEST_HORIZON
from banditto.core.tabular import items_in
from banditto.engine.player import Run, run_of
from banditto.engine.pool import shared_executor, submitted
from banditto.engine.travelling import check_can_travel
from banditto.engine.watching import Curve, PairView, regret_curve, watch_pair
from banditto.measure.certify import DEFAULT_PAIRS, MOST_JOBS, certify, checked_rho, identity_of
from banditto.measure.comparison import Comparison, Entrant
from banditto.measure.study_file import FEWEST_ROUNDS, MOST_ROUNDS
from banditto.numbers.intervals import MOST_PAIRS
from banditto.policies.policy import AnyPolicy, own_horizon, own_rho
from banditto.policies.recognising import check_policy
from banditto.policies.shared.replicable import CALIBRATED
from banditto.problems.catalogue import protocol_on
from banditto.problems.environment import Environment

KEPT = "pairs"  # the folder of finished pairs within that of a report
DEFAULT_ROUNDS = 2 * 10**7
_EXECUTIONS = 200  # of a per-round policy, at least, before its horizon grows
MOST_POLICIES = 24

# (label, pairs done, pairs in all)
CompareProgress = Callable[[str, int, int], None]


def compare(
    policies: Iterable[AnyPolicy] | Mapping[str, AnyPolicy],
    environment: Environment,
    *,
    horizon: int | None = None,
    rho: float | None = None,
    pairs: int = DEFAULT_PAIRS,
    rounds: int = DEFAULT_ROUNDS,
    seed: int = 0,
    noise_seed: int | None = None,
    confidence: float = 0.95,
    labels: Sequence[str] | None = None,
    curves: bool = False,
    out: str | Path | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: CompareProgress | None = None,
) -> Comparison:
    """Measure several policies on one environment; a certificate for each comes back, in the order given.

    Args:
        policies: 1 to 24 policies, replicable ones and baselines; a dictionary has a policy for each label.
        environment: the arms and their rewards.
        horizon: pulls in one execution, for policies without a horizon; by default the longest of the others.
        rho: the probability of a difference that is allowed, for baselines; by default that of the replicable policies.
        pairs: how many pairs to play with each policy.
        rounds: what a per-round policy may play in all; its horizon and its pairs are cut to fit.
        seed: the seed of the coins.
        noise_seed: the seed of the rewards; it follows from `seed` by default.
        confidence: of the intervals.
        labels: a name for each row; by default that of the policy.
        curves: whether to add regret curves and a pair to look at, for a report.
        out: a folder that keeps finished pairs, as `certify` does; what is there of other runs is left alone.
        jobs: how many processes to start.
        executor: an executor of yours to use instead of processes, such as that of `cluster`.
        progress: called with a row's label, its pairs that are done, and how many there are in all.

    Raises:
        InvalidArgument: an argument is not allowed, or two rows would have the same name.
        ConflictError: what is in `out` is damaged, or in use.
        WorkerError: a process could not be started, or died.

    Examples:
        >>> from banditto import UCB1, Bernoulli, CertifiedElimination
        >>> rivals = [CertifiedElimination(arms=2, horizon=10**5, rho=0.2), UCB1()]
        >>> compared = compare(rivals, Bernoulli([0.9, 0.5]), pairs=200, rounds=10**5)
        >>> [row.certificate.verdict for row in compared.entrants]
        ['PASS', 'FAIL']
    """
    if isinstance(policies, Mapping):
        if labels is not None:
            raise InvalidArgument("labels", labels, "none, because the dictionary of policies has them")
        labels = list(policies)
    policies = items_in(policies, "policies", f"a list of 1 to {MOST_POLICIES} policies")
    names = _checked_labels(policies, labels)
    if not hasattr(environment, "means"):
        raise InvalidArgument("environment", environment, "an environment object, such as Bernoulli([0.9, 0.8, 0.7])")
    pairs = integer(pairs, "pairs", 1, MOST_PAIRS)
    rounds = integer(rounds, "rounds", FEWEST_ROUNDS, MOST_ROUNDS)
    jobs = integer(jobs, "jobs", 1, MOST_JOBS)
    for policy in policies:
        check_can_travel(policy, jobs, executor)
    confidence = open_unit(confidence, "confidence")
    horizon, rho = _common_horizon(policies, horizon), _common_rho(policies, rho)
    if rho is None and any(own_rho(policy) is None for policy in policies):
        allowed = "a number between 0 and 1: a baseline or a policy in plain Python has none of its own"
        raise InvalidArgument("rho", None, allowed)
    allotments = [allotment(policy, environment, horizon, pairs, rounds) for policy in policies]
    runs = [
        run_of(policy, environment, seed=seed, noise_seed=noise_seed, horizon=length)
        for policy, (length, _) in zip(policies, allotments, strict=True)
    ]
    rows: list[Entrant] = []
    with shared_executor(jobs, executor) as shared:
        for label, run, (_, share) in zip(names, runs, allotments, strict=True):
            kept = None if out is None else _place(Path(out), run, checked_rho(run.policy, _own(run.policy, rho)))
            try:
                certificate = certify(
                    run.policy,
                    environment,
                    pairs=share,
                    seed=run.seed,
                    noise_seed=run.noise_seed,
                    horizon=run.horizon,
                    rho=_own(run.policy, rho),
                    confidence=confidence,
                    out=kept,
                    executor=shared,
                    progress=None if progress is None else _labelled(progress, label),
                )
                drawn = _pictures(run, certificate.pairs, shared) if curves else (None, None)
            except KeyboardInterrupt:
                if kept is not None:
                    with suppress(OSError):  # only empty folders go
                        kept.rmdir()
                        kept.parent.rmdir()
                return Comparison(environment=environment, entrants=tuple(rows), rounds=rounds, interrupted=True)
            rows.append(Entrant(label, certificate, drawn[0], drawn[1], run))
            if certificate.interrupted:
                break
    stopped = len(rows) < len(policies) or rows[-1].certificate.interrupted
    return Comparison(environment=environment, entrants=tuple(rows), rounds=rounds, interrupted=stopped)


def _own(policy: AnyPolicy, rho: float | None) -> float | None:
    """Return the rho that a baseline is measured against; None for a replicable policy, which has its own."""
    return rho if own_rho(policy) is None else None


def _place(out: Path, run: Run, rho: float) -> Path:
    """Return the folder for a policy's pairs; its name is a hash, so that pairs of other runs never mix with them."""
    protocol = protocol_on(run.policy, arms=len(run.environment.means), seed=run.seed, horizon=run.horizon, rho=rho)
    text = json.dumps(identity_of(run, protocol), sort_keys=True)
    return out / KEPT / hashlib.sha256(text.encode()).hexdigest()[:16]


def illustrate(run: Run, pairs: int) -> tuple[Curve, PairView]:
    """Play what a report draws of a policy, in a worker: its regret curve and its first pair."""
    view = watch_pair(run.policy, run.environment, seed=run.seed, noise_seed=run.noise_seed, horizon=run.horizon)
    return regret_curve(run, pairs), view


def _pictures(run: Run, pairs: int, executor: Executor | None) -> tuple[Curve, PairView]:
    return illustrate(run, pairs) if executor is None else submitted(executor, illustrate, run, pairs).result()


def _labelled(progress: CompareProgress, label: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(label, done, total)


def _checked_labels(policies: Sequence[AnyPolicy], labels: Sequence[str] | None) -> list[str]:
    """Return a name for each row, all different; an error is raised if they are not."""
    if not 1 <= len(policies) <= MOST_POLICIES:
        raise InvalidArgument("policies", f"{len(policies)} of them", f"a list of 1 to {MOST_POLICIES} policies")
    names = [label_of(policy) for policy in policies]
    if labels is not None:
        names = [str(label) for label in items_in(labels, "labels", "a list of names")]
    if len(names) != len(policies):
        raise InvalidArgument("labels", f"{len(names)} of them", f"{len(policies)}, one for each policy")
    for name in names:
        if not name.strip() or not name.isprintable():
            raise InvalidArgument("labels", repr(name), "one line of text each")
        if names.count(name) > 1:
            raise InvalidArgument("policies", f"{name} more than once", "different policies, or labels of their own")
    return names


def label_of(policy: AnyPolicy) -> str:
    """Return the name on the command line: `random-threshold`, `random-threshold:paper`, `ucb1`."""
    check_policy(policy, "policies")
    constants = policy.settings().get("constants")
    if constants == CALIBRATED:
        return f"{policy.name}:calibrated"
    return policy.name if constants in (None, "certified") else f"{policy.name}:{constants}"


def _common_horizon(policies: Sequence[AnyPolicy], horizon: int | None) -> int | None:
    """Return the horizon for policies that have none: the longest of the others."""
    if horizon is not None:
        return horizon
    return max((own for policy in policies if (own := own_horizon(policy)) is not None), default=None)


def _common_rho(policies: Sequence[AnyPolicy], rho: float | None) -> float | None:
    """Return the rho for policies that have none: that of the others, if they agree on it."""
    own = {share for policy in policies if (share := own_rho(policy)) is not None}
    return own.pop() if rho is None and len(own) == 1 else rho


def allotment(
    policy: AnyPolicy, environment: Environment, horizon: int | None, pairs: int, rounds: int
) -> tuple[int | None, int]:
    """Return a policy's share of the budget: its horizon (None: its own) and its number of pairs."""
    if own_horizon(policy) is not None or horizon is None:
        return None, pairs
    longest = max(rounds // _EXECUTIONS, SHORTEST_HORIZON, len(environment.means))
    length = min(integer(horizon, "horizon", 1, 10**15), longest, LONGEST_ROUND_HORIZON)
    return length, min(pairs, max(1, rounds // (2 * length)))
