"""CertifiedElimination: its constants, its decisions, and every lemma of its proof, by enumeration and simulation."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr, ndtri

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument, ShortHorizonWarning
from banditto.core.rewards import Rewards
from banditto.engine.batched import BatchedPlayer
from banditto.engine.player import run_of
from banditto.policies.certified_elimination import ladder, ladder_search
from banditto.policies.certified_elimination.overlap import Window, worst_sum
from banditto.policies.shared import confidence
from banditto.testing import POLICY_CHECKS, assert_rate_at_most
from banditto.testing.policy_contract import Check, play
from tests.lazily import Lazily

BOUNDED = Rewards("bounded", 0.5)
POLICIES = Lazily(
    {
        "2 arms": lambda: bd.CertifiedElimination(arms=2, horizon=10**5, rho=0.2),
        "10 arms": lambda: bd.CertifiedElimination(arms=10, horizon=10**7, rho=0.1),
        "4 arms, eliminations": lambda: bd.CertifiedElimination(arms=4, horizon=10**9, rho=0.5, gap=0.0005),
        "3 arms, Gaussian": lambda: bd.CertifiedElimination(
            arms=3, horizon=10**7, rho=0.3, sigma=2.0, rewards="gaussian"
        ),
        "no test fits": lambda: bd.CertifiedElimination(arms=6, horizon=400, rho=0.1),
        "100 arms": lambda: bd.CertifiedElimination(arms=100, horizon=10**12, rho=0.1),
    }
)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_contract(name: str, check: Check) -> None:
    check(POLICIES[name])


def test_the_policies_above_are_of_all_kinds() -> None:
    assert POLICIES["4 arms, eliminations"].schedule.batches[0].eliminate is not None
    assert POLICIES["10 arms"].schedule.batches[0].eliminate is None
    assert not POLICIES["no test fits"].schedule.batches


# -- constants --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("examples", [10, pytest.param(25, marks=pytest.mark.long)])
def test_the_guarantee_holds_whatever_is_asked(examples: int) -> None:
    asked = given(
        st.integers(2, 40),
        st.integers(2, 15),
        st.floats(0.001, 0.95),
        st.sampled_from(["bounded", "gaussian"]),
        st.booleans(),
    )
    settings(max_examples=examples)(asked(check_guarantee))()


def check_guarantee(arms: int, digits: int, rho: float, rewards: Any, named: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        policy = bd.CertifiedElimination(
            arms=arms, horizon=10**digits, rho=rho, rewards=rewards, gap=0.07 if named else None
        )
    guarantee = policy.guarantee()
    assert guarantee.holds
    assert [term.name for term in guarantee.terms] == ["good event", "elimination", "commit", "final choice"]
    if policy.schedule.batches and rho >= 0.05:
        assert guarantee.total > 0.85 * rho  # rho is used, not left over
    if rewards == "bounded":  # no batch whose cuts are all beyond the widest gap
        assert all(batch.commit.low < 1.0 for batch in policy.schedule.batches)
    pulls = [batch.pulls for batch in policy.schedule.batches]
    assert 2 * sum(pulls) <= policy.horizon
    assert not pulls or arms * pulls[0] <= policy.horizon


@pytest.mark.parametrize(
    ("arms", "horizon", "rho"), [(2, 10, 1e-6), (2, 10**10, 1e-9), (2, 10**15, 1e-10), (300, 10**5, 1e-4)]
)
def test_tiny_rhos(arms: int, horizon: int, rho: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        assert bd.CertifiedElimination(arms=arms, horizon=horizon, rho=rho).guarantee().holds


def test_the_search_is_deterministic_and_cached() -> None:
    problem = ladder_search.LadderProblem(7, 10**7, 0.15, BOUNDED, None)
    first = ladder_search.best_shape(problem)
    hits = ladder_search.best_shape.cache_info().hits
    assert ladder_search.best_shape(problem) is first
    assert ladder_search.best_shape.cache_info().hits == hits + 1
    ladder_search.best_shape.cache_clear()
    assert ladder_search.best_shape(problem) == first


def test_a_named_gap_is_what_the_constants_are_tuned_for() -> None:
    """Predicted and measured: naming the gap lowers the regret at that gap."""
    world = bd.Bernoulli([0.5, 0.5, 0.67])
    means = [
        bd.certify(
            bd.CertifiedElimination(arms=3, horizon=10**8, rho=0.1, gap=gap), world, pairs=500, seed=1
        ).regret.mean
        for gap in (None, 0.17)
    ]
    assert means[1] < 0.8 * means[0]


def test_cuts_can_be_recomputed_by_hand() -> None:
    """K = 2, T = 10^6, rho = 0.1: l = R + a w, R = sqrt(log(N T)/m), w = M E/share, E = sqrt(2/(pi m))."""
    policy = bd.CertifiedElimination(arms=2, horizon=10**6, rho=0.1)
    schedule = policy.schedule
    shape = ladder_search.best_shape(ladder_search.LadderProblem(2, 10**6, 0.1, BOUNDED, None))
    number = len(schedule.batches)
    share = (0.1 - 2e-6) * shape.commit_share / 1000
    multiples = set()
    for i, (pulls, commit, _) in enumerate(schedule.batches):
        assert pulls == schedule.batches[0].pulls * shape.growth**i
        noise, lead = math.sqrt(2 / (math.pi * pulls)), math.sqrt(math.log(number * 10**6) / pulls)
        assert commit.low == pytest.approx(lead + shape.commit_offset / 32 * commit.width, rel=1e-9)
        multiples.add(round(256 * commit.width / (noise / share), 4))
    assert len(multiples) == 1
    assert float(multiples.pop()).is_integer()


def test_a_description_says_how_to_recompute_every_cut() -> None:
    description = POLICIES["4 arms, eliminations"].describe().to_dict()
    for name, low, high in (("commit cuts", "commit low", "commit high"), ("elimination cuts", "low", "high")):
        found = re.fullmatch(r"low = R \+ (\S+) width, width = (\S+) E", description["facts"][name])
        assert found is not None
        offset, width = found.groups()
        for row in description["batches"]:
            wide = float(width) * row["E"]
            assert row[high] - row[low] == pytest.approx(wide, rel=1e-3)
            assert row[low] == pytest.approx(row["R"] + float(offset) * wide, rel=1e-3)


def test_windows_are_the_narrowest_that_the_proof_allows() -> None:
    problem = ladder_search.LadderProblem(5, 10**7, 0.1, BOUNDED, None)
    resolved = ladder.resolve(problem)
    commit = {name: value for name, value, _ in ladder.terms(problem, resolved)}["commit"]
    narrower = resolved._replace(
        batches=tuple(b._replace(commit=b.commit._replace(width=b.commit.width * 0.98)) for b in resolved.batches)
    )
    larger = {name: value for name, value, _ in ladder.terms(problem, narrower)}["commit"]
    share = 0.1 * ladder_search.best_shape(problem).commit_share / 1000
    assert float(commit) <= share < float(larger)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"constants": "paper"}, "^constants: got paper"),
        ({"sigma": 1.0}, "^rewards: got subgaussian"),
        ({"gap": 0.0}, "^gap: got 0.0"),
        ({"gap": 1.5}, "^gap: got 1.5"),
        ({"gap": "x"}, "^gap: got x"),
        ({"rho": 1.0}, "^rho: got 1.0"),
        ({"rho": 1e-300}, "^rho: got 1e-300"),
    ],
)
def test_bad_arguments(change: dict[str, Any], said: str) -> None:
    arguments: dict[str, Any] = {"arms": 3, "horizon": 10**6, "rho": 0.1, **change}
    with pytest.raises(InvalidArgument, match=said):
        bd.CertifiedElimination(**arguments)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("choice_rho = ", "chosen_rho = "), "batches, exploration and choice_rho"),
        (("pulls = ", "pulls = -"), "pulls: got -"),
        (('width = "0x', 'width = "-0x'), "width > 0"),
        (("exploration = ", "exploration = 9"), "exploration: got 9"),
        (("commit = ", "comet = "), "tables with pulls, commit"),
    ],
)
def test_tampered_protocols_are_refused(change: tuple[str, str], said: str) -> None:
    policy = POLICIES["2 arms"]
    content = policy.protocol(seed=1).to_toml()
    assert change[0] in content
    with pytest.raises(InvalidArgument, match=said):
        bd.policy_of(bd.Protocol.from_toml(content.replace(*change)))


def test_rewards_of_another_kind_are_refused() -> None:
    """The proof's noise bounds and widest gaps are of one kind of rewards."""
    gaussian = bd.CertifiedElimination(arms=3, horizon=10**5, rho=0.2, rewards="gaussian")
    bounded = bd.CertifiedElimination(arms=3, horizon=10**5, rho=0.2)
    for policy, world in ((gaussian, bd.Bernoulli([0.1, 0.2, 0.3])), (bounded, bd.Gaussian([0.1, 0.2, 0.3]))):
        with pytest.raises(InvalidArgument, match="^environment: got"):
            bd.certify(policy, world, pairs=10)


