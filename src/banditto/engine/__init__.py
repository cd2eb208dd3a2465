"""Runs: one player for each kind of policy plays blocks of pairs, here, in a pool, on a cluster or on a GPU."""
