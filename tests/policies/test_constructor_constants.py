"""Constants that constructors resolve today, as digests of protocols.

Golden digests (tests/measure/test_golden.py) are of stored protocols and never change. These may: whoever improves
constants writes the new digest here, on purpose, and says so in CHANGELOG.md. Protocols that were saved before keep
theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import banditto as bd
from banditto.measure.golden import CASES, stored_protocol
from banditto.problems.catalogue import policy_of

GRID = [[x / 9, y / 9, 0.5] for x in (-5, -2, 3) for y in (-4, 1, 5)]
CORNER: dict[str, Any] = {"rows": [[1, 0], [0, 1], [-1, 0], [0, -1], [2, 1]], "bounds": [0.5, 0.625, 0.5, 0.625, 1.0]}

# made when they are needed, because searches take time
CONSTRUCTORS: dict[str, Callable[[], Any]] = {
    "2 arms": lambda: bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1),
    "5 arms, paper": lambda: bd.RandomThreshold(arms=5, horizon=10**9, rho=0.1, constants="paper"),
    "10 arms": lambda: bd.RandomThreshold(arms=10, horizon=10**12, rho=0.05),
    "3 arms, subgaussian": lambda: bd.RandomThreshold(arms=3, horizon=10**8, rho=0.2, sigma=1.5),
    "1000 arms": lambda: bd.RandomThreshold(arms=1000, horizon=10**15, rho=0.1),
    "mean rounding, 2 arms": lambda: bd.MeanRounding(arms=2, horizon=10**6, rho=0.1),
    "mean rounding, 5 arms, paper": lambda: bd.MeanRounding(arms=5, horizon=10**12, rho=0.1, constants="paper"),
    "mean rounding, 10 arms, Gaussian": lambda: bd.MeanRounding(arms=10, horizon=10**10, rho=0.1, rewards="gaussian"),
    "certified elimination, 2 arms": lambda: bd.CertifiedElimination(arms=2, horizon=10**6, rho=0.1),
    "certified elimination, 6 arms": lambda: bd.CertifiedElimination(
        arms=6, horizon=10**5, rho=0.3, rewards="gaussian"
    ),
    "linear threshold": lambda: bd.LinearThreshold(actions=GRID, horizon=10**9, rho=0.2),
    "linear threshold, paper": lambda: bd.LinearThreshold(actions=GRID, horizon=10**9, rho=0.2, constants="paper"),
    "least squares, lattice": lambda: bd.LeastSquaresRounding(actions=GRID, horizon=10**10, rho=0.2),
    "least squares, grid": lambda: bd.LeastSquaresRounding(actions=GRID, horizon=10**10, rho=0.2, rounding="grid"),
    "least squares, ball": lambda: bd.LeastSquaresRounding(actions=bd.Ball(dimension=3), horizon=10**11, rho=0.2),
    "least squares, polytope": lambda: bd.LeastSquaresRounding(actions=bd.Polytope(**CORNER), horizon=10**11, rho=0.2),
    "certified linear": lambda: bd.CertifiedLinear(actions=GRID, horizon=10**8, rho=0.2, method="thresholds"),
    "net": lambda: bd.NetThreshold(actions=bd.Box.unit(1), horizon=10**13, rho=0.2),
    "explore then commit": lambda: bd.ExploreThenCommit(arms=4, horizon=10**6, rho=0.1, gap=0.03),
    "one cut, 2 arms": lambda: bd.OneCut(arms=2, horizon=10**6, rho=0.1, gap=0.4),
    "one cut, 6 arms": lambda: bd.OneCut(arms=6, horizon=10**8, rho=0.3, gap=0.4, rewards="gaussian"),
    "one cut, control, rates": lambda: bd.OneCut(arms=4, horizon=10**6, rho=0.2, gap=0.3, control=1, rate_at_most=0.9),
    "early cut, 2 arms": lambda: bd.EarlyCut(arms=2, horizon=10**6, rho=0.1, gap=0.4),
    "early cut, 5 arms, Gaussian": lambda: bd.EarlyCut(arms=5, horizon=10**7, rho=0.2, gap=0.3, rewards="gaussian"),
    "early cut, control, rates": lambda: bd.EarlyCut(
        arms=4, horizon=10**6, rho=0.2, gap=0.15, control=1, rate_at_most=0.3
    ),
}

PINNED = {
    "2 arms": "f60bca180ba3abb521ceadb71df67b56be1d6b0f4ea5c27c6851054295b7f1ad",
    "5 arms, paper": "d6834d300ac0aa44aadc2eddfb8cfe174e15593e11015ca9cc9f7dbdae38fd99",
    "10 arms": "23e31dcb0b1a54282a1cbe94a5d68876c2a70974192f316f63f1c87bd39c96bd",
    "3 arms, subgaussian": "7bc1aba3c68ba55995c65f9330f16b1ca94b287215f8989880faff19b10d642a",
    "1000 arms": "ca5c4fa4a2e40fc4b0995ecbfffcc8e33a5d558a6ff3f21951a455f446457345",
    "mean rounding, 2 arms": "bd9e0ae93317bebe50153f2e553f791f223481ac8fb6292534eb76763f19d3d6",
    "mean rounding, 5 arms, paper": "83454d9e30b731bebef076ca53c25024e412c748fa7216bb1b3503acba67a416",
    "mean rounding, 10 arms, Gaussian": "f52804627b6af7321e1cdd5b86c979a1660481ca6ccaed634c4431903b7a576f",
    "certified elimination, 2 arms": "a0ee5e97b44b1f19e8d82f088e1026dc6b31988bdaaececde025e399f50d7467",
    "certified elimination, 6 arms": "2769a8624cd62bbd3fe726a1aabed68cbd93d74a7a16aa1b937b602f9565ff36",
    "linear threshold": "9ac0a42c7c8886795671c2396962ddeb6f27953c700d4361bdedc123b9767395",
    "linear threshold, paper": "1230bbcb79de8525e24e7ed748d171ccf90fc06848c634cfe6681eb009e89ec2",
    "least squares, lattice": "71241860a78edd1408ad961585b2c4db4b70a34fbf8eff7f03a6696c9e64a1ec",
    "least squares, grid": "d4762d4d9fe65e5be264ac3ce60f715d8ec92f912abc5b0553c570dbd35918b5",
    "least squares, ball": "a46db00e3a1d02a821586c669caeb0a3f7a0076c091985ca742d4fc60ac30eca",
    "least squares, polytope": "3c20a9c6cdd40d6a274e0d1b63081d6a40055b179ff508a08435bd13a63aa21e",
    "certified linear": "69cc24bc2f774516588ddd7d75dfc99a4dfe4ef462413b2f26aad37255eefb1c",
    "net": "772b98a38ad7d629d4202bff56c702662e02c1c3f772aa80b7fb3f7dcb37da5f",
    "explore then commit": "239751d191395ab795988f30c69719ebf91325b2a60d62384f2bf56cb50a473b",
    "one cut, 2 arms": "9b45bcaa5708dab179f35aa6ead405688a172b0de4b2012723f1855982ee617f",
    "one cut, 6 arms": "e25cf330a74e8b254d39e05b9ca78a801a67af6599b4d292da01dd181923a415",
    "one cut, control, rates": "ce11bbf36d123c0addcfe21f2ad3cff774e43b576c1758e2588749d4e3634838",
    "early cut, 2 arms": "e297485c7027932f9d74d36bcfc0fbc2fb635c63b9378006465b9cd3de51d01d",
    "early cut, 5 arms, Gaussian": "627baf321c84101566fd1b41227c976744cf9d44b3d8c51781742153fa75c47a",
    "early cut, control, rates": "323c469e9d3faf0df739125fb398fde2f34b0f273aeca8819c97ff223cc033fb",
}


@pytest.mark.parametrize("case", CONSTRUCTORS)
def test_a_constructor_resolves_these_constants(case: str) -> None:
    policy = CONSTRUCTORS[case]()
    assert policy.protocol(seed=9).digest == PINNED[case]


def test_every_golden_case_has_a_constructor() -> None:
    assert set(CONSTRUCTORS) == set(PINNED) == set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_a_stored_protocol_is_read_and_written_alike(case: str) -> None:
    stored = stored_protocol(case)
    policy: Any = policy_of(stored)
    written = policy.protocol(seed=9)
    assert written == stored
    assert written.digest == stored.digest