def test_lower_cuts_have_no_proof() -> None:
    policy = POLICIES["2 arms"]
    rows = policy.resolved()
    protocol = policy.protocol(seed=1)
    batches: Any = rows["batches"]
    batch = {**batches[0], "commit": {"low": "0x1.0p-9", "width": batches[0]["commit"]["width"]}}
    lowered: Any = bd.policy_of(replace(protocol, resolved={**rows, "batches": (batch, *batches[1:])}))
    assert not lowered.guarantee().holds
    assert lowered.guarantee().terms[0].name == "unproved constants"


# -- finite precision -------------------------------------------------------------------------------------------------


def ratios(policy: bd.CertifiedElimination) -> list[float]:
    """Low over width of every window."""
    windows = [cut for batch in policy.schedule.batches for cut in (batch.commit, batch.eliminate) if cut is not None]
    return [cut.low / cut.width for cut in windows]


# low/width is large where rho and horizon are; the first is the largest that was found over many policies
EXTREMES = [
    (1000, 10**15, 0.999, "gaussian", 0.5),
    *itertools.product((2,), (10**3, 10**7, 10**15), (0.01, 0.999), ("bounded", "gaussian"), (None,)),
    *itertools.product((5,), (10**4, 10**15), (0.01, 0.999), ("bounded",), (None, 0.03)),
    (30, 10**9, 0.3, "gaussian", 0.1),
    (100, 10**12, 0.9, "bounded", 0.5),
]


