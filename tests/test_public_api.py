"""The public names and their signatures: a change here is a change for users."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import banditto as bd
from banditto.coins import Coins

SIGNATURES = {
    "Bernoulli": "(means: 'Iterable[float]') -> 'None'",
    "Gaussian": "(means: 'Iterable[float]', sigma: 'float' = 0.5) -> 'None'",
    "RandomThreshold": (
        "(*, arms: 'int', horizon: 'int', rho: 'float', constants: \"Literal['certified', 'paper']\" = 'certified', "
        "sigma: 'float' = 0.5, rewards: 'RewardKind | None' = None) -> None"
    ),
    "Thompson": "(*, successes: 'float' = 1.0, failures: 'float' = 1.0) -> None",
    "UCB1": "(*, sigma: 'float' = 0.5) -> None",
    "certify": (
        "(policy: 'Policy[Any] | RoundPolicy', environment: 'Environment', *, pairs: 'int' = 1000, seed: 'int' = 0, "
        "noise_seed: 'int | None' = None, horizon: 'int | None' = None, rho: 'float | None' = None, "
        "confidence: 'float' = 0.95, jobs: 'int' = 1, executor: 'Executor | None' = None, "
        "progress: 'Progress | None' = None) -> 'Certificate'"
    ),
    "policy_of": "(protocol: 'Protocol') -> 'Policy[Any] | RoundPolicy'",
    "protocol_of": (
        "(policy: 'Policy[Any] | RoundPolicy', *, seed: 'int', arms: 'int', horizon: 'int', rho: 'float') -> 'Protocol'"
    ),
    "replicable_mean": (
        "(total: 'float', samples: 'int', *, rho: 'float', delta: 'float', coins: 'Coins', batch: 'int' = 0, "
        "arm: 'int' = 0, sigma: 'float' = 0.5, rewards: 'RewardKind | None' = None, "
        "constants: 'Constants' = 'certified') -> 'RoundedMean'"
    ),
    "samples_needed": (
        "(*, tau: 'float', delta: 'float', rho: 'float', sigma: 'float' = 0.5, rewards: 'RewardKind | None' = None, "
        "constants: 'Constants' = 'certified') -> 'int'"
    ),
    "watch_pair": (
        "(policy: 'Policy[Any] | RoundPolicy', environment: 'Environment', *, pair: 'int' = 0, seed: 'int' = 0, "
        "noise_seed: 'int | None' = None, horizon: 'int | None' = None, points: 'int' = 1200) -> 'PairView'"
    ),
}
TYPES = {"Certificate", "Guarantee", "Protocol"}
ERRORS = {"BandittoError", "ContractError", "InvalidArgument", "ShortHorizonWarning", "WorkerError"}


def test_the_names() -> None:
    assert set(bd.__all__) == set(SIGNATURES) | TYPES | ERRORS | {"__version__"}
    assert sorted(bd.__all__) == dir(bd)


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    assert str(inspect.signature(getattr(bd, name))) == SIGNATURES[name]


def test_every_name_can_be_used_twice() -> None:
    for _ in range(2):
        world = bd.Bernoulli([0.2, 0.8])
        assert bd.Gaussian([0.2, 0.8]).sigma == 0.5
        policy = bd.RandomThreshold(arms=2, horizon=10**5, rho=0.3)
        protocol = bd.protocol_of(policy, seed=1, arms=2, horizon=10**5, rho=0.3)
        assert isinstance(protocol, bd.Protocol)
        assert bd.policy_of(protocol) == policy
        assert isinstance(policy.guarantee(), bd.Guarantee)
        assert isinstance(bd.certify(policy, world, pairs=10), bd.Certificate)
        assert bd.certify(bd.UCB1(), world, horizon=100, rho=0.1, pairs=3).pairs == 3
        assert bd.certify(bd.Thompson(), world, horizon=100, rho=0.1, pairs=3).pairs == 3
        needed = bd.samples_needed(tau=0.1, delta=0.05, rho=0.2)
        assert bd.replicable_mean(0.5 * needed, needed, rho=0.2, delta=0.05, coins=Coins(1)).radius <= 0.1
        assert bd.watch_pair(policy, world).rounds[-1] == 10**5 - 1
        for error in ERRORS - {"ShortHorizonWarning"}:
            assert issubclass(getattr(bd, error), bd.BandittoError)
        assert issubclass(bd.ShortHorizonWarning, UserWarning)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bd.__getattr__("nothing")


def test_importing_is_light() -> None:
    code = "import sys, banditto; assert 'numpy' not in sys.modules; print(len(dir(banditto)))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
