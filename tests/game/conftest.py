"""Fixtures of the game tests."""

from browser_pages import chromium, open_page  # noqa: F401
