"""PlainPolicy: what it plays, what pairs share, what it refuses, and what it says when a user's code fails."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.core.errors import ConflictError, ContractError, InvalidArgument
from banditto.engine.player import player_of, run_of
from banditto.problems.environment import Environment

WORLD = bd.Bernoulli([0.6, 0.75, 0.45])


class EpsilonGreedy:
    def __init__(self, arms: int, epsilon: float = 0.1) -> None:
        self.epsilon, self.pulls, self.sums = epsilon, [0] * arms, [0.0] * arms

    def select(self, t: int, rng: np.random.Generator) -> int:
        if t < len(self.pulls):
            return t
        if rng.random() < self.epsilon:
            return int(rng.integers(len(self.pulls)))
        return max(range(len(self.pulls)), key=lambda arm: self.sums[arm] / self.pulls[arm])

    def update(self, arm: int, reward: float) -> None:
        self.pulls[arm] += 1
        self.sums[arm] += reward


class TextbookUCB(EpsilonGreedy):
    """UCB1 with its formula as it stands in the paper."""

    def __init__(self, arms: int, sigma: float = 0.5) -> None:
        super().__init__(arms)
        self.factor = 8.0 * sigma**2

    def select(self, t: int, rng: np.random.Generator) -> int:
        return (
            t
            if t < len(self.pulls)
            else max(range(len(self.pulls)), key=partial(self.bound, self.factor * math.log(t)))
        )

    def bound(self, spread: float, arm: int) -> float:
        share = 1.0 / self.pulls[arm]
        return self.sums[arm] * share + math.sqrt(spread * share)


class Shared:
    """Uses the generator and nothing else; `often` more draws for each reward of 1, after the arm is chosen."""

    def __init__(self, often: int = 0) -> None:
        self.often, self.more = often, 0

    def select(self, t: int, rng: np.random.Generator) -> int:
        arm = int(rng.integers(3))
        rng.random(self.more)
        return arm

    def update(self, arm: int, reward: float) -> None:
        self.more += self.often * int(reward)


class InTurn(Shared):
    def select(self, t: int, rng: np.random.Generator) -> int:
        return t % 3


class Private(Shared):
    """Has a generator of its own that nobody seeded."""

    def __init__(self) -> None:
        super().__init__()
        self.own = np.random.default_rng()

    def select(self, t: int, rng: np.random.Generator) -> int:
        return int(self.own.integers(3))


class Seeded(Private):
    """Has a generator of its own with a seed, and draws once more after a reward of 1."""

    def __init__(self) -> None:
        super().__init__()
        self.own = np.random.default_rng(5)

    def update(self, arm: int, reward: float) -> None:
        self.own.random(int(reward))


def certified(policy: Any, world: Environment = WORLD, **more: Any) -> bd.Certificate:
    return bd.certify(policy, world, **{"horizon": 300, "rho": 0.1, "pairs": 40, "seed": 5} | more)


# -- it plays what its author wrote ---------------------------------------------------------------------------------


LOG = bd.RewardLog.of([("a", 1), ("b", 0), ("a", 0.25), ("b", 1), ("c", 0.5), ("c", 0.5), ("c", 0)])
WORLDS: dict[str, Environment] = {
    "bernoulli": WORLD,
    "gaussian": bd.Gaussian([0.2, 0.5, 0.4], 0.5),
    "beta": bd.Beta([0.2, 0.5, 0.4]),
    "discrete": bd.Discrete([([0, 1], [0.3, 0.7]), ([0.5], [1]), ([0, 0.2, 1], [0.2, 0.4, 0.4])]),
    "log": bd.Resampled(LOG),
    "linear": bd.LinearBernoulli([0.5, 0.3], [[1.0, 0.0], [0.6, 0.6], [0.0, 1.0]]),
}


# the compiled policy is compiled anew for each kind of rewards, which takes seconds
@pytest.mark.parametrize(
    "world",
    [world if name == "bernoulli" else pytest.param(world, marks=pytest.mark.slow) for name, world in WORLDS.items()],
    ids=WORLDS.keys(),
)
def test_a_shipped_policy_written_again_makes_the_same_choices(world: Environment) -> None:
    """Rewards are those of the compiled policy, so that all pulls of all pairs must be the same, and all counts."""
    plain, compiled = bd.PlainPolicy(TextbookUCB, arms=3), bd.UCB1()
    for pair in range(2):
        views = [bd.watch_pair(policy, world, horizon=3000, seed=2, pair=pair) for policy in (plain, compiled)]
        assert views[0].digests == views[1].digests
        assert np.array_equal(views[0].first, views[1].first)
    first, second = (certified(policy, world) for policy in (plain, compiled))
    assert (first.mismatches, first.regret) == (second.mismatches, second.regret)
    assert first.first_divergence == second.first_divergence
    assert first.divergence_unit == "round"


def test_compare_watch_analyse_and_replay_take_it() -> None:
    plain, compiled = bd.PlainPolicy(TextbookUCB, arms=3), bd.UCB1()
    rows = bd.compare([plain, compiled], WORLD, horizon=300, rho=0.1, pairs=4, rounds=10**4, curves=True).entrants
    assert [row.label for row in rows] == ["TextbookUCB", "ucb1"]
    assert rows[0].certificate.regret == rows[1].certificate.regret
    curves = [row.curve for row in rows]
    assert curves[0] is not None
    assert curves[1] is not None
    assert np.array_equal(curves[0].mean, curves[1].mean)
    estimates = [
        bd.analyse(bd.watch_pair(policy, WORLD, horizon=300).executions[1]).to_dict()["arms"]
        for policy in (plain, compiled)
    ]
    assert estimates[0] == estimates[1]
    replays = [bd.replay(policy, LOG, horizon=20) for policy in (plain, compiled)]
    assert (replays[0].runs, replays[0].dry) == (replays[1].runs, replays[1].dry)


def test_what_its_methods_are_handed() -> None:
    seen: list[tuple[Any, ...]] = []

    class Looks(InTurn):
        def select(self, t: int, rng: np.random.Generator) -> Any:
            seen.append((type(t), t, isinstance(rng, np.random.Generator)))
            return np.int64(t % 3)  # an integer of NumPy's will do

        def update(self, arm: int, reward: float) -> None:
            seen.append((type(arm), type(reward), reward in (0.0, 1.0)))

    player = player_of(run_of(bd.PlainPolicy(Looks), WORLD, seed=0, noise_seed=None, horizon=10))
    seen.clear()
    player.watch(0, np.arange(10))
    assert seen[0::2] == [(int, t, True) for t in [*range(10), *range(10)]]
    assert seen[1::2] == [(int, float, True)] * 20


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    certified(bd.PlainPolicy(InTurn), pairs=10, progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 10), (4, 10), (8, 10), (10, 10)]


# -- what pairs share ------------------------------------------------------------------------------------------------


def test_who_ignores_rewards_agrees() -> None:
    assert certified(bd.PlainPolicy(InTurn)).mismatches == 0


@pytest.mark.parametrize("often", [0, 1])
def test_who_draws_from_rng_alone_agrees_however_much_else_is_drawn(often: int) -> None:
    policy = bd.PlainPolicy(Shared, often=often)
    assert certified(policy).mismatches == 0
    views = [bd.watch_pair(policy, WORLD, horizon=300, pair=pair, seed=seed) for pair, seed in ((0, 0), (1, 0), (0, 1))]
    assert len({view.digests for view in views}) == 3  # other pairs and other seeds have other coins
    assert set(views[0].first.tolist()) == {0, 1, 2}


def test_who_draws_elsewhere_does_not_agree_and_is_warned() -> None:
    with pytest.warns(UserWarning, match=r"^Private: the same rewards and coins gave another arm at t = \d+\. Either"):
        found = certified(bd.PlainPolicy(Private))
    assert (found.mismatches, found.verdict) == (40, "FAIL")


def test_a_generator_of_its_own_falls_out_of_step() -> None:
    """It repeats itself on the same rewards, so that nobody warns; on others it draws once more, and all is moved."""
    assert certified(bd.PlainPolicy(Seeded)).mismatches == 40


def test_more_pairs_begin_with_the_same_ones(tmp_path: Path) -> None:
    policy = bd.PlainPolicy(EpsilonGreedy, arms=3, epsilon=0.5)
    player = player_of(run_of(policy, WORLD, seed=5, noise_seed=None, horizon=30))
    few, many = player.play_block(0, 6), player.play_block(0, 9)
    assert many == few.plus(player.play_block(6, 3))
    certified(policy, pairs=8, out=tmp_path)
    grown = certified(policy, pairs=16, out=tmp_path)
    assert (grown.mismatches, grown.regret) == ((whole := certified(policy, pairs=16)).mismatches, whole.regret)


def test_pairs_of_other_code_are_not_counted_together(tmp_path: Path) -> None:
    kinds = []
    for epsilon in (0.1, 0.2):
        space: dict[str, Any] = {"__name__": "notebook", "InTurn": InTurn}
        exec(f"class Mine(InTurn):\n    def update(self, arm, reward):\n        self.own = {epsilon}\n", space)
        kinds.append(space["Mine"])
    certified(bd.PlainPolicy(kinds[0]), pairs=4, out=tmp_path)
    certified(bd.PlainPolicy(kinds[0]), pairs=8, out=tmp_path)
    with pytest.raises(ConflictError):
        certified(bd.PlainPolicy(kinds[1]), pairs=8, out=tmp_path)


@pytest.mark.slow
def test_processes_give_the_same_result() -> None:
    policy = bd.PlainPolicy(EpsilonGreedy, arms=3)
    assert certified(policy, jobs=2).to_dict() == certified(policy).to_dict()


# -- what passes from one execution to the next ----------------------------------------------------------------------


GLOBAL: list[float] = []


class ByClass(EpsilonGreedy):
    counts: list[float] = []  # noqa: RUF012 - the mistake that is looked for

    def __init__(self) -> None:
        super().__init__(3)

    def select(self, t: int, rng: np.random.Generator) -> int:
        return len(self.counts) % 3

    def update(self, arm: int, reward: float) -> None:
        self.counts += [reward] * int(reward)


class ByGlobal(ByClass):
    def select(self, t: int, rng: np.random.Generator) -> int:
        return len(GLOBAL) % 3

    def update(self, arm: int, reward: float) -> None:
        GLOBAL.extend([reward] * int(reward))


class ByDefault(ByClass):
    def __init__(self, mine: list[float] = []) -> None:  # noqa: B006 - the mistake that is looked for
        super().__init__()
        self.counts = mine


def by_variable() -> Callable[[], Any]:
    kept: list[float] = []
    return lambda: ByDefault(kept)


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        (bd.PlainPolicy(ByClass), r"ByClass\.counts"),
        (bd.PlainPolicy(ByGlobal), "the global variable GLOBAL"),
        (bd.PlainPolicy(ByDefault), "the default value of mine in __init__"),
        (bd.PlainPolicy(ByDefault, mine=[]), "the argument mine"),
        (bd.PlainPolicy(by_variable(), name="x"), "the variable kept"),
    ],
)
def test_what_outlives_an_execution_is_named(policy: bd.PlainPolicy, named: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"^policy: got \w+, allowed: one that starts .* afresh: {named} kept"):
        certified(policy)


def test_functions_without_a_state_are_refused_if_they_keep_one() -> None:
    counts = [0, 0, 0]

    def select(t: int, rng: np.random.Generator) -> int:
        return counts.index(min(counts))

    def update(arm: int, reward: float) -> None:
        counts[arm] += 1 + int(reward)

    with pytest.raises(InvalidArgument, match=r"afresh: the variable counts kept .* \(docs/add-a-policy\.md\)$"):
        certified(bd.PlainPolicy(select, update))


def test_what_outlives_an_execution_and_decides_nothing_is_nobodys_business() -> None:
    class Counting(InTurn):
        calls = 0

        def update(self, arm: int, reward: float) -> None:
            Counting.calls += 1

    assert certified(bd.PlainPolicy(Counting)).mismatches == 0
    assert Counting.calls > 2 * 40 * 300


def test_the_modules_generator_is_randomness_of_its_own() -> None:
    with pytest.warns(UserWarning, match="elsewhere than from rng"):
        certified(bd.PlainPolicy(lambda t, rng: random.randrange(3), lambda arm, reward: None), pairs=4)


# -- two functions ---------------------------------------------------------------------------------------------------


def begin(arms: int) -> dict[str, list[float]]:
    return {"pulls": [0.0] * arms, "sums": [0.0] * arms}


def choose(state: dict[str, list[float]], t: int, rng: np.random.Generator) -> int:
    if t < len(state["pulls"]):
        return t
    return max(range(len(state["pulls"])), key=lambda arm: state["sums"][arm] / state["pulls"][arm])


def learn(state: dict[str, list[float]], arm: int, reward: float) -> None:
    state["pulls"][arm] += 1.0
    state["sums"][arm] += reward


def test_two_functions_with_a_state_are_the_same_as_a_class() -> None:
    functions = bd.PlainPolicy(choose, learn, start=begin, arms=3, name="greedy")
    kind = bd.PlainPolicy(EpsilonGreedy, arms=3, epsilon=0.0)
    one, other = (bd.watch_pair(policy, WORLD, horizon=300) for policy in (functions, kind))
    assert one.digests == other.digests
    assert functions.name == "greedy"
    assert repr(functions) == "PlainPolicy(choose, learn, start=begin, arms=3)"
    assert repr(kind) == "PlainPolicy(EpsilonGreedy, arms=3, epsilon=0.0)"


def test_two_functions_without_a_state() -> None:
    policy = bd.PlainPolicy(lambda t, rng: int(rng.integers(3)), lambda arm, reward: None)
    assert policy.name == "plain-policy"
    assert (
        bd.watch_pair(policy, WORLD, horizon=50).digests
        == bd.watch_pair(bd.PlainPolicy(Shared), WORLD, horizon=50).digests
    )


def test_a_factory_and_a_partial_will_do() -> None:
    ways = [
        bd.PlainPolicy(EpsilonGreedy, arms=3, epsilon=0.3),
        bd.PlainPolicy(lambda: EpsilonGreedy(3, 0.3), name="mine"),
        bd.PlainPolicy(partial(EpsilonGreedy, 3), epsilon=0.3),
    ]
    assert [policy.name for policy in ways] == ["EpsilonGreedy", "mine", "EpsilonGreedy"]
    assert len({bd.watch_pair(policy, WORLD, horizon=100).digests for policy in ways}) == 1


# -- what is refused -------------------------------------------------------------------------------------------------


ONE = EpsilonGreedy(3)
WRONG: Any = bd.PlainPolicy  # so that a type checker lets mistakes pass


class OnlySelects:
    def select(self, t: int, rng: np.random.Generator) -> int:
        return 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: WRONG(ONE),
            r"policy: got an object of class EpsilonGreedy, allowed: the class, Plain",
        ),
        (
            lambda: bd.PlainPolicy(lambda: ONE),
            "policy: got <lambda>, which returns the same object twice, allowed",
        ),
        (
            lambda: bd.PlainPolicy(choose, learn, start=lambda: GLOBAL),
            "start: got <lambda>, which returns the same",
        ),
        (
            lambda: bd.PlainPolicy(OnlySelects),
            "policy: got OnlySelects, whose objects have no update, allowed: a",
        ),
        (lambda: bd.PlainPolicy(dict), "policy: got dict, whose objects have no select"),
        (lambda: bd.PlainPolicy(list), "policy: got list, whose objects have no select and no update"),
        (lambda: bd.PlainPolicy(EpsilonGreedy), r"policy: got EpsilonGreedy\(\), allowed: .* argument: 'arms'\)$"),
        (lambda: bd.PlainPolicy(EpsilonGreedy, arms="x"), r"policy: got EpsilonGreedy\(arms='x'\), .* \(TypeError: "),
        (lambda: bd.PlainPolicy(choose), "policy: got choose"),
        (lambda: WRONG(5), "policy: got 5, allowed: a class with select"),
        (lambda: bd.PlainPolicy(EpsilonGreedy, learn), "policy: got EpsilonGreedy, allowed: a function; or a class"),
        (lambda: WRONG(choose, 5), "update: got"),
        (lambda: WRONG(choose, learn, start={}), "start: got {}, allowed: a class or function"),
        (lambda: bd.PlainPolicy(choose, learn, arms=3), "start: got None, allowed: a function that takes arms"),
        (lambda: bd.PlainPolicy(EpsilonGreedy, arms=3, start=dict), "start: got dict, allowed: none with a class"),
        (lambda: bd.PlainPolicy(EpsilonGreedy, arms=3, name="ucb1"), "name: got ucb1, allowed: another name"),
        (lambda: bd.PlainPolicy(EpsilonGreedy, arms=3, name="a\nb"), "name: got a b"),
        (lambda: certified(bd.PlainPolicy(EpsilonGreedy, arms=4)), "environment: got 3 arms, allowed: 4 arms"),
        (lambda: certified(bd.PlainPolicy(InTurn), horizon=None), "horizon: got None, allowed: a horizon"),
        (lambda: certified(bd.PlainPolicy(InTurn), rho=None), "rho: got None"),
        (
            lambda: certified(bd.PlainPolicy(InTurn), backend="cupy"),
            "policy: got InTurn, allowed: a policy that",
        ),
        (lambda: bd.attack(bd.PlainPolicy(InTurn)), "policy: got InTurn, allowed: a policy that works in batches"),
        (lambda: bd.calibrate(bd.PlainPolicy(InTurn)), "policy: got InTurn"),
        (
            lambda: certified(bd.PlainPolicy(lambda: InTurn()), jobs=2),
            "jobs: got 2, allowed: 1, because plain-policy can",
        ),
        (
            lambda: bd.compare([bd.PlainPolicy(lambda: InTurn())], WORLD, rho=0.1, horizon=100, jobs=2),
            "jobs: got 2, allowed: 1, because plain-policy can",
        ),
        (
            lambda: certified(bd.PlainPolicy(InTurn), bd.LinearGaussian([0.5], bd.Ball(dimension=1))),
            "policy: got InTurn, allowed: one for infinite action sets",
        ),
    ],
)
def test_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{said}") as caught:
        make()
    assert "\n" not in str(caught.value)


def test_somebody_elses_processes_do_not_find_a_lambda_either() -> None:
    said = "^executor: got processes, allowed: none, because plain-policy cannot be sent"
    # no process is started before it is sent something
    with ProcessPoolExecutor(1) as processes, pytest.raises(InvalidArgument, match=said):
        certified(bd.PlainPolicy(lambda: InTurn()), executor=processes)
    with ThreadPoolExecutor(1) as threads:  # they share its memory
        assert certified(bd.PlainPolicy(lambda: InTurn()), executor=threads).mismatches == 0


class Incomplete:
    name, decision_version, arms, horizon = "incomplete", 1, 3, 1000

    def init(self, replicates: int) -> Any: ...

    def plan(self, state: Any) -> Any: ...


PAGE = r"\(docs/add-a-policy\.md\)$"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (ONE, r"an object of class EpsilonGreedy, allowed: PlainPolicy\(EpsilonGreedy, \.\.\.\): .* " + PAGE),
        (EpsilonGreedy, r"the class EpsilonGreedy, allowed: PlainPolicy\(EpsilonGreedy, \.\.\.\): .* " + PAGE),
        (OnlySelects(), "an object of class OnlySelects, allowed: .* with .*: OnlySelects has no update " + PAGE),
        (object(), "an object of class object, allowed: .*: object has no select and no update " + PAGE),
        (choose, "choose, allowed: .*: function has no select and no update " + PAGE),
        (
            Incomplete(),
            "an object of class Incomplete, allowed: a policy object that works in batches; Incomplete has no decide, "
            "settings, resolved, check_rewards " + PAGE,
        ),
        ("ucb1", r"ucb1, allowed: a policy object: UCB1\(\.\.\.\); names are for the command line " + PAGE),
        ("nothing", "nothing, allowed: a policy, such as .* " + PAGE),
        (None, "None, allowed: a policy, such as .* " + PAGE),
        (bd.UCB1, r"the class UCB1, allowed: a policy object: UCB1\(\.\.\.\)$"),
        (bd.RandomThreshold, r"the class RandomThreshold, allowed: a policy object: RandomThreshold\(\.\.\.\)$"),
    ],
)
def test_what_is_no_policy_is_told_what_it_lacks(value: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^policy: got {said}"):
        certified(value)
    with pytest.raises(InvalidArgument, match=f"^policies: got {said}"):
        bd.compare([value], WORLD, horizon=100, rho=0.1)


# -- mistakes in a user's code ---------------------------------------------------------------------------------------


class Returns(InTurn):
    def __init__(self, what: Any, at: int = 7) -> None:
        super().__init__()
        self.what, self.at = what, at

    def select(self, t: int, rng: np.random.Generator) -> Any:
        return self.what if t == self.at else t % 3


@pytest.mark.parametrize(
    ("what", "shown"), [(3, "3"), (-1, "-1"), (None, "nothing"), (1.0, "1.0"), (True, "True"), ("1", "1")]
)
def test_an_arm_is_an_integer_in_range(what: Any, shown: str) -> None:
    said = rf"^Returns: select returned {shown} at t = 7 \(pair 0, first execution\), allowed: an integer from 0 to 2$"
    with pytest.raises(ContractError, match=said):
        certified(bd.PlainPolicy(Returns, what=what))


class Fails(InTurn):
    def __init__(self, method: str, at: int) -> None:
        super().__init__()
        self.method, self.at, self.t = method, at, 0

    def select(self, t: int, rng: np.random.Generator) -> int:
        self.t = t
        return t % 3 if self.method != "select" or t < self.at else 1 // 0

    def update(self, arm: int, reward: float) -> None:
        if self.method == "update" and self.t == self.at:
            raise KeyError("x")


@pytest.mark.parametrize(
    ("method", "said"),
    [("select", "ZeroDivisionError: integer division or modulo by zero"), ("update", "KeyError: 'x'")],
)
def test_an_error_of_the_users_is_one_line_with_the_traceback_behind_it(method: str, said: str) -> None:
    line = rf"^Fails: {method} failed at t = 9 \(pair 0, first execution\): {said}$"
    with pytest.raises(ContractError, match=line) as caught:
        certified(bd.PlainPolicy(Fails, method=method, at=9))
    cause = caught.value.__cause__
    assert isinstance(cause, ZeroDivisionError | KeyError)
    assert traceback.extract_tb(cause.__traceback__)[-1].filename == __file__


@pytest.mark.slow
def test_an_error_in_another_process_keeps_its_traceback() -> None:
    """It comes after the rounds that are tried out here."""
    with pytest.raises(ContractError, match=r"^Fails: select failed at t = 2500 \(pair \d, first") as caught:
        certified(bd.PlainPolicy(Fails, method="select", at=2500), horizon=3000, pairs=8, jobs=2)
    told = "".join(traceback.format_exception(caught.value))
    assert "else 1 // 0" in told


# -- what is written down --------------------------------------------------------------------------------------------


def test_the_protocol_says_that_it_does_not_hold_the_code() -> None:
    found = certified(bd.PlainPolicy(EpsilonGreedy, arms=3, epsilon=0.25), pairs=2)
    protocol = bd.Protocol.from_toml(found.protocol.to_toml())
    assert protocol.digest == found.digest
    assert protocol.policy == "EpsilonGreedy"
    assert "does not hold" in str(protocol.settings["plain"])
    assert protocol.settings["code"] == f"{__name__}.EpsilonGreedy"
    assert protocol.to_dict()["settings"]["arguments"] == {"arms": "3", "epsilon": "0.25"}
    with pytest.raises(InvalidArgument, match="^protocol: got EpsilonGreedy, allowed: a policy of banditto: the code"):
        bd.policy_of(protocol)
    assert certified(bd.PlainPolicy(EpsilonGreedy, arms=3, epsilon=0.25), pairs=3).digest == found.digest
    assert certified(bd.PlainPolicy(EpsilonGreedy, arms=3, epsilon=0.5), pairs=2).digest != found.digest
    assert certified(bd.PlainPolicy(TextbookUCB, arms=3, name="EpsilonGreedy"), pairs=2).digest != found.digest


def test_arguments_are_written_alike_in_every_process() -> None:
    settings = bd.PlainPolicy(lambda **given: InTurn(), a=object(), b=[object()], c=[1, 2.5]).settings()
    assert settings["arguments"] == {"a": "of class object", "b": "of class list", "c": "[1, 2.5]"}


AT_A_PROMPT = """
import banditto as bd
class InTurn:
    def select(self, t, rng):
        return t % 2
    def update(self, arm, reward):
        pass
