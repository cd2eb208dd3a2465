"""The verbs by group: where each one lives, what it is for, and an example. Reading this loads none of them."""

from __future__ import annotations

from typing import Final, NamedTuple


class Verb(NamedTuple):
    """A verb: the module in `cli` that has a function of its name, a line for the list of verbs, and an example."""

    module: str
    summary: str
    example: str


_STORE = "--store sqlite:///trial.db"

GROUPS: Final[dict[str, dict[str, Verb]]] = {
    "Simulate": {
        "compare": Verb(
            "compare",
            "Measure several policies side by side",
            "banditto compare --means 0.6,0.5 --horizon 1e5 --rho 0.2 --policies certified-elimination,ucb1",
        ),
        "certify": Verb(
            "certify",
            "Check that one policy makes the same decisions twice",
            "banditto certify one-cut --means 0.6,0.5 --gap 0.1 --horizon 1e5 --rho 0.2",
        ),
        "attack": Verb(
            "attack",
            "Search for the arms on which a policy replicates worst",
            "banditto attack certified-elimination --arms 3 --horizon 1e6 --rho 0.2",
        ),
        "replay": Verb(
            "replay",
            "Run a policy on the rows of a log, each used once",
            "banditto replay one-cut --log rewards.csv --gap 0.2 --rho 0.3",
        ),
        "reproduce": Verb(
            "reproduce",
            "Measure the claims of the paper",
            "banditto reproduce --quick --only definition-1",
        ),
    },
    "Plan": {
        "plan": Verb(
            "plan",
            "Find the horizon, gap or rho of an experiment, and its cost",
            "banditto plan --arms 2 --gap 0.1 --rho 0.2 --save button.toml",
        ),
        "policies": Verb("policies", "List the policies and their options", "banditto policies"),
        "calibrate": Verb(
            "calibrate",
            "Shrink a policy's constants until an attack succeeds",
            "banditto calibrate random-threshold --arms 2 --horizon 1e6 --rho 0.2 --save small.toml",
        ),
        "design": Verb(
            "design",
            "Choose which arms of a linear problem to pull, and how often",
            "banditto design arms.csv --pulls 1e6",
        ),
    },
    "Live": {
        "select": Verb(
            "select",
            "Race Python callables until one wins",
            "banditto select old=prompts:old new=prompts:new --gap 0.2",
        ),
        "init": Verb("init", "Register an experiment", f"banditto init button.toml --name button {_STORE}"),
        "ask": Verb("ask_tell", "Get tickets: which arm to show next", f"banditto ask button --unit user-17 {_STORE}"),
        "tell": Verb("ask_tell", "Report rewards", f"banditto tell button button.1-1 1 {_STORE}"),
        "missing": Verb(
            "missing_correct_stop",
            "Give up rewards that will not come",
            f'banditto missing button --older-than 7d --reason "no answer in a week" {_STORE}',
        ),
        "correct": Verb(
            "missing_correct_stop",
            "Replace a wrong reward",
            f'banditto correct button button.1-1 0 --reason "clicked by mistake" {_STORE}',
        ),
        "stop": Verb(
            "missing_correct_stop",
            "End an experiment early",
            f'banditto stop button --reason "the page was redesigned" {_STORE}',
        ),
        "serve": Verb("serve", "Offer experiments over HTTP", "banditto serve --demo"),
        "token": Verb(
            "token", "Make, list and revoke tokens of the service", f"banditto token create --scope ask {_STORE}"
        ),
    },
    "Inspect": {
        "status": Verb("status_pending", "Say where an experiment stands", f"banditto status button {_STORE}"),
        "pending": Verb(
            "status_pending",
            "List tickets without a reward",
            f"banditto pending button --older-than 1d {_STORE}",
        ),
        "analyse": Verb(
            "analyse",
            "Say what an experiment taught, with intervals",
            f"banditto analyse button {_STORE}",
        ),
        "verify": Verb(
            "verify_replicate",
            "Check that a log follows from its protocol",
            f"banditto verify button {_STORE}",
        ),
        "replicate": Verb(
            "verify_replicate",
            "Compare two runs of one protocol",
            "banditto replicate sqlite:///trial.db#button second-lab.json",
        ),
        "export": Verb(
            "export",
            "Write tickets, the log or an audit report to a file",
            f"banditto export button --format html --save audit.html {_STORE}",
        ),
        "doctor": Verb("doctor", "Check this machine and a store", f"banditto doctor {_STORE}"),
    },
}
VERBS: Final = {name: verb for verbs in GROUPS.values() for name, verb in verbs.items()}
