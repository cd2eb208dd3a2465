"""Writes src/banditto/schemas from the types of `banditto.cli.documents`: `make schemas`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from banditto.cli.documents import DOCUMENTS

REPOSITORY = Path(__file__).parent.parent
SCHEMAS = REPOSITORY / "src" / "banditto" / "schemas"
PINS = Path(__file__).with_name("schema_versions.json")
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FIRST = ("$schema", "title", "description", "type")

Pins = dict[str, dict[str, str]]


class _Closed(GenerateJsonSchema):
    """Objects without keys that nobody wrote down, and without titles that only repeat a name."""

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> dict[str, Any]:
        made = super().typed_dict_schema(schema)
        made.pop("title", None)
        made["additionalProperties"] = False
        return made

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def generated(*types: Any) -> dict[str, Any]:
    """Return the schema of documents that have one of these types, the newest last."""
    union: Any = Union[types]  # noqa: UP007 (as many as there are)
    schema = TypeAdapter(union).json_schema(schema_generator=_Closed)
    schema.pop("description", None)
    title = (types[-1].__doc__ or types[-1].__name__).rstrip(".")
    return _ordered({"$schema": DIALECT, "title": title, **schema})


def _ordered(schema: dict[str, Any]) -> dict[str, Any]:
    """Put definitions last, where a reader looks for them."""
    definitions = schema.pop("$defs", None)
    first = {key: schema.pop(key) for key in _FIRST if key in schema}
    return {**first, **schema, **({} if definitions is None else {"$defs": definitions})}


def text_of(schema: dict[str, Any]) -> str:
    """Return a schema as it stands in its file."""
    return json.dumps(schema, indent=2) + "\n"


def digest_of(schema: dict[str, Any]) -> str:
    """Return the sha256 of what a schema demands: titles, descriptions and the order of its keys are left out."""
    text = json.dumps(_demands(schema), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _demands(value: Any, names: bool = False) -> Any:
    """Leave out what is for people; `names` says that the keys are names of a document's own."""
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if names or key not in ("title", "description")}
        return {key: _demands(one, not names and key in ("properties", "$defs")) for key, one in kept.items()}
    return [_demands(one) for one in value] if isinstance(value, list) else value


def version_of(document: Any) -> int:
    """Return the `schema_version` that documents of a type have."""
    return int(generated(document)["properties"]["schema_version"]["const"])


def pinned() -> Pins:
    """Return, by schema and version, the digest of what that version demands: it was published, and stays."""
    pins: Pins = json.loads(PINS.read_text(encoding="utf-8"))
    return pins


def broken(documents: Mapping[str, tuple[Any, ...]], pins: Pins) -> list[str]:
    """Return a line for every version that was published and is another one now, or is read no more."""
    lines = []
    for name, versions in pins.items():
        found = {str(version_of(document)): document for document in documents.get(name, ())}
        for version, digest in versions.items():
            if version not in found:
                lines.append(f"{name}: documents of schema_version {version} are read no more")
            elif digest_of(generated(found[version])) != digest:
                lines.append(f"{name}: its type has changed, so schema_version {version} must be raised")
    return lines


def with_new(documents: Mapping[str, tuple[Any, ...]], pins: Pins) -> Pins:
    """Return the pins, and those of versions that are new."""
    return {
        name: {str(version_of(one)): digest_of(generated(one)) for one in types} | pins.get(name, {})
        for name, types in documents.items()
    }


def write() -> None:
    """Write all schemas, and pin versions that are new; refuse to change one that was published."""
    pins = pinned()
    if lines := broken(DOCUMENTS, pins):
        raise SystemExit("\n".join(lines))
    for name, types in DOCUMENTS.items():
        (SCHEMAS / f"{name}.json").write_text(text_of(generated(*types)), encoding="utf-8")
    PINS.write_text(json.dumps(with_new(DOCUMENTS, pins), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
