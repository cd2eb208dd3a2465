"""Pages as HTML: templates that escape everything, and headers that let a page load nothing from anywhere else."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import HTTPConnection
from starlette.responses import Response

from banditto.report.colours import POLICY_COLOURS
from banditto.report.page import STYLE
from banditto.service.pages.sessions import FORM_KEY, form_key

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_STATIC = {"pages.css": "text/css", "pages.js": "text/javascript", "plan.js": "text/javascript"}


@cache
def _templates() -> Environment:
    """Return the Jinja environment of all pages, which escapes text and fails on unknown names."""
    made = Environment(
        loader=PackageLoader("banditto.service.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": lambda count: f"{count:,}", "moment": moment}
    return made


def moment(time: str) -> str:
    """Return a time of the store in a form for people."""
    return f"{time[:10]} {time[11:16]} UTC"


def page(connection: HTTPConnection, template: str, code: int = 200, **content: Any) -> Response:
    """Fill in a template; return a response with all headers that a page needs."""
    token = connection.scope.get("state", {}).get("token")
    key = form_key(connection)
    text = _templates().get_template(template).render(form_field=FORM_KEY, form_key=key, token=token, **content)
    return Response(text, code, HEADERS, "text/html")


def static_file(name: str) -> Response | None:
    """Return the response with a style sheet or a script that pages load; None if there is no such file."""
    if name not in _STATIC:
        return None
    text = (files(__package__) / "static" / name).read_text(encoding="utf-8")
    if name == "pages.css":
        text = STYLE + _colours() + text
    return Response(text, 200, {**HEADERS, "Cache-Control": "max-age=300"}, _STATIC[name])


def _colours() -> str:
    """Return CSS variables with the colours that figures give to policies, for light and dark pages."""
    light, dark = (
        "".join(f"--policy-{index}: {colour}; " for index, colour in enumerate(colours)) for colours in POLICY_COLOURS
    )
    return f":root {{ {light}}}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}\n"
