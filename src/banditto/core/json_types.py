"""Words for the types of what `to_dict` returns: what JSON Schema can say about a value and Python's types cannot.

A type such as `CertificateContent` says which keys come back; `tools/schemas.py` writes the schemas of `schemas/` from
these types, by Pydantic, which calls the two methods below by their names. Nothing of it is loaded at run time.
"""

from __future__ import annotations

from typing import Annotated, Any, Union


class Keywords:
    """Keywords of JSON Schema for a value, such as `Annotated[int, Keywords(minimum=0)]`."""

    def __init__(self, **keywords: object) -> None:
        self.keywords = keywords

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        """Return the value's schema with these keywords in it."""
        return {**handler(core), **self.keywords}


class OpenObject:
    """A dictionary that has the keys of one of these types, and may have more keys that its writer adds."""

    def __init__(self, *shapes: Any) -> None:
        self.shapes = shapes

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return the core schema that Pydantic makes of the union of these types."""
        return handler.generate_schema(Union[self.shapes])  # noqa: UP007 (as many as there are)

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        """Return the JSON Schema of these types, changed so that each allows additional keys."""
        schema: dict[str, Any] = handler(core)
        for one in schema.get("anyOf", [schema]):
            handler.resolve_ref_schema(one)["additionalProperties"] = True
        return schema


Natural = Annotated[int, Keywords(minimum=0)]
Positive = Annotated[int, Keywords(minimum=1)]
Horizon = Annotated[int, Keywords(minimum=10)]
Amount = Annotated[float, Keywords(minimum=0)]
AboveZero = Annotated[float, Keywords(exclusiveMinimum=0)]
Share = Annotated[float, Keywords(minimum=0, maximum=1)]
InsideUnit = Annotated[float, Keywords(exclusiveMinimum=0, exclusiveMaximum=1)]
Interval = Annotated[list[float], Keywords(minItems=2, maxItems=2)]
Digest = Annotated[str, Keywords(pattern="^[0-9a-f]{64}$")]
Moment = Annotated[str, Keywords(format="date-time")]
