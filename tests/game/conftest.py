"""A real browser for the tests of the page; in CI it has to be there."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from game_hall import GUESTS

OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright; not for longer than a module, whose loop no other test could use."""
    path = shutil.which("chromium")
    if path is None:
        if os.environ.get("CI") == "true":
            pytest.fail("chromium is not installed, and CI must have it")
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium) -> Iterator[Any]:
    """Open a page that may ask its own server alone, and must not complain."""
    asked, said = [], []

    def open_one(url: str, *, context: Any = None, ready: str = "html[data-ready]", **options: Any) -> Any:
        if context is None:
            context = chromium.new_context(**{"viewport": {"width": 1200, "height": 850}, **options})
            GUESTS.callback(context.close)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("request", lambda request: asked.append((url.split("/")[2], request.url)))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(url)
        page.wait_for_selector(ready, state="attached")
        return page

    yield open_one
    GUESTS.close()
    assert [url for host, url in asked if not url.startswith((f"http://{host}/", "data:", "blob:"))] == []
    # A move that the server refuses is no fault of the page, but Chromium writes it to the console.
    assert [text for text in said if "status of 409" not in text] == []
