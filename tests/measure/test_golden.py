"""Golden digests: coins, plans and decisions from recorded totals, the same on every machine and in every process.

They never cover NumPy's samplers. `python -m banditto.measure.golden` prints them, in tests/long under another
NumPy too. If one of these changes, decisions have changed: raise `decision_version`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numpy import show_config

from banditto.measure.golden import digests, expected

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
# all that NumPy dispatches on this machine beyond its baseline: no AVX, no fused multiply-add
SIMD = " ".join(show_config("dicts")["SIMD Extensions"].get("found", []))
GOLDEN = expected()
ONE_THREAD = {"PYTHONHASHSEED": "4711", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
OLD_PROCESSOR = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": SIMD}


def test_in_this_process() -> None:
    assert digests() == GOLDEN


@pytest.mark.parametrize(
    "variables",
    [
        # all at once in `make test`, one after the other in `make check-long`
        {**ONE_THREAD, **OLD_PROCESSOR, "LC_ALL": "C", "TZ": "Asia/Tokyo"},
        *(
            pytest.param(alone, marks=pytest.mark.long)
            for alone in (
                {"PYTHONHASHSEED": "0"},
                ONE_THREAD,
                OLD_PROCESSOR,
                {"OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "2"},
                {"LC_ALL": "C", "TZ": "Asia/Tokyo"},
            )
        ),
    ],
    ids=lambda variables: "-".join(variables),
)
def test_in_other_processes(variables: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "banditto.measure.golden"],
        capture_output=True,
        text=True,
        env=os.environ | variables,
        timeout=600,
        check=True,
    )
    assert json.loads(done.stdout) == GOLDEN
