"""The house: rooms and their names, one noun for one meaning, what may never change."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import banditto

PACKAGE = Path(banditto.__file__).parent
ROOT = Path(__file__).parents[1]
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
FROZEN = {
    "chance/coins.py": "every coin ever tossed is this function of its address",
    "chance/noise.py": "pairs that were kept on disk are counted together with new ones",
    "chance/pull_streams.py": "a selection that goes on from its store",
    "chance/round_coins.py": "certificates of policies in plain Python",
    "chance/splitmix.py": "certificates of policies that choose round by round",
    "core/digest.py": "every stored digest is taken of these bytes",
    "core/trajectory.py": "digests of sequences are published",
    "engine/block_sizes.py": "sizes of blocks are part of the noise's address",
    "geometry/actions/canonical.py": "digests of actions; actions that were rounded to these places",
    "live/event_log.py": "the heads of receipts and exports end chains of these hashes",
    "live/order.py": "two labs hand out the same arms in the same order",
    "measure/golden.py": "recorded totals, coins and protocols",
    "numbers/fixed_order.py": "the order of operations",
}


def name_of(path: Path) -> str:
    return path.parent.name if path.name == "__init__.py" else path.stem


def test_no_more_rooms_than_a_reader_can_hold() -> None:
    others = {path.name for path in PACKAGE.iterdir() if not path.name.startswith("__")} - ROOMS
    assert len(ROOMS) <= 14
    assert others == {"py.typed", "schemas", "version.py"}


def test_layers_are_few_and_name_every_room() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract for contract in contracts if contract["type"] == "layers"]
    assert layers["exhaustive"]
    assert len(layers["layers"]) <= 11
    assert {room.strip() for layer in layers["layers"] for room in layer.split("|")} == ROOMS


def test_every_room_has_its_sentence() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for room in ROOMS:
        assert re.search(rf"^\| `{room}/` \| .*\.", text, re.M), room
        tree = ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), room


def test_no_two_modules_share_a_name() -> None:
    """A verb's file in cli may have the name of what it calls, and a policy's folder that of the policy."""
    places = defaultdict(list)
    for path in MODULES:
        if PACKAGE / "cli" not in path.parents and path.parent != PACKAGE:
            places[name_of(path)].append(path.relative_to(PACKAGE))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    folders = {name for name, found in twice.items() if {path.parent for path in found} == {found[0].parent}}
    assert not {name: found for name, found in twice.items() if name not in folders}


def test_no_two_classes_share_a_name() -> None:
    places = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_what_is_frozen_is_marked_where_it_stands() -> None:
    """Whoever takes a mark away, or adds one, says so here."""
    marks = defaultdict(list)
    for path in MODULES:
        for number in re.findall(r"# FROZEN\(v(\d+)\): \w", path.read_text(encoding="utf-8")):
            marks[str(path.relative_to(PACKAGE))].append(number)
    assert set(marks) == set(FROZEN)


def test_modules_are_of_a_size_to_read() -> None:
    long = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in MODULES}
    assert not {name: lines for name, lines in long.items() if lines > 400}