@pytest.mark.parametrize(("arms", "horizon", "rho", "rewards", "gap"), EXTREMES)
def test_no_window_is_too_narrow_for_its_place(
    arms: int, horizon: int, rho: float, rewards: Any, gap: float | None
) -> None:
    """The ratio that the argument on finite precision needs, and what the page says that no search exceeds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortHorizonWarning)
        policy = bd.CertifiedElimination(arms=arms, horizon=horizon, rho=rho, rewards=rewards, gap=gap)
    pulls = [batch.pulls for batch in policy.schedule.batches]
    bound = math.sqrt(math.log(max((arms - 1) * len(pulls) * horizon, 1)) * math.pi / 2) + 0.75
    assert all(ratio <= bound < 9.2 < confidence.LARGEST_RATIO for ratio in ratios(policy))
    assert policy.guarantee().holds
    # N: two arms could be tested in all batches of a ladder, all arms in its first
    assert not pulls or (2 * sum(pulls) <= horizon and arms * pulls[0] <= horizon)
    assert all(later == pulls[1] // pulls[0] * earlier for earlier, later in itertools.pairwise(pulls))


def test_the_largest_ratio_is_the_one_on_the_page() -> None:
    """An argument for windows that begin at most three widths above 0, as Algorithm 2's do, would not cover it."""
    text = (Path(__file__).parents[2] / "docs" / "certified-elimination.md").read_text(encoding="utf-8")
    policy = bd.CertifiedElimination(arms=1000, horizon=10**15, rho=0.999, rewards="gaussian", gap=0.5)
    assert f"finds {max(ratios(policy)):.1f})" in text
    assert max(ratios(policy)) > 3.0
    assert f"exceeds ${confidence.LARGEST_RATIO:g}w_i$" in text


