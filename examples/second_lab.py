"""A second lab replicates a protocol file: other patients, the same published coins, the same decisions.

The first lab writes its protocol to a file. The second one, another process, gets nothing but that file.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import banditto as bd


def digests(protocol: bd.Protocol, patients: int) -> list[str]:
    """What the lab with these patients does in forty runs: for each a digest of all pulls, in their order."""
    policy, world = bd.policy_of(protocol), bd.Bernoulli([0.63, 0.6, 0.5])
    views = [bd.watch_pair(policy, world, pair=n, seed=protocol.seed, noise_seed=patients) for n in range(40)]
    return [view.digests[0] for view in views]


def main() -> None:
    policy = bd.CertifiedElimination(arms=3, horizon=10**6, rho=0.1)
    protocol = policy.protocol(seed=11)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "protocol.toml"
        file.write_text(protocol.to_toml())
        second = subprocess.run([sys.executable, __file__, file], stdout=subprocess.PIPE, text=True, check=True)
    here, there = digests(protocol, patients=1), second.stdout.split()
    same = sum(one == other for one, other in zip(here, there, strict=True))
    print(f"First run: {here[0][:16]} here, {there[0][:16]} in the second lab.")
    print(f"{same} of 40 runs are the same in both labs, pull by pull; promised is a share of {1 - policy.rho:.0%}.")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        print("\n".join(digests(bd.Protocol.load(sys.argv[1]), patients=2)))