world = bd.Bernoulli([0.6, 0.5])
print(bd.certify(bd.PlainPolicy(InTurn), world, horizon=100, rho=0.1, pairs=4).agreement)
try:
    bd.certify(bd.PlainPolicy(InTurn), world, horizon=100, rho=0.1, pairs=4, jobs=2)
except bd.InvalidArgument as error:
    print(error)
"""


@pytest.mark.slow
def test_a_class_of_a_notebook_stays_in_its_process_and_is_told_so() -> None:
    done = subprocess.run(
        [sys.executable, "-"], input=AT_A_PROMPT, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    agreement, said = done.stdout.splitlines()
    assert agreement == "1.0"
    assert said == (
        "jobs: got 2, allowed: 1, because InTurn was defined in a notebook or at a prompt, where other processes "
        "cannot find it; put it into a file and import it"
    )


@pytest.mark.long
@pytest.mark.slow
def test_a_class_of_a_guarded_script_can_travel(tmp_path: Path) -> None:
    script = AT_A_PROMPT.split("world =")[0] + (
        "if __name__ == '__main__':\n    world = bd.Bernoulli([0.6, 0.5])\n"
        "    print(bd.certify(bd.PlainPolicy(InTurn), world, horizon=100, rho=0.1, pairs=4, jobs=2).agreement)\n"
    )
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1.0\n", "")
