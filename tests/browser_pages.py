"""Fixtures that open pages and reports in a real browser, for the conftest of their tests; CI must have the browser."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

OPEN_PAGES = ExitStack()
"""Closes the open pages before their server stops, so that no page reports a failed request."""
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
    """Open a page that may send requests only to its own server, and must not write to the console.

    Chromium itself writes to the console when a server does not answer or XML is invalid: `ignore_console`.
    """
    requests, messages = [], []

    def open_one(
        url: str, *, context: Any = None, ready: str = "html[data-ready]", ignore_console: bool = False, **options: Any
    ) -> Any:
        if context is None:
            context = chromium.new_context(**{"viewport": {"width": 1200, "height": 850}, **options})
            OPEN_PAGES.callback(context.close)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("request", lambda request: requests.append((url.split("/")[2], request.url)))
        if not ignore_console:
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


@pytest.fixture
def open_report(chromium) -> Iterator[Any]:
    """Open the file of a page that must request nothing else and must not write to the console."""
    pages, requests, messages = [], [], []

    def open_one(path: Path, **options: Any) -> Any:
        page = chromium.new_page(**{"viewport": {"width": 1200, "height": 900}, **options})
        pages.append(page)
        page.on("request", lambda request: requests.append((path.as_uri(), request.url)))
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.goto(path.as_uri(), wait_until="load")
        return page

    yield open_one
    for page in pages:
        page.close()
    assert [url for file, url in requests if url != file and not url.startswith("data:")] == []
    assert messages == []


def check_accessibility(page: Any) -> None:
    """Fail on every finding of axe that is more than minor."""
    from axe_playwright_python.sync_playwright import Axe

    findings = Axe().run(page).response["violations"]
    assert [
        (one["id"], one["impact"], [node["html"][:120] for node in one["nodes"]])
        for one in findings
        if one["impact"] != "minor"
    ] == []


SCREENS = (("light", {"width": 1280, "height": 850}), ("dark", {"width": 390, "height": 844}))
"""A wide light and a narrow dark screen."""


def check_screens(page: Any) -> None:
    """Fail if a page is not accessible, or wider than the window, on one of two screens; it is left on the first."""
    for scheme, size in reversed(SCREENS):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(size)
        check_accessibility(page)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
