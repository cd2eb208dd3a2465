"""What `deploy` has: files that their own programs find right, and that fit the service and its page."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import uuid
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pytest

import banditto as bd
from banditto.live.roles import roles_script
from banditto.service import serving
from tests.commands import banditto
from tests.live.servers import PostgresServer
from tests.live.worlds import small
from tests.service.programs import program
from tests.service.services import ROOT, new_token, service_process

pytestmark = pytest.mark.slow

DEPLOY = ROOT / "deploy"
UNIT = (DEPLOY / "banditto.service").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")


def compose() -> Any:
    yaml: Any = import_module("yaml")
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def check(*command: str) -> str:
    """What a program prints that must find nothing wrong."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def understood(words: list[str], tmp_path: Path) -> None:
    """Check that `serve` knows the options; a port that is not allowed ends it once it has read the others."""
    assert words[0] == "serve"
    done = banditto(*words, "--port", "99999", cwd=tmp_path, env={"BANDITTO_STORE": f"sqlite:///{tmp_path}/t.db"})
    assert (done.returncode, done.stderr) == (2, "banditto: error: --port: got 99999, allowed: from 0 to 65535\n")


def test_the_compose_file_fits_its_schema() -> None:
    tool = program("check-jsonschema", "pip install check-jsonschema")
    check(tool, "--builtin-schema", "vendor.compose-spec", str(DEPLOY / "compose.yaml"))


def test_the_compose_file_is_one_that_the_service_and_the_page_know(tmp_path: Path) -> None:
    content = compose()
    services = content["services"]
    understood(services["service"]["command"], tmp_path)
    assert services["service"]["build"] == {"context": "..", "dockerfile": "deploy/Dockerfile"}
    files = {secret["file"] for secret in content["secrets"].values()}
    files |= {services[name]["env_file"] for name in ("service", "owner")}
    for name in files:
        assert f"`{name}`" in PAGE, name
        ignored = subprocess.run(["git", "check-ignore", "-q", f"deploy/{name}"], cwd=ROOT, check=False)
        assert ignored.returncode in (0, 128), name  # 128: this is no repository but what was packed from one
    for one in services.values():
        assert "/" not in one["image"]
        assert "environment" not in one or not re.search(r"PASSWORD:|BANDITTO_STORE", str(one["environment"]))
    seconds = int(services["service"]["stop_grace_period"].removesuffix("s"))
    assert seconds > serving._GRACE


def test_the_image_gets_all_that_the_package_is_made_of() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    copied = {name for line in re.findall(r"^COPY (.*) \S+$", text, flags=re.MULTILINE) for name in line.split()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    wanted |= {path.split("/")[0] for path in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}
    assert copied == wanted
    assert "deploy" in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    tool = program("systemd-analyze", "apt-get install systemd")
    command = re.findall(r"^ExecStart=(\S+) ", UNIT, flags=re.MULTILINE)
    assert command == ["/opt/banditto/bin/banditto"]
    copy = tmp_path / "banditto.service"
    copy.write_text(UNIT.replace(command[0], sys.executable))  # systemd asks whether it is there
    assert check(tool, "verify", str(copy)) == ""
    copy.write_text(UNIT.replace(command[0], "/nowhere/banditto"))
    assert subprocess.run([tool, "verify", str(copy)], capture_output=True, check=False).returncode != 0


def test_the_unit_lets_the_service_do_little(tmp_path: Path) -> None:
    """From 0, nothing at all, to 100; a unit that says nothing about it has 96."""
    tool = program("systemd-analyze", "apt-get install systemd")
    copy = tmp_path / "banditto.service"
    copy.write_text(UNIT)
    check(tool, "security", "--offline=yes", "--no-pager", "--threshold=20", str(copy))


def test_the_unit_is_one_that_the_service_knows(tmp_path: Path) -> None:
    (words,) = re.findall(r"^ExecStart=\S+ (.*)$", UNIT, flags=re.MULTILINE)
    understood(words.split(), tmp_path)
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT, flags=re.MULTILINE))
    assert int(settings["TimeoutStopSec"]) > serving._GRACE
    assert settings["EnvironmentFile"] in PAGE
    assert "NUMBA_CACHE_DIR=/var/cache/banditto" in settings["Environment"]  # else nothing compiled can be kept
    assert "BANDITTO_STORE" not in settings["Environment"]


def test_the_service_runs_as_the_role_of_trials_and_the_owner_makes_tokens(server: PostgresServer) -> None:
    url, tag = server.new_schema(), uuid.uuid4().hex[:8]
    token = new_token(url)
    with psycopg.connect(server.url, autocommit=True) as connection:
        script = roles_script(url.rpartition("%3D")[2], f"trial_{tag}", f"auditor_{tag}")
        connection.execute(script.encode())
        connection.execute(f"CREATE ROLE worker_{tag} LOGIN IN ROLE trial_{tag}".encode())
    worker = url.replace("postgres:@", f"worker_{tag}@")
    with service_process(worker) as service, bd.Client(service.address, token) as client:
        trial = client.open("cta", small(arm_names=["A", "B"]))
        assert trial.tell(trial.ask()[0].id, 1.0) == "recorded"
        assert trial.verify()["verified"]
    with pytest.raises(bd.StoreError, match="permission denied for table banditto_token"):
        new_token(worker)
