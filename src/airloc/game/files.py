"""The page's own files, read into memory once and served by name: no path of a request is ever opened."""

import hashlib
from importlib import resources
from pathlib import PurePath
from typing import NamedTuple

from fastapi import Request, Response

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class File(NamedTuple):
    """A file of the page."""

    content: bytes
    kind: str
    tag: str


def page_files() -> dict[str, File]:
    """All files of the page by name."""
    files = {}
    for entry in resources.files("airloc.game").joinpath("static").iterdir():
        kind = KINDS.get(PurePath(entry.name).suffix)
        if kind is not None:
            content = entry.read_bytes()
            files[entry.name] = File(content, kind, f'"{hashlib.sha256(content).hexdigest()[:20]}"')
    return files


def respond(file: File, request: Request) -> Response:
    """Answer with a file, or with the news that the browser has it already."""
    headers = {"etag": file.tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)
