"""The public names and their signatures: a change here is a change for users."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import banditto as bd
from banditto import policies
from banditto.chance.coins import Coins
from banditto.core import errors

SIGNATURES = {
    "CertifiedLinear": (
        "(*, horizon: 'int', rho: 'float', constants: \"Literal['certified', 'paper']\" = 'certified', sigma: "
        "'float' = 0.5, rewards: 'RewardKind | None' = None, actions: 'Any', centre: 'float | None' = None, "
        "method: 'Method | None' = None, costs: 'Costs' = None, inner: 'LinearCuts | LeastSquaresRounding' = "
        "None) -> None"
    ),
    "LeastSquaresRounding": (
        "(*, horizon: 'int', rho: 'float', constants: \"Literal['certified', 'paper']\" = 'certified', sigma: "
        "'float' = 0.5, rewards: 'RewardKind | None' = None, actions: 'Any', centre: 'float | None' = None, "
        "rounding: \"Literal['lattice', 'grid'] | None\" = None, schedule: 'RoundingSchedule' = None) -> None"
    ),
    "LinearThreshold": (
        "(*, horizon: 'int', rho: 'float', constants: \"Literal['certified', 'paper']\" = 'certified', sigma: "
        "'float' = 0.5, rewards: 'RewardKind | None' = None, actions: 'Any', centre: 'float | None' = None, "
        "schedule: 'LinearSchedule' = None) -> None"
    ),
    "NetThreshold": (
        "(*, horizon: 'int', rho: 'float', constants: \"Literal['certified', 'paper']\" = 'certified', sigma: "
        "'float' = 0.5, rewards: 'RewardKind | None' = None, actions: 'Any', centre: 'float | None' = None, "
        "schedule: 'LinearSchedule' = None) -> None"
    ),
    "LinUCB": (
        "(*, actions: 'FiniteActions', sigma: 'float' = 0.5, centre: 'float' = 0.5, regularisation: 'float' = "
        "1.0, bound: 'float' = 0.5) -> None"
    ),
    "LinThompson": (
        "(*, actions: 'FiniteActions', sigma: 'float' = 0.5, centre: 'float' = 0.5, regularisation: 'float' = "
        "1.0, inflation: 'float' = 1.0) -> None"
    ),
    "PhasedElimination": (
        "(*, actions: 'FiniteActions', horizon: 'int', sigma: 'float' = 0.5, centre: 'float' = 0.5, bound: "
        "'float' = 0.5) -> None"
    ),
    "LinearBernoulli": "(theta: 'Iterable[Real]', actions: 'Any') -> 'None'",
    "LinearGaussian": "(theta: 'Iterable[Real]', actions: 'Any', sigma: 'Real' = 1.0) -> 'None'",
    "ReplicableLeastSquares": (
        "(*, actions: 'Any', rounding: \"Literal['lattice', 'grid']\" = 'lattice', sigma: 'float' = 0.5, "
        "rewards: 'RewardKind | None' = None, centre: 'float | None' = None, accuracy: 'float' = 0.01) -> None"
    ),
    "Ball": "(*, dimension: 'int', radius: 'float' = 1.0, cuts: 'tuple[HalfSpace, ...]' = ()) -> None",
    "Box": "(*, low: 'tuple[float, ...]', high: 'tuple[float, ...]') -> None",
    "FiniteActions": (
        "(actions: 'Any', *, normalise: 'bool' = False, arms: 'tuple[int, ...] | None' = None) -> 'None'"
    ),
    "Polytope": "(*, rows: 'Sequence[Sequence[float]] | FloatArray', bounds: 'Iterable[Real]') -> 'None'",
    "Simplex": "(*, dimension: 'int') -> None",
    "g_optimal_design": (
        "(actions: 'Any', *, accuracy: 'Real' = 0.01, progress: 'Progress | None' = None) -> 'Design'"
    ),
    "net": "(actions: 'ActionSet', radius: 'Real') -> 'FloatArray'",
    "BatchedElimination": (
        "(*, arms: 'int', horizon: 'int', batches: 'int | None' = None, grid: \"Literal['geometric', "
        "'minimax']\" = 'geometric', gamma: 'float' = 12.0, sigma: 'float' = 0.5) -> None"
    ),
    "Bernoulli": "(means: 'Iterable[Real]') -> 'None'",
    "StoreSettings": (
        "(*, deadline: 'float' = 30.0, idle: 'float' = 10.0, pool_size: 'int' = 5, max_overflow: 'int' = 10, "
        "recycle: 'float | None' = None) -> None"
    ),
    "Beta": "(means: 'Iterable[Real]', concentration: 'Real' = 2.0) -> 'None'",
    "CertifiedElimination": (
        "(*, arms: 'int', horizon: 'int', rho: 'float', constants: \"Literal['certified', 'paper']\" = "
        "'certified', sigma: 'float' = 0.5, rewards: 'RewardKind | None' = None, rate_at_most: 'float | None' = None, "
        "gap: 'float | None' = None, schedule: 'Ladder' = None) -> None"
    ),
    "Discrete": "(arms: 'Iterable[tuple[Sequence[Real], Sequence[Real]]]') -> 'None'",
    "ExploreThenCommit": (
        "(*, arms: 'int', horizon: 'int', rho: 'float', constants: \"Literal['certified', 'paper']\" = "
        "'certified', sigma: 'float' = 0.5, rewards: 'RewardKind | None' = None, rate_at_most: 'float | None' = None, "
        "gap: 'float', pulls: 'int' = None) -> None"
    ),
    "Gaussian": "(means: 'Iterable[Real]', sigma: 'Real' = 0.5) -> 'None'",
    "GaussianThompson": "(*, sigma: 'float' = 0.5) -> None",
    "KLUCB": "(*, sigma: 'float' = 0.5, rewards: 'RewardKind | None' = None) -> None",
    "MOSS": "(*, sigma: 'float' = 0.5) -> None",
    "MeanRounding": (
        "(*, arms: 'int', horizon: 'int', rho: 'float', constants: \"Literal['certified', 'paper']\" = "
        "'certified', sigma: 'float' = 0.5, rewards: 'RewardKind | None' = None, rate_at_most: 'float | None' = None, "
        "schedule: 'GridSchedule' = None) -> None"
    ),
    "EarlyCut": (
        "(*, arms: 'int', horizon: 'int', rho: 'float', constants: \"Literal['certified', 'paper']\" = "
        "'certified', sigma: 'float' = 0.5, rewards: 'RewardKind | None' = None, rate_at_most: 'float | None' = None, "
        "gap: 'float', power: 'float' = 0.95, control: 'int | None' = None, schedule: 'EarlySchedule' = None) -> None"
    ),
    "OneCut": (
        "(*, arms: 'int', horizon: 'int', rho: 'float', constants: \"Literal['certified', 'paper']\" = "
        "'certified', sigma: 'float' = 0.5, rewards: 'RewardKind | None' = None, rate_at_most: 'float | None' = None, "
        "gap: 'float', power: 'float | None' = 0.95, control: 'int | None' = None, schedule: 'CutSchedule' = None) "
        "-> None"
    ),
    "PlainPolicy": (
        "(policy: 'Callable[..., Any]', /, update: 'Callable[..., Any] | None' = None, *, start: 'Callable[..., Any] | "
        "None' = None, name: 'str | None' = None, **arguments: 'Any') -> 'None'"
    ),
    "RandomThreshold": (
        "(*, arms: 'int', horizon: 'int', rho: 'float', constants: \"Literal['certified', 'paper']\" = "
        "'certified', sigma: 'float' = 0.5, rewards: 'RewardKind | None' = None, rate_at_most: 'float | None' = None, "
        "schedule: 'Schedule' = None) -> None"
    ),
    "SuccessiveElimination": "(*, sigma: 'float' = 0.5) -> None",
    "Thompson": "(*, successes: 'float' = 1.0, failures: 'float' = 1.0) -> None",
    "UCB1": "(*, sigma: 'float' = 0.5) -> None",
    "analyse": (
        "(source: 'Observed | str | Path', confidence: 'float' = 0.95, *, binary: 'bool | None' = None, metric_ranges: "
        "'Mapping[str, tuple[float, float]] | None' = None, guardrails: 'Iterable[str] | None' = None, progress: "
        "'Progress | None' = None) -> 'Analysis'"
    ),
    "attack": (
        "(policy: 'AnyPolicy', *, pairs_budget: 'int' = 200000, rho: 'float | None' = None, rewards: 'RewardKind | "
        "None' = None, known: 'Sequence[Sequence[float]]' = (), seed: 'int' = 0, confidence: 'float' = 0.95, jobs: "
        "'int' = 1, executor: 'Executor | None' = None, progress: 'AttackProgress | None' = None) -> 'Attack'"
    ),
    "calibrate": (
        "(policy: 'AnyPolicy', *, pairs_budget: 'int' = 200000, seed: 'int' = 0, jobs: 'int' = 1, executor: 'Executor "
        "| None' = None, progress: 'CalibrationProgress | None' = None) -> 'Calibration'"
    ),
    "plan": (
        "(*, arms: 'int | None' = None, gap: 'float | None' = None, rho: 'float | None' = None, horizon: 'int | None' "
        "= None, regret: 'float | None' = None, policy: 'str | None' = None, actions: 'Any' = None, environment: "
        "'str' = 'bernoulli', power: 'float | None' = None, by: 'float | None' = None, rate_at_most: 'float | None' = "
        "None, baseline: 'float | None' = None, control: 'int | None' = None, resolve: 'float | None' = None, same: "
        "'Level | None' = None, seed: 'int' = 0, progress: 'Progress | None' = None) -> 'TrialPlan'"
    ),
    "certify": (
        "(policy: 'AnyPolicy', environment: 'Environment', *, pairs: 'int | None' = None, seed: 'int' = 0, "
        "noise_seed: 'int | None' = None, horizon: 'int | None' = None, rho: 'float | None' = None, confidence: "
        "'float' = 0.95, until_settled: 'bool' = False, out: 'str | Path | None' = None, jobs: 'int' = 1, "
        "executor: 'Executor | None' = None, progress: 'Progress | None' = None, backend: 'Backend' = 'numpy') "
        "-> 'Certificate'"
    ),
    "cluster": "(address: 'str', *, patience: 'float' = 600.0) -> 'Iterator[Executor]'",
    "compare": (
        "(policies: 'Iterable[AnyPolicy] | Mapping[str, AnyPolicy]', environment: 'Environment', *, "
        "horizon: 'int | None' = None, rho: "
        "'float | None' = None, pairs: 'int' = 1000, rounds: 'int' = 20000000, seed: 'int' = 0, noise_seed: 'int "
        "| None' = None, confidence: 'float' = 0.95, labels: 'Sequence[str] | None' = None, curves: 'bool' = "
        "False, out: 'str | Path | None' = None, jobs: 'int' = 1, executor: 'Executor | None' = None, progress: "
        "'CompareProgress | None' = None) -> 'Comparison'"
    ),
    "lai_robbins": (
        "(*, arms: 'int', gap: 'float', horizon: 'int', sigma: 'float' = 0.5, rewards: \"Literal['bounded', "
        "'gaussian']\" = 'gaussian') -> 'LowerBound'"
    ),
    "lower_bound": (
        "(*, arms: 'int', gap: 'float', rho: 'float', power: 'float' = 0.95, sigma: 'float' = 0.5, rewards: "
        "\"Literal['bounded', 'gaussian']\" = 'gaussian', rate_at_most: 'float | None' = None, kind: "
        "\"Literal['one-batch', 'adaptive']\" = 'one-batch') -> 'LowerBound'"
    ),
    "policy_of": "(protocol: 'Protocol') -> 'AnyPolicy'",
    "Resampled": "(log: 'RewardLog') -> None",
    "RewardLog": (
        "(*, arms: 'tuple[str, ...]', rewards: 'tuple[tuple[float, ...], ...]', low: 'float' = 0.0, high: "
        "'float' = 1.0) -> None"
    ),
    "replay": ("(policy: 'AnyPolicy', log: 'RewardLog', *, seed: 'int' = 0, horizon: 'int | None' = None) -> 'Replay'"),
    "replicable_mean": (
        "(total: 'float', samples: 'int', *, rho: 'float', delta: 'float', coins: 'Coins', batch: 'int' = 0, "
        "arm: 'int' = 0, sigma: 'float' = 0.5, rewards: 'RewardKind | None' = None, constants: 'Constants' = "
        "'certified') -> 'RoundedMean'"
    ),
    "reproduce": (
        "(*, quick: 'bool' = False, only: 'str | None' = None, jobs: 'int' = 1, executor: 'Executor | None' = None, "
        "progress: 'Progress | None' = None) -> 'Reproduction'"
    ),
    "replicate": "(first: 'str', second: 'str', *, progress: 'Callable[[str, int, int], None] | None' = None)"
    " -> 'Replication'",
    "select": (
        "(arms: 'Mapping[str, Arm]', *, gap: 'float', rho: 'float' = 0.1, power: 'float' = 0.95, seed: 'int' = 2026, "
        "store: 'str | Path | None' = None, workers: 'int' = 1, retries: 'int' = 0, executor: 'Executor | None' = "
        "None, control: 'str | None' = None, rate_at_most: 'float | None' = None, rewards: \"Literal['bounded', "
        "'gaussian'] | None\" = None, sigma: 'float | None' = None, noise_seed: 'int | None' = None, progress: "
        "'Progress | None' = None) -> 'Selection'"
    ),
    "verify": "(url: 'str', name: 'str', expect: 'str | None' = None, *, progress: 'Progress | None' = None)"
    " -> 'Verification'",
    "samples_needed": (
        "(*, tau: 'float', delta: 'float', rho: 'float', sigma: 'float' = 0.5, rewards: 'RewardKind | None' = "
        "None, constants: 'Constants' = 'certified') -> 'int'"
    ),
    "watch_pair": (
        "(policy: 'AnyPolicy', environment: 'Environment', *, pair: 'int' = 0, seed: 'int' = 0, noise_seed: 'int "
        "| None' = None, horizon: 'int | None' = None, points: 'int' = 1200) -> 'PairView'"
    ),
}
TYPES = {
    "ActionSet",
    "Analysis",
    "Attack",
    "Calibration",
    "Certificate",
    "Coins",
    "Design",
    "Comparison",
    "Guarantee",
    "Protocol",
}
TYPES |= {"AsyncClient", "AsyncExperiment", "Client", "JsonLogFormatter", "StepReport"}
TYPES |= {"Experiment", "LowerBound", "Registration", "Replay", "Reproduction", "Selection", "TrialPlan"}
ERRORS = {
    *("BandittoError", "ConflictError", "ContractError", "InvalidArgument", "MissingExtra", "ShortHorizonWarning"),
    *("IllConditioned", "LogError", "NoMaximum", "NoPlan", "NoStore", "StoreError", "Unfinished", "WorkerError"),
    *("NotAllowed", "ServiceError"),
}


def test_the_names() -> None:
    assert set(bd.__all__) == set(SIGNATURES) | TYPES | ERRORS | set(unlisted()) | {"__version__"}
    assert sorted(bd.__all__) == dir(bd)


def test_errors_are_in_one_file_and_can_all_be_caught_by_name() -> None:
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert kinds == ERRORS
    for path in sorted(Path(bd.__file__).parent.rglob("*.py")):
        if path != Path(errors.__file__):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                bases = node.bases if isinstance(node, ast.ClassDef) else []
                assert not {base.id for base in bases if isinstance(base, ast.Name)} & kinds, path


def unlisted() -> list[str]:
    """Policies that are pinned by their registry entry alone: they have the common arguments and no others."""
    return [entry.class_name for entry in policies.REGISTRY.values() if entry.class_name not in SIGNATURES]


def chosen(name: str) -> list[str]:
    """The parameters of a policy that a user chooses; those that `repr` leaves out are constants that it resolves."""
    kind: Any = getattr(bd, name)
    resolved = {entry.name for entry in dataclasses.fields(kind) if not entry.repr}
    return [str(value) for key, value in inspect.signature(kind).parameters.items() if key not in resolved]


def test_a_policy_that_is_not_listed_has_the_common_arguments() -> None:
    assert chosen("MeanRounding") == chosen("RandomThreshold")  # they are what is common
    for name in unlisted():
        assert chosen(name) == chosen("MeanRounding")


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    assert str(inspect.signature(getattr(bd, name))) == SIGNATURES[name]


@pytest.mark.long
@pytest.mark.slow
def test_every_name_can_be_used_twice() -> None:
    for _ in range(2):
        world = bd.Bernoulli([0.2, 0.8])
        assert bd.Gaussian([0.2, 0.8]).sigma == 0.5
        policy = bd.RandomThreshold(arms=2, horizon=10**5, rho=0.3)
        protocol = policy.protocol(seed=1)
        assert isinstance(protocol, bd.Protocol)
        assert bd.policy_of(protocol) == policy
        assert isinstance(policy.guarantee(), bd.Guarantee)
        assert isinstance(bd.certify(policy, world, pairs=10), bd.Certificate)
        assert isinstance(bd.attack(policy, pairs_budget=1000), bd.Attack)
        assert isinstance(bd.calibrate(policy, pairs_budget=1000), bd.Calibration)
        assert isinstance(bd.reproduce(quick=True, only="definition-1-explore-then-commit"), bd.Reproduction)
        assert bd.Registration.of(protocol).digest == bd.Registration.of(protocol, ["0", "1"]).digest
        with tempfile.TemporaryDirectory() as folder:
            for name in ("one", "two"):
                with bd.Experiment.open(f"sqlite:///{folder}/a.db", name, protocol) as trial:
                    assert len(trial.ask(2)) == 2
            assert bd.verify(f"sqlite:///{folder}/a.db", "one").holds
            found = bd.replicate(f"sqlite:///{folder}/a.db#one", f"sqlite:///{folder}/a.db#two")
            assert (found.divergence, found.compared, found.same) == (None, 0, False)  # nothing to compare yet
        assert isinstance(bd.plan(arms=2, gap=0.4, rho=0.5), bd.TrialPlan)
        assert isinstance(bd.select({"a": lambda: 0, "b": lambda: 1}, gap=0.4), bd.Selection)
        assert isinstance(bd.analyse(bd.watch_pair(policy, world).executions[0]), bd.Analysis)
        assert isinstance(bd.lower_bound(arms=2, gap=0.4, rho=0.5), bd.LowerBound)
        assert isinstance(bd.lai_robbins(arms=2, gap=0.4, horizon=1000), bd.LowerBound)
        assert bd.certify(bd.UCB1(), world, horizon=100, rho=0.1, pairs=3).pairs == 3
        ordinary: list[Any] = [
            bd.UCB1(),
            bd.Thompson(),
            bd.KLUCB(),
            bd.MOSS(),
            bd.GaussianThompson(),
            bd.SuccessiveElimination(),
        ]
        others: list[Any] = [
            bd.MeanRounding(arms=2, horizon=10**5, rho=0.3),
            bd.BatchedElimination(arms=2, horizon=10**5),
        ]
        commit = bd.ExploreThenCommit(arms=2, horizon=10**5, rho=0.3, gap=0.5)
        others.append(bd.CertifiedElimination(arms=2, horizon=10**5, rho=0.3))
        compared = bd.compare([policy, commit, *others, *ordinary], world, pairs=4, rounds=10**4)
        assert isinstance(compared, bd.Comparison)
        assert len(compared.entrants) == 11
        assert bd.Beta([0.2, 0.8]).means == bd.Discrete([([0.2], [1]), ([0.8], [1])]).means
        log = bd.RewardLog.of([("a", 1), ("b", 0), ("a", 0)])
        assert bd.Resampled(log).means == (0.5, 0.0)
        assert isinstance(bd.replay(bd.UCB1(), log, horizon=10), bd.Replay)
        needed = bd.samples_needed(tau=0.1, delta=0.05, rho=0.2)
        assert bd.replicable_mean(0.5 * needed, needed, rho=0.2, delta=0.05, coins=Coins(1)).radius <= 0.1
        assert bd.watch_pair(policy, world).rounds[-1] == 10**5 - 1
        sets: list[Any] = [
            bd.Ball(dimension=2),
            bd.Box(low=(0.0, 0.0), high=(1.0, 0.5)),
            bd.Simplex(dimension=2),
            bd.Polytope(rows=[[1, 0], [0, 1], [-1, -1]], bounds=[1, 1, 1]),
            bd.FiniteActions([[1, 0], [0, 1]]),
        ]
        for actions in sets:
            assert isinstance(actions, bd.ActionSet)
            assert isinstance(bd.g_optimal_design(actions), bd.Design)
            assert bd.net(actions, 0.5).shape[1] == 2
        points = [[1.0, 0.0], [0.6, 0.6], [0.0, 1.0]]
        lines = bd.LinearBernoulli([0.5, 0.3], points)
        known: dict[str, Any] = {"actions": points, "horizon": 10**6, "rho": 0.3}
        linear: list[Any] = [
            bd.LinearThreshold(**known),
            bd.LeastSquaresRounding(**known),
            bd.CertifiedLinear(**known),
            bd.PhasedElimination(actions=bd.FiniteActions(points), horizon=10**6),
            bd.LinUCB(actions=bd.FiniteActions(points)),
            bd.LinThompson(actions=bd.FiniteActions(points)),
        ]
        assert len(bd.compare(linear, lines, pairs=4, rounds=10**4).entrants) == 6
        disc = bd.LinearGaussian([0.5, 0.3], bd.Ball(dimension=2))
        naive = bd.NetThreshold(actions=bd.Ball(dimension=2), horizon=10**9, rho=0.3, rewards="gaussian", sigma=1.0)
        assert bd.certify(naive, disc, pairs=2).pairs == 2
        assert bd.ReplicableLeastSquares(actions=points).pulls_needed(0.1, 0.1, 0.1) > 100
        for error in ERRORS - {"ShortHorizonWarning"}:
            assert issubclass(getattr(bd, error), bd.BandittoError)
        assert issubclass(bd.ShortHorizonWarning, UserWarning)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bd.__getattr__("nothing")


def test_importing_is_light() -> None:
    code = "import sys, banditto; assert 'numpy' not in sys.modules; print(len(dir(banditto)))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=600).returncode == 0
