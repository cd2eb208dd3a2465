"""A linear bandit on a polytope: two doses, each up to 0.7, together at most 0.9; their effect is linear.

There are infinitely many actions. Two labs agree if they give the same doses, to the last bit, in every round.
"""

import banditto as bd


def main() -> None:
    doses = bd.Polytope(rows=[[1, 0], [0, 1], [-1, 0], [0, -1], [1, 1]], bounds=[0.7, 0.7, 0, 0, 0.9])
    design = bd.g_optimal_design(doses)
    print("Doses to begin with, because they tell most about all others:")
    for (one, two), weight in zip(design.actions, design.weights, strict=True):
        print(f"  {one:.1f} and {two:.1f} for {weight:.0%} of the patients")

    theta = (0.6, 0.3)
    truth = bd.LinearBernoulli(theta, doses)  # success with probability 1/2 + <theta, doses>/2
    policy = bd.CertifiedLinear(actions=doses, horizon=10**8, rho=0.1)
    found = bd.certify(policy, truth, pairs=256, seed=1)
    one, two = doses.maximise(theta)
    print(f"The best doses are {one:.1f} and {two:.1f}: {truth.best:.0%} succeed.")
    print(f"{found.agreement:.1%} of {found.pairs} pairs of labs gave the same doses to the end: {found.verdict}.")
    print(f"Learning that cost {1000 * found.regret.mean / found.horizon:.1f} successes for every 1,000 patients.")


if __name__ == "__main__":
    main()
