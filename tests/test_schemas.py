"""Schemas are made from types, accept and refuse what the schemas written by hand did, and never change unnoticed."""

from __future__ import annotations

import dataclasses
import inspect
import json
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_type_hints

import jsonschema
import pytest
from tools import schemas
from typing_extensions import is_typeddict

import banditto
from banditto.cli.documents import DOCUMENTS, CertificateDocument, StoppedContent, StoppedDocument
from banditto.core.provenance import Provenance
from tests.recording import RECORDED

BY_HAND = RECORDED.parent / "schemas_v1"
KEPT = sorted(str(path.relative_to(RECORDED).with_suffix("")) for path in RECORDED.rglob("*.json"))
# the schemas written by hand are of version 1; what came after them has none
OLD = {path.stem for path in BY_HAND.glob("*.json")}
CASES = [
    case
    for case in KEPT
    if case.split("/")[0] in OLD and json.loads((RECORDED / f"{case}.json").read_text())["schema_version"] == 1
]
FORMATS = jsonschema.FormatChecker(())
Change = tuple[str, Callable[[Any], Any]]


@FORMATS.checks("date-time", raises=ValueError)
def is_a_moment(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


@cache
def validator(folder: Path, name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema, format_checker=FORMATS)


@cache
def versions(name: str) -> tuple[jsonschema.Draft202012Validator, ...]:
    """One validator for each version: the schema accepts what any of them accepts, and each ends at its first error.

    That of the whole schema collects every error of every version before it says no.
    """
    whole = validator(schemas.SCHEMAS, name).schema
    assert isinstance(whole, dict)
    if "anyOf" not in whole:
        return (validator(schemas.SCHEMAS, name),)
    around = {key: value for key, value in whole.items() if key != "anyOf"}
    assert set(around) <= {"$schema", "$defs", "title", "description"}
    assert all(set(one) == {"$ref"} for one in whole["anyOf"])
    return tuple(jsonschema.Draft202012Validator(around | one, format_checker=FORMATS) for one in whole["anyOf"])


def recorded(case: str) -> Any:
    return json.loads((RECORDED / f"{case}.json").read_text(encoding="utf-8"))


# -- broken documents -------------------------------------------------------------------------------------------------


def replaced(value: Any) -> Change:
    return f"is {value!r}", lambda _: value


def without(key: str) -> Change:
    return f"without {key}", lambda content: {name: one for name, one in content.items() if name != key}


OTHERS: tuple[Any, ...] = (None, True, -1, 0, 1.5, 7, "text", "A" * 64, [], {})
REPLACED = [replaced(value) for value in OTHERS]
OF_LISTS: list[Change] = [
    ("a shorter list", lambda content: content[:-1]),
    ("a longer list", lambda content: [*content, *content[-1:]]),
    ("a list with null", lambda content: [*content, None]),
]
OF_OBJECTS: list[Change] = [("a new key", lambda content: {**content, "new": 1})]


def places(content: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every value and the way to it; of a list, the first and the last."""
    yield path, content
    if isinstance(content, dict):
        for key, value in content.items():
            yield from places(value, (*path, key))
    elif isinstance(content, list):
        for place in sorted({0, len(content) - 1}) if content else ():
            yield from places(content[place], (*path, place))


def changed(content: Any, path: tuple[str | int, ...], change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(content)
    items = content.items() if isinstance(content, dict) else enumerate(content)
    pairs = [(key, changed(value, path[1:], change) if key == path[0] else value) for key, value in items]
    return dict(pairs) if isinstance(content, dict) else [value for _, value in pairs]


def broken(content: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What was done, at which kind of place and to which kind of value; and the document after it."""
    for path, value in places(content):
        changes = [*REPLACED]
        if isinstance(value, list):
            changes += OF_LISTS
        elif isinstance(value, dict):
            changes += [*OF_OBJECTS, *map(without, value)]
        for name, change in changes:
            kind = ("item" if isinstance(key, int) else key for key in path)
            yield (name, type(value).__name__, *kind), changed(content, path, change)


def compared(cases: list[str], once: bool) -> tuple[int, int]:
    """Compare verdicts on broken documents; returns how many both schemas accept and how many both refuse."""
    seen: set[tuple[str, ...]] = set()
    counts = {True: 0, False: 0}
    for case in cases:
        name = case.split("/")[0]
        by_hand, made = validator(BY_HAND, name), versions(name)
        for what, content in broken(recorded(case)):
            if not once or what not in seen:
                seen.add(what)
                verdict = any(version.is_valid(content) for version in made)
                assert verdict == by_hand.is_valid(content), (case, what)
                counts[verdict] += 1
    return counts[True], counts[False]


@pytest.mark.parametrize("case", KEPT)
def test_a_document_that_was_kept_is_read_for_good(case: str) -> None:
    name = case.split("/")[0]
    validator(schemas.SCHEMAS, name).validate(recorded(case))
    assert name not in OLD or validator(BY_HAND, name).is_valid(recorded(case)) == (case in CASES)


def test_every_version_has_a_document_that_was_kept() -> None:
    kept = {(case.split("/")[0], str(recorded(case)["schema_version"])) for case in KEPT}
    assert kept == {(name, version) for name, versions in schemas.pinned().items() for version in versions}


@pytest.mark.parametrize("case", [case for case in KEPT if case not in CASES])
def test_documents_of_later_versions_have_every_key_and_no_other(case: str) -> None:
    made, content = validator(schemas.SCHEMAS, case.split("/")[0]), recorded(case)
    assert not made.is_valid({**content, "new": 1})
    assert not made.is_valid({**content, "schema_version": content["schema_version"] - 1})
    for key in content:
        assert not made.is_valid({name: value for name, value in content.items() if name != key}), key


@pytest.mark.parametrize("name", sorted(OLD))
def test_each_kind_of_break_has_the_verdict_that_it_had(name: str) -> None:
    accepted, refused = compared([case for case in CASES if case.startswith(f"{name}/")], once=True)
    assert accepted > 10  # such as another seed
    assert refused > 50


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_each_break_has_the_verdict_that_it_had(case: str) -> None:
    compared([case], once=False)


# -- from types -------------------------------------------------------------------------------------------------------


def test_the_package_has_the_schemas_of_its_types() -> None:
    """`make schemas` writes them."""
    shipped = {path.stem: path.read_text(encoding="utf-8") for path in schemas.SCHEMAS.glob("*.json")}
    assert shipped == {name: schemas.text_of(schemas.generated(*types)) for name, types in DOCUMENTS.items()}
    assert set(shipped) > OLD == {case.split("/")[0] for case in CASES}
    assert set(shipped) == {case.split("/")[0] for case in KEPT}


def test_types_are_loaded_without_what_makes_schemas_of_them() -> None:
    code = "import sys, banditto.cli.documents; assert 'pydantic' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_versions_that_were_published_are_as_they_were() -> None:
    pins = schemas.pinned()
    assert schemas.broken(DOCUMENTS, pins) == []
    assert schemas.with_new(DOCUMENTS, pins) == pins


class Wider(CertificateDocument):
    """What a careless change would make of a certificate."""

    divergence_pulls: dict[str, int]


class SecondStopped(StoppedContent, Provenance):
    """What `banditto stop --json` might print one day."""

    schema_version: Literal[2]
    pulls: int


def test_a_new_field_needs_a_new_version() -> None:
    pins = schemas.pinned()
    raised = "certificate: its type has changed, so schema_version 3 must be raised"
    *earlier, _ = DOCUMENTS["certificate"]
    assert schemas.broken(DOCUMENTS | {"certificate": (*earlier, Wider)}, pins) == [raised]
    forgotten = "stopped: documents of schema_version 1 are read no more"
    assert schemas.broken(DOCUMENTS | {"stopped": (SecondStopped,)}, pins) == [forgotten]
    both = DOCUMENTS | {"stopped": (StoppedDocument, SecondStopped)}
    assert schemas.broken(both, pins) == []
    assert set(schemas.with_new(both, pins)["stopped"]) == {"1", "2"}


def test_old_versions_are_still_read() -> None:
    made = jsonschema.Draft202012Validator(schemas.generated(StoppedDocument, SecondStopped))
    old = recorded("stopped/recorded")
    new = old | {"schema_version": 2, "pulls": 7}
    assert made.is_valid(old)
    assert made.is_valid(new)
    assert not made.is_valid(new | {"schema_version": 1})
    assert not made.is_valid(old | {"schema_version": 2})


def test_text_for_people_does_not_raise_a_version() -> None:
    content: dict[str, Any] = {"properties": {"title": {"type": "string", "description": "a"}}, "title": "b"}
    other: dict[str, Any] = {"title": "c", "properties": {"title": {"description": "d", "type": "string"}}}
    assert schemas.digest_of(content) == schemas.digest_of(other)
    assert schemas.digest_of(content) != schemas.digest_of({"properties": {}})


# -- nothing is left out ----------------------------------------------------------------------------------------------

# fields that are not among the keys; the docstring of `to_dict` names each of them and says why
LEFT_OUT = {
    "Analysis": {"compared", "observations"},
    "ArmEstimate": {"high", "low"},
    "Attack": {"certificate", "tried"},
    "Calibration": {"last", "protocol", "steps"},
    "Certificate": {"divergence_pulls", "protocol"},
    "Comparison": {"entrants"},
    "Description": {"header", "rows"},
    "Design": {"actions_digest", "certify"},
    "Difference": {"high", "low", "ratio_high", "ratio_low"},
    "Entrant": {"certificate", "curve", "run", "view"},
    "ExperimentStatus": {"analysis"},
    "LowerBound": {"asked"},
    "PairView": {"executions"},
    "Replay": {"runs"},
    "Reproduction": {"rows"},
    "RewardLog": {"high", "low", "rewards"},
    "Row": {"claim"},
    "Selection": {"seen"},
    "Verification": {"level", "winner"},
    "TrialPlan": {"ordinary_regret", "paper_regret", "protocol", "question", "regret"},
}
# what these say is open: environments and action sets of others have keys of their own, a protocol has no schema
OPEN = ("draw", "maximise", "to_toml")


@cache
def classes() -> dict[str, tuple[type, Any]]:
    """Every class that has plain data of a type of its own: a `to_dict`, or a type of its name and `Content`."""
    found: dict[str, tuple[type, Any]] = {}
    for module in pkgutil.walk_packages(banditto.__path__, "banditto."):
        if not module.name.endswith("__main__") and "gpu" not in module.name:
            names: dict[str, Any] = vars(import_module(module.name))
            for name, one in names.items():
                if inspect.isclass(one) and one.__module__ == module.name:
                    content = names.get(f"{name}Content")
                    if (method := vars(one).get("to_dict")) is not None:
                        content = get_type_hints(method)["return"]
                    if content is not None:
                        found[f"{module.name}.{name}"] = one, content
    return found


def fields(one: type) -> set[str]:
    if dataclasses.is_dataclass(one):
        return {field.name for field in dataclasses.fields(one)}
    return set(getattr(one, "_fields", ()))


def test_plain_data_has_every_field_or_says_which_it_has_not() -> None:
    left_out: dict[str, set[str]] = {}
    for name, (one, content) in classes().items():
        if not is_typeddict(content):
            assert any(hasattr(one, method) for method in OPEN), f"{name} does not say what comes back"
            continue
        assert fields(one), name
        missing = fields(one) - set(get_type_hints(content))
        text = vars(one).get("to_dict", content).__doc__ or ""
        assert all(f"`{field}`" in text for field in missing), f"{name} does not say that {missing} are left out"
        if missing:
            left_out[one.__name__] = missing
    assert left_out == LEFT_OUT
    assert len(classes()) > 30
