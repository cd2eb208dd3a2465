"""Commands of every verb, in one story, and what they print with all that depends on machine and time taken out.

`python -m tests.recorded.commands` plays them and writes outputs.json anew: only on purpose, when what a verb prints is
meant to change.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from banditto.cli import main

OUTPUTS = Path(__file__).parent / "outputs.json"
FILES = {
    "actions.csv": "1,0\n0.6,0.6\n0,1\n",
    "log.csv": "arm,reward\n" + "".join(f"{'ABC'[i % 3]},{int(i * 7 % 10 < 6 - i % 3)}\n" for i in range(600)),
    "study.toml": "means = [0.8, 0.4]\nhorizon = 100000\nrho = 0.3\npairs = 50\n"
    'policies = ["random-threshold", "ucb1"]\n',
    "told_arms.py": "def worse(rng): return rng.random() < 0.4\ndef better(rng): return rng.random() < 0.7\n",
    "rewards.csv": "ticket,reward\ncta.1-1,1\ncta.1-2,0\n",
    "totals.csv": "batch,arm,count,total\n1,A,34,8\n1,B,34,27\n",
    "first.csv": "batch,arm,count,total\n1,A,18,15\n1,B,18,6\n",
}
ARMS = "--means 0.8,0.4 --horizon 1e5 --rho 0.3 --pairs 200 --json"
LINEAR = "--theta 0.6,-0.3 --actions actions.csv --horizon 1e6 --rho 0.3 --pairs 60 --json"
RATED = "--horizon 1e5 --rho 0.3 --gap 0.04 --rate-at-most 0.1"
STORE = "--store sqlite:///trial.db"
# one line a command; they share a folder and are played in this order
STORY = f"""
policies --json
certify random-threshold {ARMS}
certify random-threshold:paper --means 0.8,0.4 --horizon 1e9 --rho 0.3 --pairs 50 --json
certify mean-rounding --means 0.8,0.4 --horizon 1e7 --rho 0.3 --pairs 200 --json
certify certified-elimination --means 0.8,0.4,0.3 --horizon 1e5 --rho 0.3 --pairs 200 --gap 0.4 --json
certify explore-then-commit --means 0.8,0.4 --horizon 1e5 --rho 0.3 --pairs 200 --gap 0.4 --json
certify one-cut --means 0.08,0.04,0.05 {RATED} --power 0.9 --control 1 --pairs 200 --json
certify one-cut --means 0.2,0.04 {RATED} --json
certify one-cut --means 0.5,0.5 --gap 0.2 --horizon 1e4 --rho 0.3 --pairs 200
certify one-cut --means 0.5,0.5 --gap 0.2 --horizon 1e4 --rho 0.3 --pairs 200 --json
certify linear-threshold {LINEAR}
certify certified-linear {LINEAR}
certify least-squares-rounding {LINEAR}
certify ucb1 --means 0.8,0.4 --horizon 1e3 --rho 0.3 --pairs 50 --json
certify batched-elimination {ARMS}
certify lin-ucb --theta 0.6,-0.3 --actions actions.csv --horizon 1e3 --rho 0.3 --pairs 10 --json
certify certified-elimination --means 0.8,0.4 --environment gaussian:0.5 --horizon 1e5 --rho 0.3 --pairs 50 --json
certify random-threshold {ARMS} --out kept
certify kept/protocol.toml --means 0.8,0.4 --pairs 100 --json
certify random-threshold --log log.csv --reward-range 0,1 --horizon 1e5 --rho 0.3 --pairs 50 --json
certify random-threshold --horizon 1e5 --rho 0.3 --json
certify random-threshold --means 0.8,2 --horizon 1e5 --rho 0.3 --json
certify nothing --means 0.8,0.4 --horizon 1e5 --rho 0.3 --json
certify random-threshold --means 0.8,0.4 --horizon 1e5 --rho 1.3
compare study.toml --json
compare --means 0.8,0.4 --horizon 1e5 --rho 0.3 --pairs 50 --policies random-threshold,thompson --json
plan --arms 3 --gap 0.2 --rho 0.3 --json
plan --arms 2 --gap 0.1 --horizon 1e6 --json
plan --arms 2 --gap 0.3 --rho 0.3 --seed 0 --save plan.toml --json
attack random-threshold --arms 2 --horizon 1e5 --rho 0.3 --pairs-budget 20000 --json
attack one-cut --arms 3 {RATED} --pairs-budget 20000 --json
calibrate random-threshold --arms 2 --horizon 1e5 --rho 0.3 --pairs-budget 20000 --json
certify early-cut --gap 0.3 --means 0.7,0.5,0.5 --horizon 1e5 --rho 0.3 --pairs 200 --json
plan --arms 2 --gap 0.2 --rho 0.3 --same winner --json
select a=told_arms:worse b=told_arms:better --gap 0.3 --rho 0.3 --json
design actions.csv --json
design --action-set ball --dimension 3 --pulls 1000 --json
replay random-threshold --log log.csv --reward-range 0,1 --horizon 300 --rho 0.3 --json
reproduce --quick --only lemma-5 --json
init plan.toml {STORE} --name cta --arm-names A,B --json
ask cta {STORE} -n 4 --request-id r1 --json
ask cta {STORE} -n 4 --request-id r1
ask cta {STORE} -n 5 --request-id r1 --json
tell cta {STORE} --from rewards.csv --json
tell cta {STORE} cta.1-1 0 --json
correct cta {STORE} cta.1-1 0 --reason typo --json
tell cta {STORE} 1-2 0
tell cta {STORE} other.1-2 0 --json
tell cta {STORE} cta.1-2 0 --arm C
missing cta {STORE} cta.1-3 --reason lost --by ann --json
missing cta {STORE} cta.1-3 cta.1-4 --reason lost --by ann --json
missing cta {STORE} --older-than 7d --reason silence --by ann
init plan.toml {STORE} --name units --arm-names A,B --fallback B --deadline 7d --json
ask units {STORE} --unit ann
ask units {STORE} --unit ann --json
stop units {STORE} --reason enough
ask units {STORE} --unit bob
ask units {STORE} --unit bob --json
pending cta {STORE} --json
status cta {STORE} --json
analyse cta {STORE} --json
init kept/protocol.toml {STORE} --name whole --arm-names A,B --json
tell whole {STORE} --totals first.csv --json
analyse whole {STORE} --json
analyse whole {STORE} --confidence 0.8 --not-binary
analyse sqlite:///trial.db#whole --figure forest.pdf
stop cta {STORE} --reason enough --json
verify cta {STORE} --json
replicate sqlite:///trial.db#cta sqlite:///trial.db#cta --json
export cta {STORE} --format csv --save tickets.csv --json
init plan.toml {STORE} --name decided --arm-names A,B --json
tell decided {STORE} --totals totals.csv --json
status decided {STORE} --json
export decided {STORE} --save decided.csv
export decided {STORE} --save decided.csv --quiet
doctor --json
""".strip().splitlines()
# what depends on the machine, on the clock, or on both through a hash
VARYING = {
    *("versions", "platform", "command", "created", "at", "head", "hash", "previous", "time", "seconds", "software"),
    *("issued", "told", "registered", "detail", "oldest", "when", "age", "last_event", "waiting_since"),
}


def neutral(value: Any) -> Any:
    """Replace what varies by a star, at any depth."""
    if isinstance(value, dict):
        return {
            key: "*" if key in VARYING and not isinstance(item, int | dict) else neutral(item)
            for key, item in value.items()
            if key not in ("versions", "platform")
        }
    return [neutral(item) for item in value] if isinstance(value, list) else value


def spoken(command: str) -> dict[str, Any]:
    """Run one command in this process; its exit code, and what it printed to both streams, as data where it is JSON."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(command.split())
        except SystemExit as stop:
            code = stop.code or 0
    return {"exit": code, "out": _parsed(out.getvalue()), "err": _parsed(err.getvalue())}


def _parsed(text: str) -> Any:
    try:
        return neutral(json.loads(text))
    except ValueError:
        return text.splitlines()


def told() -> dict[str, Any]:
    """Play the story in a folder of its own; what each command answered."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for name, text in FILES.items():
                Path(name).write_text(text)
            return {command: spoken(command) for command in STORY}
        finally:
            os.chdir(before)


if __name__ == "__main__":
    OUTPUTS.write_text(json.dumps(told(), indent=1, sort_keys=True) + "\n")