def both_differ(policy: bd.CertifiedElimination, gap: float) -> float:
    """P(differ) of two arms with Gaussian rewards, the final choice included; numerically, to about 1e-4 of it."""
    (deviation, survive), differ = (policy.sigma * math.sqrt(2.0), 1.0), 0.0
    for pulls, cut, _ in policy.schedule.batches:
        cuts = cut.low + cut.width * (np.arange(4000) + 0.5) / 4000
        beyond = ndtr((gap - cuts) * math.sqrt(pulls) / deviation) + ndtr((-gap - cuts) * math.sqrt(pulls) / deviation)
        differ += survive * float(np.mean(2.0 * beyond * (1.0 - beyond)))
        survive *= float(np.mean((1.0 - beyond) ** 2))
    remaining = policy.horizon - 2 * sum(batch.pulls for batch in policy.schedule.batches)
    final = policy.schedule.exploration * remaining // (2 * ladder.EXPLORATION_UNIT)
    noise = policy.sigma * confidence.choice_scale(2) / (policy.schedule.choice_rho * math.sqrt(final))
    leads = gap + ndtri((np.arange(1000) + 0.5) / 1000) * deviation / math.sqrt(final)
    first = expit(leads / noise)  # how likely the better arm is chosen
    return differ + survive * float(np.mean(np.abs(first[:, np.newaxis] - first)))


def test_the_bound_is_nearly_attained() -> None:
    """What the page says of the worst gap, in numbers: 0.992 rho, and not more than the guarantee."""
    text = (Path(__file__).parents[2] / "docs" / "certified-elimination.md").read_text(encoding="utf-8")
    policy = bd.CertifiedElimination(arms=2, horizon=10**9, rho=0.01, rewards="gaussian")
    share = both_differ(policy, 0.00383) / policy.rho
    assert f"{share:.3f} ρ with Gaussian rewards" in text
    assert 0.99 < share < policy.guarantee().total / policy.rho


@given(st.floats(0.0, confidence.LARGEST_RATIO), st.floats(2.0**-30, 1.0), st.integers(1, 10**15), st.data())
@settings(max_examples=200)
def test_rounded_cuts_are_where_the_page_says(ratio: float, width: float, pulls: int, data: st.DataObject) -> None:
    """In exact fractions: the cut as the policy computes it, and the difference that is rounded to it."""
    low, unit = ratio * width, Fraction(1, 2**53)
    u = data.draw(st.integers(0, 2**53 - 1)) * 2.0**-53
    cut = pulls * low + u * (pulls * width)
    ideal = pulls * Fraction(low) + Fraction(u) * pulls * Fraction(width)
    span = pulls * Fraction(width)
    r = Fraction(low) / Fraction(width)
    slack = 1 + 8 * unit  # terms of second order
    assert abs(Fraction(cut) - ideal) <= (2 * r + 3) * unit * span * slack
    farthest = Fraction(cut) + (Fraction(math.nextafter(cut, math.inf)) - Fraction(cut)) / 2  # rounded to the cut
    assert farthest - ideal <= (3 * r + 4) * unit * span * slack
    assert (5 * r + 8) * unit * slack <= Fraction(1, 2**47)


@pytest.mark.parametrize("name", ["commit", "eliminate"])
def test_a_window_that_is_too_narrow_for_its_place_has_no_proof(name: str) -> None:
    """Narrower windows at the same place: what rounding adds is more than the bound has for it."""
    policy = POLICIES["4 arms, eliminations"]
    rows: Any = policy.resolved()
    protocol = policy.protocol(seed=1)
    for ratio, proved in ((confidence.LARGEST_RATIO * 0.999, True), (confidence.LARGEST_RATIO * 1.001, False)):
        batch = rows["batches"][0]
        low = float.fromhex(batch[name]["low"])
        batch = {**batch, name: {"low": batch[name]["low"], "width": (low / ratio).hex()}}
        edited: Any = bd.policy_of(replace(protocol, resolved={**rows, "batches": (batch, *rows["batches"][1:])}))
        guarantee = edited.guarantee()
        assert (guarantee.terms[0].name != "unproved constants") == proved
        assert proved or (guarantee.total == 1.0 and not guarantee.holds)


# -- decisions --------------------------------------------------------------------------------------------------------


def test_commits_and_eliminations_by_hand() -> None:
    policy = POLICIES["4 arms, eliminations"]
    pulls, commit, eliminate = policy.schedule.batches[0]
    assert eliminate is not None
    coins = Coins(5, count=4)
    top = float(pulls)
    far = pulls * (eliminate.low + eliminate.width) + 1
    near = top - pulls * commit.low / 2
    rows = np.array(
        [
            [top, near, near, near],  # nobody leads, nobody is far behind
            [near, top, near, top - far],  # one is far behind
            [top - far, top - far, top, top - far],  # one leads by more than any cut: a commit
            [near, near, near, near],  # all alike
        ]
    )
    state = policy.decide(policy.init(4), rows, coins)
    assert state.active.tolist() == [[True] * 4, [True, True, True, False], [False, False, True, False], [True] * 4]


