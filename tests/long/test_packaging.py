"""The wheel in an empty environment, and the oldest libraries that pyproject.toml allows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent.parent
PROBLEM = ["--means", "0.9,0.8,0.7", "--horizon", "1e8", "--rho", "0.1", "--pairs", "500", "--seed", "11"]
CERTIFY = ["certify", "random-threshold", *PROBLEM, "--json"]


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


def environment(path: Path) -> Path:
    run(sys.executable, "-m", "venv", path, cwd=ROOT)
    return path / "bin"


def use_everything(binaries: Path, elsewhere: Path) -> None:
    """Verbs, a baseline (compiled code), a figure; outside the repository, so that only what is installed counts."""
    assert run(binaries / "banditto", "--version", cwd=elsewhere).startswith("banditto ")
    printed = json.loads(run(binaries / "banditto", *CERTIFY, cwd=elsewhere))
    assert printed["verdict"] == "PASS"
    design = json.loads(
        run(binaries / "banditto", "design", "--action-set", "box", "--dimension", "3", "--json", cwd=elsewhere)
    )
    assert design["target_met"]
    baseline = ["certify", "ucb1", "--means", "0.9,0.8", "--horizon", "1e3", "--rho", "0.1", "--pairs", "40", "--json"]
    assert json.loads(run(binaries / "banditto", *baseline, cwd=elsewhere))["verdict"] == "FAIL"
    code = (
        "from importlib.resources import files; import banditto as bd; from pathlib import Path;"
        "from banditto.report.ribbons import save_ribbons;"
        "assert (files('banditto') / 'schemas' / 'certificate.json').is_file();"
        "assert (files('banditto') / 'py.typed').is_file();"
        "v = bd.watch_pair(bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1), bd.Bernoulli([0.2, 0.7]));"
        "save_ribbons(Path('x.png'), [('x', v)], [0.2, 0.7])"
    )
    run(binaries / "python", "-c", code, cwd=elsewhere)
    assert (elsewhere / "x.png").stat().st_size > 5000


def test_the_wheel_in_an_empty_environment(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("banditto-*.whl")
    binaries = environment(tmp_path / "venv")
    run(binaries / "pip", "install", "--quiet", wheel, cwd=tmp_path)
    use_everything(binaries, tmp_path)


def test_the_oldest_allowed_libraries_decide_alike(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = [re.sub(r">=", "==", requirement) for requirement in project["dependencies"]]
    assert "numpy==2.1" in oldest
    binaries = environment(tmp_path / "venv")
    run(binaries / "pip", "install", "--quiet", *oldest, ROOT, cwd=tmp_path)
    golden = json.loads((ROOT / "src" / "banditto" / "measure" / "golden.json").read_text())
    assert json.loads(run(binaries / "python", "-W", "ignore", "-m", "banditto.measure.golden", cwd=tmp_path)) == golden
    designs = json.loads((ROOT / "tests" / "geometry" / "golden_designs.json").read_text())
    assert (
        json.loads(
            run(binaries / "python", "-W", "ignore", ROOT / "tests" / "geometry" / "design_digests.py", cwd=tmp_path)
        )
        == designs
    )
    versions = run(binaries / "python", "-c", "import numpy; print(numpy.__version__)", cwd=tmp_path)
    assert versions.startswith("2.1.")
    use_everything(binaries, tmp_path)
