"""A real browser for the tests of the pages; CI must have it."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from game_server import OPEN_PAGES

OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Chromium driven by Playwright, for one module: its event loop blocks `asyncio.run` in other tests."""
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
    """Open a page that may send requests only to its own server, and must not write to the console."""
    requests, messages = [], []

    def open_one(url: str, *, context: Any = None, ready: str = "html[data-ready]", **options: Any) -> Any:
        if context is None:
            context = chromium.new_context(**{"viewport": {"width": 1200, "height": 850}, **options})
            OPEN_PAGES.callback(context.close)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("request", lambda request: requests.append((url.split("/")[2], request.url)))
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(url)
        page.wait_for_selector(ready, state="attached")
        return page

    yield open_one
    OPEN_PAGES.close()
    assert [url for host, url in requests if not url.startswith((f"http://{host}/", "data:", "blob:"))] == []
    # Chromium logs refused moves and refused logins, which are no errors of the page.
    assert [text for text in messages if "status of 409" not in text and "status of 401" not in text] == []
