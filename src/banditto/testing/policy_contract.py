"""The contract of a batched policy, check by check."""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from banditto import policies
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray, IntArray, changed, taken
from banditto.core.errors import InvalidArgument, ShortHorizonWarning
from banditto.core.protocol import Protocol
from banditto.geometry.actions.finite import FiniteActions
from banditto.policies import baselines
from banditto.policies.policy import BatchedPolicy, Guarantee, PlacedPolicy, Policy, own_level
from banditto.problems.catalogue import policy_of
from banditto.testing.edits import edited, scaled

SEED = 20231
REPLICATES = 12

Totals = Callable[[IntArray, int], FloatArray]
Check = Callable[[Any], None]


def random_totals(pulls: IntArray, batch: int) -> FloatArray:
    """Return totals of rewards in [0, 1], different for every row and arm, with gaps that get arms dropped."""
    generator = np.random.default_rng([SEED, batch])
    rows, arms = pulls.shape
    rates = 0.9 - 0.8 * ((np.arange(arms) + np.arange(rows)[:, np.newaxis]) % arms) / arms
    noise = generator.standard_normal(pulls.shape) * np.sqrt(pulls) / 2.0
    totals: FloatArray = np.round(np.clip(pulls * rates + noise, 0, pulls))
    return totals


def play(
    policy: BatchedPolicy[Any],
    coins: Coins,
    totals: Totals = random_totals,
    convert: Callable[[Any], Any] | None = None,
    back: Callable[[Any], Any] = np.array,
) -> tuple[list[IntArray], Any]:
    """Play to the end, and return all plans and the last state.

    `convert` turns NumPy arrays into those of another array library, `back` turns them into NumPy's again.
    """
    change = convert or (lambda array: array)
    state = changed(policy.init(coins.count), change)
    plans: list[IntArray] = []
    while (plan := policy.plan(state)) is not None:
        plans.append(back(plan))
        assert len(plans) <= 200, "the policy does not come to an end"
        state = policy.decide(state, change(totals(plans[-1], len(plans))), coins)
    return plans, state


def _recorded(totals: Mapping[int, FloatArray]) -> Totals:
    """Return a function that gives totals known beforehand, by the number of the batch."""
    return lambda pulls, batch: totals[batch]


def _equal(first: list[IntArray], second: list[IntArray]) -> bool:
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def check_pulls_add_up(policy: BatchedPolicy[Any]) -> None:
    """Check that every row's pulls are non-negative integers that add up to the horizon."""
    plans, _ = play(policy, Coins(SEED, count=REPLICATES))
    for plan in plans:
        assert plan.dtype == np.int64
        assert plan.shape == (REPLICATES, policy.arms or plan.shape[1])  # a policy for infinite sets has slots
        assert (plan >= 0).all()
    assert (np.sum([plan.sum(axis=1) for plan in plans], axis=0) == policy.horizon).all()


def check_rows_are_independent(policy: BatchedPolicy[Any]) -> None:
    """Check that one row of many replicates equals the single run with the same coins and totals."""
    plans, _ = play(policy, Coins(SEED, count=REPLICATES))
    for row in (0, REPLICATES - 1):
        wide = {batch: random_totals(plan, batch)[row : row + 1] for batch, plan in enumerate(plans, 1)}
        alone, _ = play(policy, Coins(SEED, start=row), _recorded(wide))
        own = [plan[row : row + 1] for plan in plans]
        while own and not own[-1].any():
            own.pop()
        if not policy.arms:  # other rows may have needed more slots
            own = [plan[:, plan[0] > 0] for plan in own]
            alone = [plan[:, plan[0] > 0] for plan in alone]
        assert _equal(own, alone), f"row {row} differs from the same run on its own"


def check_inputs_are_kept(policy: BatchedPolicy[Any]) -> None:
    """Check that `plan` and `decide` modify neither state nor totals, and give the same answer twice."""
    coins = Coins(SEED, count=REPLICATES)
    state = policy.init(REPLICATES)
    while True:
        before = pickle.dumps(state)
        plan, again = policy.plan(state), policy.plan(state)
        if plan is None or again is None:
            assert plan is None
            assert again is None
            return
        assert np.array_equal(plan, again)
        totals = random_totals(plan, 1)
        kept = totals.copy()
        following, once_more = policy.decide(state, totals, coins), policy.decide(state, totals, coins)
        assert pickle.dumps(state) == before, "the state was modified"
        assert np.array_equal(totals, kept), "the totals were modified"
        assert pickle.dumps(following) == pickle.dumps(once_more), "two calls gave two answers"
        state = following


