"""Forms as browsers send them."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

from banditto.core.errors import InvalidArgument


async def form(request: Request) -> dict[str, str]:
    """Read the fields of a form; the last one counts where a name comes twice."""
    try:
        return dict(parse_qsl((await request.body()).decode("utf-8"), keep_blank_values=True, max_num_fields=1000))
    except ValueError:
        raise InvalidArgument("form", "something that cannot be read", "fields as a browser sends them") from None
