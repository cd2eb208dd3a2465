"""What replicability buys, in under a minute: four policies, one table, one picture.

Run by `make demo`. The argument is the folder to write to.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import banditto as bd
from banditto.engine.watching import PairView
from banditto.report.ribbons import save_ribbons

MEANS = (0.5, 0.9, 0.8, 0.3)
RHO = 0.1
SEED = 7
LONG, SHORT = 10**8, 10**6


def bar(bars: Progress, name: str, pairs: int) -> Callable[[int, int], None]:
    task = bars.add_task(name, total=pairs)
    return lambda done, total: bars.update(task, completed=done, total=total)


def views() -> list[tuple[str, PairView]]:
    """One pair of each kind, the same as in the table."""
    world = bd.Bernoulli(MEANS)
    policy = bd.RandomThreshold(arms=4, horizon=LONG, rho=RHO)
    return [
        ("RandomThreshold", bd.watch_pair(policy, world, seed=SEED)),
        ("UCB1", bd.watch_pair(bd.UCB1(), world, seed=SEED, horizon=SHORT)),
    ]


def main(folder: Path) -> None:
    began = time.perf_counter()
    world = bd.Bernoulli(MEANS)
    certified = bd.RandomThreshold(arms=4, horizon=LONG, rho=RHO)
    paper = bd.RandomThreshold(arms=4, horizon=LONG, rho=RHO, constants="paper")
    studies: list[tuple[bd.RandomThreshold | bd.UCB1 | bd.Thompson, int, int]] = [
        (certified, LONG, 2000),
        (paper, LONG, 2000),
        (bd.UCB1(), SHORT, 100),
        (bd.Thompson(), SHORT, 20),
    ]
    errors = Console(stderr=True, soft_wrap=True)
    errors.print(f"Four policies, arms with means {MEANS}: pairs of runs share their coins and see fresh rewards.")
    title = f"Same seed, fresh rewards: the same arms? (rho = {RHO})\n"
    table = Table(title=title, box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for heading in ("policy", "pulls", "pairs", "agree", "interval", "proved", "regret", "verdict"):
        table.add_column(heading, justify="left" if heading in ("policy", "verdict") else "right", no_wrap=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, disable=not sys.stderr.isatty()) as bars:
        for policy, horizon, pairs in studies:
            certificate = bd.certify(
                policy,
                world,
                horizon=horizon,
                rho=RHO,
                pairs=pairs,
                seed=SEED,
                jobs=1 if horizon == LONG else 2,
                progress=bar(bars, policy.name, pairs),
            )
            low, high = certificate.interval
            table.add_row(
                certificate.policy + (":paper" if certificate.constants == "paper" else ""),
                f"{horizon:.0e}".replace("e+0", "e"),
                f"{pairs}",
                f"{certificate.agreement:.1%}",
                f"{100 * low:.1f}-{high:.1%}",
                "none" if certificate.bound is None else f"{certificate.bound:.3f}",
                f"{certificate.regret.mean:,.0f}",
                f"[{'green' if certificate.verdict == 'PASS' else 'red'}]{certificate.verdict}[/]",
            )
    Console().print(table)
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "ribbons.png"
    save_ribbons(picture, views(), MEANS)
    errors.print(f"Picture: {picture}   ({time.perf_counter() - began:.0f} s)")
    errors.print("Next, try your own arms:")
    errors.print("  .venv/bin/banditto certify random-threshold --means 0.62,0.6,0.5 --horizon 1e9 --rho 0.2")
    errors.print("  .venv/bin/banditto policies")
    errors.print("and read docs/random-threshold.md for the proof behind the bound.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-out"))
