"""(n) Pulls per second against pymab, which the first run installs into an environment of its own. Two minutes.

The same policies (UCB1 with sqrt(2 log t / n), Thompson with a uniform prior) on the same ten Bernoulli arms, four
executions of 10^4 rounds in one thread; each library records them in its own way. pymab runs its compiled code, as it
does by default; its import and its process's start are not counted, nor is Numba's compilation.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import banditto as bd
from banditto.engine import rounds
from banditto.engine.player import run_of
from banditto.policies.policy import RoundPolicy
from benchmarks.measure import alternating, line, quick_asked
from benchmarks.round_policies import MEANS, WORLD

PEER = "pymab==2.0.1"
FOLDER = Path(__file__).parent / ".peers" / PEER
PAIRS, HORIZON = 2, 10**4
WANTED = 50

CHILD = f"""
import sys
import numpy as np
from pymab import BanditEnvironment, BernoulliReward, Experiment, ExperimentConfig
from pymab.policies import BernoulliThompsonSamplingPolicy, UCBPolicy

policies = {{"ucb1": UCBPolicy(n_arms=10, c=2.0), "thompson": BernoulliThompsonSamplingPolicy(n_arms=10)}}
world = BanditEnvironment(means=np.array({MEANS.tolist()}), reward_model=BernoulliReward())
for number, name in enumerate(sys.stdin):
    config = ExperimentConfig(horizon={HORIZON}, n_replicates={2 * PAIRS}, seed=number)
    result = Experiment(environment=world, policies={{"one": policies[name.strip()]}}, config=config).run()
    assert result.actions.size == {2 * PAIRS * HORIZON}
    print(result.provenance.backend, flush=True)
"""


def interpreter() -> Path:
    return FOLDER / ("Scripts" if os.name == "nt" else "bin") / "python"


def installed() -> Path:
    """The interpreter of the peer's environment, which is made if there is none."""
    python = interpreter()
    done = FOLDER / ".installed"
    if not done.exists():
        venv.create(FOLDER, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PEER]
        subprocess.run(pip, check=True, capture_output=True, text=True, timeout=300)
        done.touch()
    return python


def compare(policy: RoundPolicy, child: subprocess.Popen[str], rounds_each: int) -> None:
    run = run_of(policy, WORLD, seed=1, noise_seed=None, horizon=HORIZON)
    answers: set[str] = set()

    def own() -> None:
        rounds.RoundPlayer(run, policy).play_block(0, PAIRS)

    def peer() -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(policy.name + "\n")
        child.stdin.flush()
        answers.add(child.stdout.readline().strip())

    ours, theirs = alternating(own, peer, rounds_each)
    (backend,) = answers
    assert backend, "the peer failed"
    figure = f"{theirs / ours:.0f} ({2e-6 * PAIRS * HORIZON / ours:.1f} million pulls/s)"
    line(
        f"(n) {policy.name}: runner's pulls/s over {PEER} ({backend})", figure, f">= {WANTED}", theirs / ours >= WANTED
    )


def main(quick: bool = False) -> None:
    if quick and not (FOLDER / ".installed").exists():
        print(f"        (n) pulls/s over {PEER}: not measured, only a full run installs it")
        return
    try:
        python = installed()
    except (OSError, subprocess.SubprocessError) as error:
        line(f"(n) pulls/s over {PEER}", f"not installed: {type(error).__name__}", f">= {WANTED}", False)
        return
    one_thread = os.environ | {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    with subprocess.Popen(
        [str(python), "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=one_thread
    ) as child:
        for policy in (bd.UCB1(), bd.Thompson()):
            compare(policy, child, 1 if quick else 7)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
