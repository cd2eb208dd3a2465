"""Forms as browsers send them."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

from banditto.core.errors import InvalidArgument


async def form(request: Request) -> dict[str, str]:
    """Return the fields of a submitted form by name; if a name comes twice, the last value counts."""
    try:
        return dict(parse_qsl((await request.body()).decode("utf-8"), keep_blank_values=True, max_num_fields=1000))
    except ValueError:
        raise InvalidArgument("form", "something that cannot be read", "fields as a browser sends them") from None
