"""A first comparison: two replicable policies and two ordinary ones on the same three arms.

Two labs share a seed and see fresh rewards. `agree` is how often they pulled the same arm in every single round.
"""

import banditto as bd


def main() -> None:
    arms = bd.Bernoulli([0.9, 0.8, 0.6])
    comparison = bd.compare(
        [
            bd.CertifiedElimination(arms=3, horizon=10**8, rho=0.1),
            bd.RandomThreshold(arms=3, horizon=10**8, rho=0.1),
            bd.UCB1(),
            bd.Thompson(),
        ],
        arms,
        pairs=500,
        rounds=10**6,  # ordinary policies take time for every round: they get fewer and shorter runs
        seed=1,
    )
    print(comparison.table())
    ours, *_, thompson = (row.certificate for row in comparison.entrants)
    print()
    for found in (ours, thompson):
        print(f"{found.policy}: {found.agreement:.0%} of pairs agree to the last of {found.horizon:,} pulls.")


if __name__ == "__main__":
    main()
