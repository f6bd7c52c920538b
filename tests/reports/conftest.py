"""The browser that shows reports."""

from browser_pages import chromium, open_report  # noqa: F401
