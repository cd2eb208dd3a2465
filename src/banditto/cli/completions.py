"""What a shell completes: names of policies, claims, formats and kinds. Nothing here loads a numerical library."""

from __future__ import annotations

from collections.abc import Callable

from banditto.problems.environments import REGISTRY as ENVIRONMENTS
from banditto.problems.policy_names import policy_names

FORMATS = ("csv", "parquet", "json", "html")
SCOPES = ("read", "ask", "tell", "admin")
ACTIONS = ("create", "list", "revoke")
LEVELS = ("sequence", "winner")
ACTION_SETS = ("ball", "box", "simplex")
# the claims of the paper; a test compares these with the claims themselves, which take a second to load
_CLAIM_NAMES = """
definition-1-certified-elimination definition-1-random-threshold definition-1-mean-rounding
definition-1-explore-then-commit definition-1-one-cut definition-1-certified-linear
definition-1-linear-threshold definition-1-least-squares-rounding definition-1-net-threshold definition-1-ucb1
definition-1-kl-ucb definition-1-moss definition-1-thompson definition-1-gaussian-thompson
definition-1-successive-elimination definition-1-batched-elimination definition-1-lin-ucb
definition-1-lin-thompson definition-1-phased-elimination warm-up-two-arms warm-up-fifty-arms
warm-up-thousand-arms warm-up-thousand-arms-certified warm-up-wrong-gap warm-up-exploration warm-up-regret
proposition-2-radius proposition-2-rho proposition-2-confidence proposition-2-confidence-certified
proposition-2-accuracy proposition-2-replicable proposition-2-replicable-certified theorem-3-replicable
theorem-3-gap theorem-3-rho theorem-3-arms theorem-3-horizon theorem-4-replicable theorem-4-gap theorem-4-rho
theorem-4-arms theorem-4-horizon theorem-4-saving theorem-4-undecided theorem-4-undecided-played
lemma-5-accuracy lemma-5-dimension lemma-5-pulls theorem-6-horizon theorem-6-dimension theorem-6-arms
theorem-6-rho theorem-6-arms-fixed-gap theorem-6-rho-fixed-gap lemma-7-design lemma-7-core-set
lemma-7-core-set-oracle lemma-8-design lemma-8-mass lemma-9-replicable lemma-9-accuracy lemma-9-dimension
lemma-9-dimension-proof lemma-9-epsilon lemma-9-rho theorem-10-horizon theorem-10-dimension theorem-10-rho
corollary-12-regret-1 corollary-12-regret-2 corollary-12-against-theorem-10 corollary-12-learning-2
corollary-12-net-2 corollary-12-size-1 corollary-12-size-2 appendix-f-oracle appendix-f-elimination
appendix-f-design printed-algorithm-1 printed-algorithm-1-ten-arms printed-algorithm-1-repaired
printed-union-bound printed-union-bound-repaired printed-algorithm-3-last-line
printed-algorithm-3-last-line-repaired printed-algorithm-3-pulls printed-algorithm-3-pulls-repaired
printed-algorithm-4-logarithms printed-algorithm-4-logarithms-repaired conclusion-rho beyond-price-rho
beyond-price-additive beyond-price-horizon beyond-rivals-algorithm-1 beyond-rivals-algorithm-2
beyond-rivals-known-gap beyond-lattice-replicable beyond-lattice-accuracy beyond-lattice-dimension
beyond-lattice-pulls-2 beyond-lattice-pulls-5 beyond-lattice-pulls-10 beyond-lattice-regret-3
beyond-lattice-regret-4
"""
CLAIMS = tuple(_CLAIM_NAMES.split())


def among(*words: str) -> Callable[[str], list[str]]:
    """Make the function that completes one of a few words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def complete_policy(incomplete: str) -> list[str]:
    """Complete the name of a policy."""
    return [name for name in policy_names() if name.startswith(incomplete)]


def complete_policies(incomplete: str) -> list[str]:
    """Complete the last name of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    named = before.split(",")
    return [f"{before}{comma}{name}" for name in policy_names() if name.startswith(last) and name not in named]


def complete_claim(incomplete: str) -> list[str]:
    """Complete a claim of the paper, or the beginning that several share."""
    groups = dict.fromkeys("-".join(name.split("-")[:2]) for name in CLAIMS)
    return [name for name in dict.fromkeys((*groups, *CLAIMS)) if name.startswith(incomplete)]


def complete_environment(incomplete: str) -> list[str]:
    """Complete a kind of rewards; what takes a parameter ends in a colon."""
    kinds = [
        f"{name}:" if entry.options or entry.reads_file else name
        for name, entry in ENVIRONMENTS.items()
        if not entry.reads_log and not entry.linear
    ]
    return [kind for kind in kinds if kind.startswith(incomplete)]
