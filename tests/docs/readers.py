"""A reader of the site with a real browser, who notes what does not fit, what is missing and what complains."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

from tests.service.browsers import NARROW, WIDE, Visitor

Theme = Literal["light", "dark"]

# What reaches beyond the window's edge and is seen, unless something around it can be scrolled. Formulas of their own,
# tables and code may scroll; a word, a picture or a formula within a line may not be cut off.
_TOO_WIDE = """() => {
  const scrolls = (one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowX)
  const kept = (one) => one.closest("svg svg, svg > *, .katex-mathml, .md-sidebar, .md-search, .md-overlay") !== null
  const reachable = (one) => {
    for (let at = one; at !== null && at !== document.body; at = at.parentElement) if (scrolls(at)) return true
    return false
  }
  const beyond = (one) => {
    const box = one.getBoundingClientRect()
    return box.width > 1 && (box.right > innerWidth + 1 || box.left < -1)
  }
  const cut = [...document.body.querySelectorAll("*")].filter(
    (one) => beyond(one) && !kept(one) && one.checkVisibility({ visibilityProperty: true }) && !reachable(one)
  )
  const clipped = (one) => one.closest(".hide-tail, .stretchy, .md-header__topic, .md-top") !== null
  const found = cut.filter((one) => !clipped(one)).map((one) => `${one.tagName} ${one.textContent.trim().slice(0, 60)}`)
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page itself")
  return found
}"""
# Pictures that are seen must be there. Those of the other theme are hidden, and not even fetched.
_SEEN = "[...document.images].filter((one) => one.checkVisibility())"
_EAGER = f"() => {{ for (const one of {_SEEN}) one.loading = 'eager' }}"
_LOADED = f"{_SEEN}.every((one) => one.complete)"
_MISSING = f"{_SEEN}.filter((one) => one.naturalWidth === 0).map((one) => one.currentSrc || one.src)"
_NAMES = f"{_SEEN}.map((one) => one.currentSrc.split('/').pop())"
_SWITCH = "() => document.querySelector('label.md-header__button[for^=__palette]:not([hidden])').click()"
_SCHEME = "document.body.getAttribute('data-md-color-scheme')"


class _Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing about it."""

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Keep it out of the tests' output."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a port of this machine; the address comes back."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Reader(Visitor):
    """Somebody who reads pages of the site in one window, makes it narrow, and switches to dark colours."""

    def __init__(self, browser: Any, address: str, theme: Theme = "light") -> None:
        super().__init__(browser, address, WIDE, theme)
        self.page.on("requestfailed", lambda request: self.problems.append(f"not fetched: {request.url}"))

    @property
    def theme(self) -> Theme:
        """The colours that the page has now."""
        return "dark" if self.page.evaluate(_SCHEME) == "slate" else "light"

    def faults(self, path: str) -> list[str]:
        """Open a page and list everything that is wrong with it, in both widths and in light and dark.

        It is loaded once, and changed as a reader would change it: most of the time goes into loading.
        """
        self.problems.clear()
        self.resize(WIDE)
        self.open(f"/{path}")
        found, seen = list[str](), set[tuple[int, Theme]]()
        for width in (WIDE, NARROW):
            self.resize(width)
            for _ in range(2):
                seen.add((width, self.theme))
                found += self._faults_now(f"{width} {self.theme}")
                self.switch()
        assert len(seen) == 4, f"{path} was seen as {seen} alone"
        return [*found, *(f"console: {line}" for line in self.problems)]

    def _faults_now(self, look: str) -> list[str]:
        self.loaded()
        wide = [f"{look}: too wide: {one}" for one in self.page.evaluate(_TOO_WIDE)]
        return [*wide, *(f"{look}: missing: {one}" for one in self.page.evaluate(_MISSING))]

    def switch(self) -> None:
        """Press the page's own switch between light and dark."""
        self.page.evaluate(_SWITCH)

    def resize(self, width: int) -> None:
        """Make the window so wide."""
        self.page.set_viewport_size({"width": width, "height": 900})

    def loaded(self) -> None:
        """Wait until every picture that can be seen is there, or will not come."""
        self.page.evaluate(_EAGER)
        self.until(_LOADED)

    def figures(self) -> list[str]:
        """Return the names of the pictures that are seen on the page, as the browser chose them."""
        self.loaded()
        return [str(name) for name in self.page.evaluate(_NAMES)]