def test_a_commit_uses_the_fresh_batch_alone() -> None:
    policy = POLICIES["2 arms"]
    coins = Coins(3)
    state = policy.init(1)
    first, second = policy.schedule.batches[:2]
    state = policy.decide(state, np.array([[first.pulls * 0.5, first.pulls * 0.5]]), coins)
    lead = (second.commit.low + second.commit.width) * second.pulls + 1
    state = policy.decide(state, np.array([[0.0, lead]]), coins)
    assert state.active.tolist() == [[False, True]]


def test_the_final_choice_is_the_shared_gumbel_argmax() -> None:
    policy = POLICIES["no test fits"]
    coins = Coins(8, count=300)
    state = policy.init(300)
    assert state.choosing.all()
    m = int(state.each[0, 0])
    assert m == policy.schedule.exploration * 400 // (32 * 6)
    totals = np.tile(np.round(m * np.linspace(0.2, 0.8, 6)), (300, 1))
    after = policy.decide(state, totals, coins)
    assert (after.several == 1).all()
    scale = (
        0.5 / policy.schedule.choice_rho * min(math.sqrt(math.log(6)), 6 * math.sqrt(2 / math.pi) / 4) / math.sqrt(m)
    )
    for row in range(300):
        noise = [-math.log(-math.log(float(Coins(8, row).uniform("choice", 1, arm)[0, 0]))) for arm in range(6)]
        values = [total / m + scale * g for total, g in zip(totals[row], noise, strict=True)]
        assert after.active[row].tolist() == [value == max(values) for value in values]


def test_the_end_prefers_better_arms() -> None:
    """Near-ties until the budget ends: the choice is random, and better arms are likelier."""
    policy = bd.CertifiedElimination(arms=2, horizon=10**6, rho=0.5)
    plans, _ = play(policy, Coins(4, count=400), lambda pulls, batch: np.round(pulls * np.array([0.5, 0.502])))
    last = (
        (plans[-1] > 0).sum(axis=0) if (plans[-1].sum(axis=1) > 0).all() else (plans[-2] > plans[-2].min()).sum(axis=0)
    )
    assert last[1] > last[0] > 0


# -- the lemmas, exactly by enumeration -------------------------------------------------------------------------------

LAWS = {
    "fair": ([0.0, 1.0], [0.5, 0.5]),
    "skewed": ([0.0, 1.0], [0.8, 0.2]),
    "rare": ([0.0, 1.0], [0.95, 0.05]),
    "three values": ([0.0, 0.5, 1.0], [0.3, 0.4, 0.3]),
    "narrow": ([0.4, 0.6], [0.5, 0.5]),
}


def mean_law(name: str, m: int) -> dict[float, float]:
    """The distribution of the mean of m rewards."""
    values, probabilities = LAWS[name]
    law = {0.0: 1.0}
    for _ in range(m):
        following: dict[float, float] = {}
        for total, p in law.items():
            for value, q in zip(values, probabilities, strict=True):
                key = round(total + value, 9)
                following[key] = following.get(key, 0.0) + p * q
        law = following
    return {total / m: p for total, p in law.items()}


def gap_law(names: tuple[str, ...], m: int) -> dict[float, float]:
    """The distribution of the largest mean of all but the first arm, less the first arm's mean."""
    laws = [list(mean_law(name, m).items()) for name in names]
    found: dict[float, float] = {}
    for combination in itertools.product(*laws):
        gap = round(max(x for x, _ in combination[1:]) - combination[0][0], 9)
        found[gap] = found.get(gap, 0.0) + math.prod(p for _, p in combination)
    return found


def expected_difference(law: dict[float, float], low: float = -math.inf, high: float = math.inf) -> float:
    """E|clip(G) - clip(G')| for independent G, G'."""
    points = [(min(max(x, low), high), p) for x, p in law.items()]
    return sum(p * q * abs(x - y) for x, p in points for y, q in points)