def check_rows_can_be_taken(policy: BatchedPolicy[Any]) -> None:
    """Check that rows taken out of a state at any batch go on as they would have: replicates are the first axis."""
    if not policy.arms:
        return  # for infinite sets the engine takes none
    rows = np.array([1, 4, 5, 11])
    coins = Coins(SEED, count=REPLICATES)
    plans, _ = play(policy, coins)
    for taken_after in range(len(plans)):
        state, shown = policy.init(REPLICATES), coins
        for batch, plan in enumerate(plans, 1):
            if batch == taken_after + 1:
                state, shown = taken(state, rows), coins.only(rows)
            own = plan if batch <= taken_after else plan[rows]
            found = policy.plan(state)
            if found is None:
                assert not own.any()
                break
            assert np.array_equal(found, own), f"rows taken after batch {taken_after} differ in batch {batch}"
            totals = random_totals(plan, batch)
            state = policy.decide(state, totals if batch <= taken_after else totals[rows], shown)


def check_array_standard(policy: BatchedPolicy[Any]) -> None:
    """Check for the same decisions under array-api-strict, which refuses all that is not in the standard."""
    import array_api_strict as strict

    coins = Coins(SEED, count=REPLICATES)
    plain, _ = play(policy, coins)
    standard, _ = play(policy, coins, convert=strict.asarray)
    assert _equal(plain, standard)


def check_last_totals_do_not_matter(policy: BatchedPolicy[Any]) -> None:
    """Check that totals of the pulls that end a horizon decide nothing."""
    spent = np.zeros(REPLICATES, dtype=np.int64)

    def without_the_last(pulls: IntArray, batch: int) -> FloatArray:
        nonlocal spent
        spent = spent + pulls.sum(axis=1)
        totals: FloatArray = random_totals(pulls, batch) * (spent < policy.horizon)[:, np.newaxis]
        return totals

    coins = Coins(SEED, count=REPLICATES)
    assert _equal(play(policy, coins)[0], play(policy, coins, without_the_last)[0])


def _registered(policy: Any) -> bool:
    return policy.name in policies.REGISTRY | baselines.REGISTRY


def _read(policy: Any, protocol: Protocol) -> Any:
    """Return the policy that a protocol describes, by the registry or, if it is not listed there, by its own class."""
    return policy_of(protocol) if _registered(policy) else type(policy).from_protocol(protocol)


def _protocol(policy: Any) -> Protocol:
    """Return a policy's protocol; a policy without a rho of its own gets 0.1."""
    written: Protocol = policy.protocol(seed=1) if isinstance(policy, Policy) else policy.protocol(seed=1, rho=0.1)
    return written


def check_protocol_says_what_the_policy_is(policy: Any) -> None:
    """Check that the protocol has the policy's own arms, horizon and rho, and that others are refused."""
    if not hasattr(policy, "protocol"):
        return  # a class of one's own without a guarantee; `certify` writes it down
    protocol = _protocol(policy)
    assert (protocol.policy, protocol.decision_version) == (policy.name, policy.decision_version)
    for name in ("arms", "horizon", "rho"):
        own = getattr(policy, name, None)
        if own is None:
            continue
        assert float(getattr(protocol, name)) == own, f"the protocol has another {name} than the policy"
        try:
            policy.protocol(**{"seed": 1, "rho": None if isinstance(policy, Policy) else 0.1} | {name: own})
        except (InvalidArgument, TypeError):
            continue
        raise AssertionError(f"protocol() takes {name} from its caller, though the policy has its own")


def check_protocol_round_trip(policy: Any) -> None:
    """Check that a protocol survives JSON and TOML, and that the policy read from it plans and decides alike.

    A policy that banditto does not list is read by its own class's `from_protocol`.
    """
    assert _registered(policy) or hasattr(type(policy), "from_protocol"), (
        f"{type(policy).__name__} has no classmethod from_protocol(protocol)"
    )
    protocol = _protocol(policy)
    for copy in (Protocol.from_json(protocol.to_json()), Protocol.from_toml(protocol.to_toml())):
        assert copy == protocol
        assert copy.digest == protocol.digest
        again = _read(policy, copy)
        coins = Coins(SEED, count=REPLICATES)
        assert _equal(play(policy, coins)[0], play(again, coins)[0])
        if isinstance(policy, Policy):
            assert again.guarantee() == policy.guarantee()


def check_places(policy: BatchedPolicy[Any]) -> None:
    """Check that a policy for infinite sets says which action each slot pulls, and only actions of its set."""
    if not isinstance(policy, PlacedPolicy) or isinstance(getattr(policy, "actions", None), FiniteActions):
        return
    state = policy.init(REPLICATES)
    actions: Any = getattr(policy, "actions", None)
    batch = 0
    while (plan := policy.plan(state)) is not None:
        batch += 1
        places = np.broadcast_to(policy.places(state), (*plan.shape, actions.dimension))
        assert np.isfinite(places).all()
        for row, slot in np.argwhere(plan > 0)[:20].tolist():
            action = places[row, slot]
            for direction in (*np.eye(actions.dimension), *-np.eye(actions.dimension), action):
                best = float(direction @ np.array(actions.maximise(direction)))
                assert float(direction @ action) <= best + 1e-9
        state = policy.decide(state, random_totals(plan, batch), Coins(SEED, count=REPLICATES))


