"""Golden digests: coins, plans and decisions from recorded totals, the same on every machine.

A case is a stored protocol file, so that better constants in a constructor change no digest. No digest covers a
sampler. `python -m banditto.measure.golden` prints them as JSON; golden.json holds what they must be. If one of them
changes, decisions have changed: raise `decision_version`.
"""

from __future__ import annotations

import hashlib
import json
import sys
from importlib import resources
from typing import Any

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import ContractError
from banditto.core.protocol import Protocol
from banditto.core.trajectory import Streak, Trajectory
from banditto.policies.policy import PlacedPolicy, Policy
from banditto.policies.shared_linear.replicable_least_squares import ReplicableLeastSquares
from banditto.problems.catalogue import policy_of

# One policy of each kind, and of each set of constants: what its digests are called, and its protocol's file.
# FROZEN(v1): recorded totals, coins and protocols; if a digest moves, raise a decision version instead
CASES = {
    "2 arms": "random-threshold-2-arms",
    "5 arms, paper": "random-threshold-5-arms-paper",
    "10 arms": "random-threshold-10-arms",
    "3 arms, subgaussian": "random-threshold-3-arms-subgaussian",
    "1000 arms": "random-threshold-1000-arms",
    "mean rounding, 2 arms": "mean-rounding-2-arms",
    "mean rounding, 5 arms, paper": "mean-rounding-5-arms-paper",
    "mean rounding, 10 arms, Gaussian": "mean-rounding-10-arms-gaussian",
    "certified elimination, 2 arms": "certified-elimination-2-arms",
    "certified elimination, 6 arms": "certified-elimination-6-arms",
    "linear threshold": "linear-threshold",
    "linear threshold, paper": "linear-threshold-paper",
    "least squares, lattice": "least-squares-lattice",
    "least squares, grid": "least-squares-grid",
    "least squares, ball": "least-squares-ball",
    "least squares, polytope": "least-squares-polytope",
    "certified linear": "certified-linear",
    "net": "net",
    "explore then commit": "explore-then-commit",
    "one cut, 2 arms": "one-cut-2-arms",
    "one cut, 6 arms": "one-cut-6-arms",
    "one cut, control, rates": "one-cut-control-rates",
    "early cut, 2 arms": "early-cut-2-arms",
    "early cut, 5 arms, Gaussian": "early-cut-5-arms-gaussian",
    "early cut, control, rates": "early-cut-control-rates",
}


def stored_protocol(case: str) -> Protocol:
    """Read the protocol of a case from the package, so that it does not depend on today's defaults."""
    file = resources.files("banditto.measure").joinpath("golden_protocols", f"{CASES[case]}.json")
    return Protocol.from_json(file.read_text(encoding="utf-8"))


def recorded_totals(pulls: IntArray, batch: int) -> FloatArray:
    """Return made-up integer totals from a hash, which are the same on every machine."""
    rows, arms = pulls.shape
    totals = np.zeros((rows, arms))
    for row in range(rows):
        for arm in range(arms):
            word = hashlib.sha256(f"{batch}|{row}|{arm}".encode()).digest()
            wobble = int.from_bytes(word[:4], "little") % 1000
            count = int(pulls[row, arm])
            totals[row, arm] = count * (8000 - 6000 * ((arm + row) % arms) // arms) // 10_000 + count * wobble // 10**6
    return totals


def play(policy: Policy[Any], coins: Coins) -> list[Trajectory]:
    """Play executions on recorded totals, and return the trajectory of each."""
    state = policy.init(coins.count)
    runs: list[list[Streak]] = [[] for _ in range(coins.count)]
    actions: list[dict[tuple[float, ...], int]] = [{} for _ in range(coins.count)]
    batch = 0
    while (plan := policy.plan(state)) is not None:
        batch += 1
        for row, kept in enumerate(runs):
            names = list(range(plan.shape[1]))
            if not policy.arms and isinstance(policy, PlacedPolicy):
                places = policy.places(state)[row].tolist()
                names = [actions[row].setdefault(tuple(place), len(actions[row])) for place in places]
            kept += [Streak(batch, names[slot], int(n)) for slot, n in enumerate(plan[row]) if n > 0]
        state = policy.decide(state, recorded_totals(plan, batch), coins)
    return [Trajectory(tuple(kept), tuple(known)) for kept, known in zip(runs, actions, strict=True)]


def digests() -> dict[str, str]:
    """Compute all golden digests on this machine; return them by name."""
    words = Coins(123, 5, 1000).words("threshold", 4, 1)
    found = {"coins": hashlib.sha256(words.astype("<u8").tobytes()).hexdigest()}
    for name in CASES:
        protocol = stored_protocol(name)
        policy = policy_of(protocol)
        if not isinstance(policy, Policy):
            raise ContractError(f"{name}: {protocol.policy} is no replicable policy")
        found[f"{name}: protocol"] = protocol.digest
        trajectories = play(policy, Coins(9, 40, 3 if policy.arms > 100 else 8))
        if len({trajectory.digest for trajectory in trajectories}) == 1:
            raise ContractError(f"{name}: all executions are the same, so that nothing is tested")
        joined = "".join(trajectory.digest for trajectory in trajectories)
        found[f"{name}: decisions"] = hashlib.sha256(joined.encode()).hexdigest()
    for dimension in (1, 2, 5, 10):
        points = [[((7 * k + 3 * j * j) % 19 - 9) / (9 * dimension) for j in range(dimension)] for k in range(30)]
        kinds: tuple[Any, ...] = ("lattice", "grid")
        for kind in kinds:
            lsq = ReplicableLeastSquares(actions=points, rounding=kind)
            counts = lsq.plan(10**6).pulls
            totals = recorded_totals(np.array([counts]), dimension)[0].tolist()
            rows = list(zip(lsq.design.arms or (), counts, totals, strict=True))
            fits = [lsq.fit(rows, rho=0.1, delta=0.01, coins=Coins(5), batch=batch) for batch in range(10)]
            # what lies within 1e-9 of a boundary may differ between machines; here nothing does
            if any(fit.near_boundary for fit in fits):
                raise ContractError(f"least squares, {kind}: an estimate at a boundary")
            joined = "".join(fit.digest for fit in fits)
            found[f"least squares, {kind}, d = {dimension}"] = hashlib.sha256(joined.encode()).hexdigest()
    return found


def expected() -> dict[str, str]:
    """Return the digests that the package expects, by name."""
    text = resources.files("banditto.measure").joinpath("golden.json").read_text(encoding="utf-8")
    parsed: dict[str, str] = json.loads(text)
    return parsed


if __name__ == "__main__":
    sys.stdout.write(json.dumps(digests(), indent=2) + "\n")