CASES = [
    *(((first, second), m) for first in LAWS for second in LAWS for m in (1, 3, 8)),
    *((names, m) for names in [("fair",) * 3, ("rare", "fair", "skewed"), ("three values",) * 3] for m in (1, 4, 10)),
    (("fair",) * 4, 5),
    (("fair",) * 5, 3),
    (("skewed", "fair", "fair", "rare", "narrow"), 3),
]


@pytest.mark.parametrize(("names", "m"), CASES)
def test_lemma_2_noise_of_a_gap_by_enumeration(names: tuple[str, ...], m: int) -> None:
    law = gap_law(names, m)
    exact = expected_difference(law)
    assert exact <= confidence.batch_noise(len(names), BOUNDED, m) + 1e-12
    # and for the positive part, which is the gap to the leader
    assert expected_difference(law, low=0.0) <= exact + 1e-12


@pytest.mark.parametrize(("names", "m"), CASES[-12:])
def test_efron_stein_bound_of_a_maximum_by_enumeration(names: tuple[str, ...], m: int) -> None:
    laws = [list(mean_law(name, m).items()) for name in names]
    first = second = 0.0
    for combination in itertools.product(*laws):
        top, p = max(x for x, _ in combination), math.prod(p for _, p in combination)
        first, second = first + p * top, second + p * top * top
    arms = len(names) + 1
    assert second - first**2 <= (0.25 + math.sqrt(math.log(arms) / (2 * m))) / m + 1e-12


@pytest.mark.parametrize(("names", "m"), [case for case in CASES if case[1] >= 3])
def test_lemma_3_a_cut_outside_by_enumeration(names: tuple[str, ...], m: int) -> None:
    """Tails on either side of a window, with the number of arms that could carry the gap over its edge."""
    law = gap_law(names, m)
    means = [sum(v * p for v, p in zip(*LAWS[name], strict=True)) for name in names]
    centre = max(means[1:]) - means[0]
    others = len(names) - 1
    for distance in (0.0, 0.1, 0.3, 0.6):
        for width in (0.05, 0.4):
            low = centre + distance
            above = others * confidence.overshoot(distance, 0.5, m)
            assert expected_difference(law, low, low + width) <= above + 1e-12
            high = centre - distance
            below = confidence.overshoot(distance, 0.5, m)
            assert expected_difference(law, high - width, high) <= below + 1e-12


@pytest.mark.parametrize(("names", "m"), [case for case in CASES if len(case[0]) == 2])
def test_lemma_1_a_wrong_lead_by_enumeration(names: tuple[str, ...], m: int) -> None:
    law = gap_law(names, m)
    means = [sum(v * p for v, p in zip(*LAWS[name], strict=True)) for name in names]
    if means[1] > means[0]:
        return
    for horizon in (10, 1000):
        radius = confidence.wrong_lead(2, 1, horizon, 0.5, m)
        assert sum(p for gap, p in law.items() if gap > radius) <= 1 / horizon + 1e-12


def choose_alike(first: FloatArray, second: FloatArray) -> float:
    """P(the same argmax with shared Gumbel noise), in closed form."""
    p, q = np.exp(first - first.max()), np.exp(second - second.max())
    return float(sum(1 / np.maximum(p / p[a], q / q[a]).sum() for a in range(p.size)))


@given(st.lists(st.tuples(st.floats(-6, 6), st.floats(-6, 6)), min_size=2, max_size=7))
@settings(max_examples=300)
def test_lemma_6_gumbel_coupling(pairs: list[tuple[float, float]]) -> None:
    first, second = (np.array(values) for values in zip(*pairs, strict=True))
    spread = float(np.ptp(first - second))
    assert 1 - choose_alike(first, second) <= spread / 4 + 1e-9


def test_the_closed_form_of_the_coupling_is_right() -> None:
    """Against simulation, at six standard errors."""
    first, second = np.array([0.0, 1.0, -0.5]), np.array([0.7, 0.4, 0.1])
    noise = np.random.default_rng(1).gumbel(size=(200_000, 3))
    same = float(np.mean(np.argmax(first + noise, axis=1) == np.argmax(second + noise, axis=1)))
    assert abs(same - choose_alike(first, second)) < 6 * math.sqrt(0.25 / 200_000)


