"""Doctors' visits in the RAND Health Insurance Experiment as a log of rewards; docs/real-data.md says what it shows.

`python examples/real_data.py plans.csv` writes the log for `banditto compare --log`. It needs statsmodels for the data.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
from statsmodels.datasets import randhie

import banditto as bd


def plans() -> pd.DataFrame:
    """A row for each person and year: the share of each bill that they paid, and their visits to a doctor."""
    data: pd.DataFrame = randhie.load_pandas().data
    data = data[data["idp"] == 0]  # without the plans that also had a deductible for each person
    share = np.rint(np.exp(data["lncoins"]) - 1.0).astype(int)  # the file has log(1 + per cent)
    plan = [f"{paid}%" if paid else "free" for paid in share]
    visits = data["mdvis"].astype(int)
    return pd.DataFrame({"plan": plan, "visited": (visits > 0).astype(int), "visits": visits})


def main() -> None:
    frame = plans()
    if len(sys.argv) > 1:
        frame.to_csv(sys.argv[1], index=False)
    log = bd.RewardLog.of(zip(frame["plan"], frame["visited"], strict=True))
    policy = bd.ExploreThenCommit(arms=len(log.arms), horizon=100_000, rho=0.1, gap=0.08)
    print(bd.replay(policy, log).table())  # the rows as they are, each once
    print(bd.certify(policy, bd.Resampled(log), pairs=1000).table())  # as many as are asked for, with replacement


if __name__ == "__main__":
    main()
