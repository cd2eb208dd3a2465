"""Plan a trial before it begins: how long must it run, what does it cost, and what would a smaller rho cost?

Four treatments, of which the best one is hoped to lead by 0.1. Regret is counted in successes that were missed.
"""

import banditto as bd


def main() -> None:
    print("  rho    patients    regret  proved bound  protocol")
    plans = [bd.plan(arms=4, gap=0.1, rho=rho) for rho in (0.3, 0.1, 0.03)]
    for plan in plans:
        numbers = f"{plan.rho:5g} {plan.horizon:11,} {plan.regret.mean:9,.0f} {plan.bound:13.4f}"
        print(f"{numbers}  {plan.protocol.digest[:12]}")

    print(f"\nWith rho = {plans[1].rho}, as long as several treatments are left:")
    for batch in plans[1].to_dict()["batches"]:
        print(f"  batch {batch['batch']}: {batch['pulls per arm']:,} patients for each of them")


if __name__ == "__main__":
    main()