def check_pickles(policy: BatchedPolicy[Any]) -> None:
    """Check that a copy sent to a worker plans alike."""
    coins = Coins(SEED, count=REPLICATES)
    assert _equal(play(policy, coins)[0], play(pickle.loads(pickle.dumps(policy)), coins)[0])


def check_guarantee_adds_up(policy: Policy[Any]) -> None:
    """Check that the total is the sum of its terms, and that `holds` says whether it is at most rho."""
    guarantee = policy.guarantee()
    assert all(term.value >= 0 and term.name and term.statement for term in guarantee.terms)
    assert math.isclose(guarantee.total, sum(term.value for term in guarantee.terms), rel_tol=1e-12, abs_tol=1e-300)
    assert guarantee.rho == policy.rho
    assert guarantee.holds == (guarantee.total <= policy.rho)
    for text in (guarantee.table(), guarantee._repr_html_()):
        assert all(term.name in text for term in guarantee.terms)


def check_edited_constants(policy: Any) -> None:
    """Check that a protocol with edited constants is refused, or gets no bound that its proof does not give.

    Every number in `resolved` is made 1,024 times larger and smaller. One of the two directions must cost the policy
    its bound, unless `free_constants` names the number as one that the proof leaves free. Batches are left out and
    repeated: what is done more often cannot be bounded by less. Where a bound is 0, rewards must decide nothing.
    """
    own = policy.guarantee()
    protocol = policy.protocol(seed=1)
    free: frozenset[str] = getattr(policy, "free_constants", frozenset())
    for name, larger, smaller in scaled(protocol):
        found = [_kept(policy, copy) for copy in (larger, smaller)]
        if name in free or any(guarantee is None or guarantee.total == 0.0 for guarantee in found):
            continue
        raise AssertionError(f"1,024 times more or less {name} leaves a bound: {own.table()}")
    for what, copy in edited(protocol):
        kept = _kept(policy, copy)
        more = what == "repeated"
        assert kept is None or not more or kept.total > own.total, f"batches {what} do not change the bound"


def _kept(policy: Any, protocol: Protocol) -> Guarantee | None:
    """Return the guarantee of an edited protocol; None if it is refused, or its bound exceeds rho."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShortHorizonWarning)
            read = _read(policy, protocol)
    except InvalidArgument:
        return None
    guarantee: Guarantee = read.guarantee()
    if not guarantee.holds:
        return None
    if guarantee.total == 0.0:
        coins = Coins(SEED, count=REPLICATES)
        nothing = play(read, coins, lambda pulls, batch: np.zeros(pulls.shape))
        assert _equal(play(read, coins)[0], nothing[0]), "rewards decide, and a bound of 0 is printed"
    return guarantee


def check_description(policy: Policy[Any]) -> None:
    """Check that `describe()` names the horizon and has a table, and that the minimum horizon is positive."""
    description = policy.describe()
    assert f"{policy.horizon:,}" in description.table()
    assert "<table>" in description._repr_html_()
    minimum = policy.minimum_horizon()
    assert minimum is None or minimum >= policy.arms


def check_level(policy: Policy[Any]) -> None:
    """Check that policy, guarantee and protocol agree on what is promised: every pull, or the winner alone.

    A policy that promises the winner alone pulls all arms equally often until it names one, and leaves the rest to it.
    """
    level = own_level(policy)
    assert level in ("sequence", "winner")
    assert policy.guarantee().level == level, "policy and guarantee are about different levels"
    said = policy.protocol(seed=1).settings.get("level")
    assert said == (None if level == "sequence" else level), "the protocol has another level than the policy"
    if level == "sequence":
        return
    plans, _ = play(policy, Coins(SEED, count=REPLICATES))
    left = np.full(REPLICATES, policy.horizon)
    for plan in plans:
        alone = (plan > 0).sum(axis=1) == 1
        assert (plan[alone].max(axis=1) == left[alone]).all(), "a winner that does not get all that is left"
        assert (plan[~alone] == plan[~alone][:, :1]).all(), "before there is a winner, arms are pulled unequally"
        left = left - plan.sum(axis=1)


# what every batched policy must keep to, replicable or not
BATCHED_CHECKS: tuple[Check, ...] = (
    check_pulls_add_up,
    check_rows_are_independent,
    check_inputs_are_kept,
    check_rows_can_be_taken,
    check_array_standard,
    check_last_totals_do_not_matter,
    check_protocol_says_what_the_policy_is,
    check_protocol_round_trip,
    check_pickles,
    check_places,
)
POLICY_CHECKS: tuple[Check, ...] = (
    *BATCHED_CHECKS,
    check_guarantee_adds_up,
    check_edited_constants,
    check_description,
    check_level,
)