@pytest.mark.parametrize("survivors", [2, 3, 4, 7, 20])
def test_lemma_6_range_of_differences(survivors: int) -> None:
    """E[range(X - X')] for fair coins, the worst rewards, and normal ones; six standard errors."""
    generator = np.random.default_rng(survivors)
    for m in (1, 10, 1000):
        fair = generator.binomial(m, 0.5, (40_000, 2, survivors)) / m
        normal = generator.normal(0, 0.5 / math.sqrt(m), (40_000, 2, survivors))
        for means in (fair, normal):
            ranges = np.ptp(means[:, 0] - means[:, 1], axis=1)
            slack = 6 * float(np.std(ranges)) / math.sqrt(40_000)
            assert float(np.mean(ranges)) - slack <= 4 * 0.5 * confidence.choice_scale(survivors) / math.sqrt(m)


# -- soft counting ----------------------------------------------------------------------------------------------------


def windows_of(policy: bd.CertifiedElimination) -> list[Window]:
    rewards = Rewards.of(policy.rewards, policy.sigma)
    return [
        Window(b.pulls, b.commit.low, b.commit.width, confidence.batch_noise(policy.arms, rewards, b.pulls))
        for b in policy.schedule.batches
    ]


def bound_at(window: Window, gap: float, sigma: float, factors: tuple[int, int]) -> float:
    if gap < window.low:
        return window.below(gap, sigma, factors[0])
    return window.above(gap, sigma, factors[1]) if gap > window.high else window.inside


@pytest.mark.parametrize("name", ["2 arms", "10 arms", "3 arms, Gaussian", "100 arms"])
def test_lemma_4_the_maximum_over_gaps_is_one(name: str) -> None:
    policy = POLICIES[name]
    windows, factors = windows_of(policy), (1, policy.arms - 1)
    largest = 1.0 if policy.rewards == "bounded" else math.inf
    bound = worst_sum(windows, policy.sigma, factors, largest)
    generator = np.random.default_rng(2)
    gaps = np.exp(generator.uniform(math.log(1e-6), math.log(min(largest, 50.0)), 3000)).tolist()
    sums = [sum(bound_at(w, gap, policy.sigma, factors) for w in windows) for gap in [0.0, *gaps]]
    assert max(sums) <= bound
    assert max(sums) > 0.97 * bound  # and not much above


def test_lemma_5_a_constant_gap_is_the_worst_path() -> None:
    """Over all nondecreasing paths on a grid, by dynamic programming."""
    policy = POLICIES["10 arms"]
    windows, factors = windows_of(policy), (1, 9)
    grid = [0.0, *np.geomspace(1e-5, 1.0, 600).tolist()]
    table = np.array([[bound_at(w, gap, 0.5, factors) for gap in grid] for w in windows])
    best = np.zeros(len(grid))  # of the batches to come, from this gap on
    for row in table[::-1]:
        best = np.maximum.accumulate((row + best)[::-1])[::-1]
    assert best[0] <= table.sum(axis=0).max() + 1e-12
    # peaks that move the other way would break it
    backwards = np.zeros(len(grid))
    for row in table:
        backwards = np.maximum.accumulate((row + backwards)[::-1])[::-1]
    assert backwards[0] > 2 * table.sum(axis=0).max()


# -- correctness ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arms", "horizon", "gap"), [(2, 1000, 0.0), (2, 1000, 0.02), (3, 2000, 0.0)])
def test_the_best_arm_is_lost_at_most_once_in_t_executions(arms: int, horizon: int, gap: float) -> None:
    """By a test, not by the final choice. Level 1e-9; the bound is 1/T, and with ties it has little slack to hide."""
    policy = bd.CertifiedElimination(arms=arms, horizon=horizon, rho=0.5)
    assert policy.schedule.batches
    world = bd.Bernoulli([0.5] * (arms - 1) + [0.5 + gap])
    lost = total = 0
    for seed in range(20):
        run = run_of(policy, world, seed=seed, noise_seed=None, horizon=None)
        for execution in BatchedPlayer(run, policy).executions(0):
            tested = execution.state.testing[:, 0].copy()
            while execution.advance() is not None:
                gone = tested & ~execution.state.active[:, arms - 1]
                lost += int(np.count_nonzero(gone))
                tested = execution.state.testing[:, 0] & ~gone
            total += execution.state.active.shape[0]
    assert total == 20 * 2 * 2048
    assert_rate_at_most(lost, total, 1 / horizon, 1e-9)
