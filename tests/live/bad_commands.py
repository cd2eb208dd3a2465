"""Commands about live experiments that must be refused: words after the verb, which argument is named, what was given.

STORE is a store that has the running experiment `cta` with the tickets 1-1 (told 1) and 1-2 (open).
"""

from __future__ import annotations

_S = ["--store", "STORE"]

BAD: dict[str, list[tuple[list[str], str, str]]] = {
    "init": [
        (["nowhere.toml", *_S, "--name", "x"], "PROTOCOL", "nowhere.toml"),
        (["plan.toml", "--name", "x"], "--store", "nothing"),
        (["plan.toml", "--store", "mysql://here/x", "--name", "x"], "--store", "mysql://here/x"),
        (["plan.toml", "--store", "sqlite:///nowhere/x.db", "--name", "x"], "--store", "sqlite:///nowhere/x.db"),
        (["plan.toml", "--store", "sqlite://", "--name", "x"], "--store", "sqlite://"),
        (["plan.toml", *_S], "--name", "nothing"),
        (["plan.toml", *_S, "--name", "a b"], "--name", "a b"),
        (["plan.toml", *_S, "--name", "x", "--arm-names", "A"], "--arm-names", "1 names"),
        (["plan.toml", *_S, "--name", "x", "--arm-names", "A,A"], "--arm-names", "A more than once"),
        (["plan.toml", *_S, "--name", "x", "--rewards", "1"], "--rewards", "1"),
        (["plan.toml", *_S, "--name", "x", "--rewards", "1,0"], "--rewards", "1 to 0"),
        (["plan.toml", *_S, "--name", "x", "--rewards", "low,high"], "--rewards", "low"),
        (["short.toml", *_S, "--name", "x"], "pulls", "196"),
        (["plan.toml", *_S, "--name", "x", "--rewards", "any"], "--rewards", "no range"),
    ],
    "ask": [
        (["nobody", *_S], "NAME", "nobody"),
        (["cta"], "--store", "nothing"),
        (["cta", *_S, "-n", "0"], "-n", "0"),
        (["cta", *_S, "-n", "many"], "-n", "many"),
        (["cta", *_S, "--request-id", ""], "--request-id", "''"),
    ],
    "tell": [
        (["nobody", "1-1", "1", *_S], "NAME", "nobody"),
        (["cta", "1-1", "1"], "--store", "nothing"),
        (["cta", *_S], "TICKET", "nothing"),
        (["cta", "1-1", *_S], "REWARD", "nothing"),
        (["cta", "1-1", "much", *_S], "REWARD", "much"),
        (["cta", "1-2", "-0.5", *_S], "REWARD", "-0.5"),
        (["cta", "1-2", "nan", *_S], "REWARD", "nan"),
        (["cta", "7-1", "1", *_S], "TICKET", "7-1"),
        (["cta", "one", "1", *_S], "TICKET", "one"),
        (["cta", "--from", "nowhere.csv", *_S], "--from", "nowhere.csv"),
        (["cta", "--from", "columns.csv", *_S], "--from", "line 1 of columns.csv"),
        (["cta", "--from", "empty.csv", *_S], "--from", "line 1 of empty.csv"),
        (["cta", "--from", "header.csv", *_S], "--from", "line 1 of header.csv"),
        (["cta", "--from", "columns2.csv", *_S], "--from", "line 1 of columns2.csv"),
        (["cta", "--from", "commas.csv", *_S], "--from", "3 cells in line 3 of commas.csv"),
        (["cta", "--from", "short.csv", *_S], "--from", "line 2 of short.csv"),
        (["cta", "--from", "high.csv", *_S], "reward of 1-2", "7.0"),
        (["cta", "--from", "blank.csv", *_S], "reward in line 4 of blank.csv", "much"),
        (["cta", "1-2", "--from", "rewards.csv", *_S], "--from", "rewards.csv"),
        (["cta", "--totals", "nowhere.csv", *_S], "--totals", "nowhere.csv"),
        (["cta", "--totals", "rewards.csv", *_S], "--totals", "line 1 of rewards.csv"),
        (["cta", "--totals", "twice.csv", *_S], "--totals", "arm A again in line 3 of twice.csv"),
        (["cta", "--totals", "batches.csv", *_S], "--totals", "2 batches in batches.csv"),
        (["cta", "--totals", "counts.csv", *_S], "count in line 3 of counts.csv", "few"),
        (["cta", "--totals", "arms.csv", *_S], "arm", "0"),
        (["cta", "--totals", "totals.csv", "--from", "rewards.csv", *_S], "--totals", "totals.csv"),
    ],
    "missing": [
        (["nobody", "1-2", "--reason", "lost", *_S], "NAME", "nobody"),
        (["cta", "7-1", "--reason", "lost", *_S], "TICKET", "7-1"),
        (["cta", "1-2", *_S], "--reason", "nothing"),
        (["cta", "1-2", "--reason", "lost"], "--store", "nothing"),
    ],
    "correct": [
        (["nobody", "1-1", "0", "--reason", "typo", *_S], "NAME", "nobody"),
        (["cta", "7-1", "0", "--reason", "typo", *_S], "TICKET", "7-1"),
        (["cta", "1-1", "2", "--reason", "typo", *_S], "REWARD", "2.0"),
        (["cta", "1-1", "0", "--reason", "", *_S], "--reason", "''"),
        (["cta", "1-1", "0", "--reason", "typo"], "--store", "nothing"),
    ],
    "status": [(["nobody", *_S], "NAME", "nobody"), (["cta"], "--store", "nothing")],
    "pending": [
        (["nobody", *_S], "NAME", "nobody"),
        (["cta", "--older-than", "long", *_S], "--older-than", "long"),
        (["cta"], "--store", "nothing"),
    ],
    "stop": [
        (["nobody", "--reason", "done", *_S], "NAME", "nobody"),
        (["cta", *_S], "--reason", "nothing"),
        (["cta", "--reason", "done"], "--store", "nothing"),
    ],
    "verify": [
        (["nobody", *_S], "NAME", "nobody"),
        (["cta"], "--store", "nothing"),
        (["cta", "--expect", "head", *_S], "--expect", "head"),
    ],
    "replicate": [
        (["cta", "STORE#cta"], "RUN", "cta"),
        (["STORE#nobody", "STORE#cta"], "RUN", "nobody"),
        (["STORE#", "STORE#cta"], "RUN", "''"),
        (["STORE#cta", "sqlite:///nowhere.db#cta"], "RUN", "sqlite:///nowhere.db"),
    ],
    "export": [
        (["nobody", "--out", "x.csv", *_S], "NAME", "nobody"),
        (["cta"], "--store", "nothing"),
        (["cta", "--format", "xls", *_S], "--format", "xls"),
        (["cta", "--format", "parquet", *_S], "--out", "nothing"),
        (["cta", "--out", "nowhere/x.csv", *_S], "--out", "nowhere/x.csv"),
        (["cta", "--out", "trial.db", *_S], "--out", "trial.db"),
        (["cta", "--out", "pipe.html", *_S], "--out", "pipe.html"),
    ],
    "doctor": [
        (["--store", "mysql://here/x"], "--store", "mysql://here/x"),
        (["--store", "sqlite:///nowhere.db"], "--store", "sqlite:///nowhere.db"),
        (["--out", "doctor.pdf"], "--out", "doctor.pdf"),
        (["--out", "pipe.html"], "--out", "pipe.html"),
    ],
}
