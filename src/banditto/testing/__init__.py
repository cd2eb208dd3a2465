"""Contract suites and calibrated statistical assertions, for our tests and for authors of new policies.

@pytest.mark.parametrize("check", POLICY_CHECKS)
def test_contract(check):
    check(MyPolicy(arms=3, horizon=10**6, rho=0.2))
"""

from banditto.testing.action_contract import ACTION_SET_CHECKS
from banditto.testing.environment_contract import ENVIRONMENT_CHECKS
from banditto.testing.policy_contract import BATCHED_CHECKS, POLICY_CHECKS
from banditto.testing.statistics import assert_rate_at_most, assert_same_mean, detectable_rate

__all__ = [
    "ACTION_SET_CHECKS",
    "BATCHED_CHECKS",
    "ENVIRONMENT_CHECKS",
    "POLICY_CHECKS",
    "assert_rate_at_most",
    "assert_same_mean",
    "detectable_rate",
]
