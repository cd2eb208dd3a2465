"""Writes the pictures of docs/pages.md: `python -m tools.screenshots`. Needs Chromium.

Their names are those of any figure of the pages: NAME, NAME-dark, NAME-narrow, NAME-narrow-dark.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from docs.drawing import with_few_colours
from playwright.sync_api import FloatRect
from tests.service.browsers import NARROW, WIDE, Visitor, chromium
from tests.service.services import new_token, service_in_thread

import banditto as bd
from banditto.live.registration import registered

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"
SHOWN = {
    "experiment": "/experiments/checkout-button",
    "plan": "/plan",
    "compare": "/compare?first=berlin&second=lisbon",
}


def world(url: str) -> None:
    """Make an experiment that is decided, and two runs of one protocol that part."""
    rates = {"control": 0.05, "blue": 0.052, "green": 0.062, "video": 0.049}
    early = bd.EarlyCut(arms=4, horizon=500_000, rho=0.3, gap=0.01, rate_at_most=0.1)
    chance = np.random.default_rng(4)
    with bd.Experiment.create(url, "checkout-button", registered(early.protocol(seed=5), list(rates))) as trial:
        while (status := trial.status()).state == "running":
            counts = {name: (pulls, int(chance.binomial(pulls, rates[name]))) for name, pulls in status.plan.items()}
            trial.tell_totals(status.batch, counts)
    apart = bd.OneCut(arms=2, horizon=20_000, rho=0.3, gap=0.1).protocol(seed=0)  # whose first cut is between the two
    for lab, rate in (("berlin", 0.56), ("lisbon", 0.535)):
        with bd.Experiment.create(url, lab, registered(apart, ["old", "new"])) as trial:
            pulls = trial.status().plan["new"]
            trial.tell_totals(1, {"old": (pulls, round(0.5 * pulls)), "new": (pulls, round(rate * pulls))})


def main() -> None:
    """Take a picture of each page, in both themes and at both widths."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        url = f"sqlite:///{folder}/trial.db"
        world(url)
        with service_in_thread(url) as address:
            for width in (WIDE, NARROW):
                for theme in ("light", "dark"):
                    one = Visitor(browser, address, width, "dark" if theme == "dark" else "light")
                    one.sign_in(new_token(url))
                    for name, path in SHOWN.items():
                        one.open(path)
                        one.check()
                        version = ("-narrow" if width == NARROW else "") + ("-dark" if theme == "dark" else "")
                        taken = one.page.screenshot(clip=_clip(width))
                        (FIGURES / f"pages-{name}{version}.png").write_bytes(with_few_colours(taken))
                    one.close()


def _clip(width: int) -> FloatRect:
    return {"x": 0, "y": 0, "width": width, "height": 1000}


if __name__ == "__main__":
    main()
