"""A real browser for the tests: Debian's Chromium, driven by Playwright, checked by axe."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.service.programs import program

_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
_FLAGS += ["--disable-sync", "--no-first-run", "--disable-quic"]
WIDE, NARROW = 1280, 390


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window; a test that needs it is skipped where there is none, and fails under CI=true."""
    found = shutil.which("chromium-browser") or program("chromium", "apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """Somebody with a browser window, who notes whatever goes wrong in it."""

    def __init__(self, browser: Any, address: str, width: int, theme: Literal["light", "dark"]) -> None:
        self._context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, accept_downloads=True
        )
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(60_000)
        self.address, self.problems = address, list[str]()
        self.page.on("console", lambda line: self._note(line.type, line.text))
        self.page.on("pageerror", lambda error: self._note("error", str(error)))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(text)

    def sign_in(self, token: str, path: str = "/") -> None:
        self.page.goto(f"{self.address}{path}")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(f"{self.address}{path}")

    def open(self, path: str) -> None:
        self.page.goto(f"{self.address}{path}")
        self.page.wait_for_load_state("load")

    def until(self, expression: str) -> None:
        """Wait until something is so; Playwright's own way evaluates text inside the page, which our policy forbids."""
        for _ in range(1200):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"{expression} did not become true")

    def check(self) -> None:
        """Nothing wider than the window, no picture missing, nothing for axe to say, no error in the console."""
        page = self.page
        self.until("[...document.images].every((one) => one.complete)")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{page.url} is too wide"
        broken = "[...document.images].filter((one) => one.naturalWidth === 0).map((one) => one.src)"
        assert page.evaluate(broken) == [], page.url
        axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
        found = axe.run(page)
        assert found.violations_count == 0, f"{page.url}\n{found.generate_report()}"
        assert self.problems == [], page.url

    def close(self) -> None:
        self._context.close()
