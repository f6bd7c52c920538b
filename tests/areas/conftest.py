"""A web site on loopback that misbehaves on request."""

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Site:
    """Files by path, and for each path the faults of its next answers (then it behaves)."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Path and Range of every request."""

    def ranges(self, path: str) -> list[str]:
        return [asked for at, asked in self.asked if at == path]


def handler_of(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            site.asked.append((self.path, asked))
            faults = site.faults.get(self.path, [])
            fault = faults.pop(0) if faults else ""
            if fault.isdigit():
                self.send_error(int(fault))
            elif fault == "hang":
                time.sleep(0.6)
            elif fault == "page":
                self.answer(200, b"<html>Please sign in</html>", {"Content-Type": "text/html"})
            elif self.path not in site.files:
                self.send_error(404)
            else:
                self.send_file(site.files[self.path], asked, fault)

        def send_file(self, content: bytes, asked: str, fault: str) -> None:
            kind = "text/html" if self.path.endswith(".html") else "image/tiff"
            headers = {"Content-Type": kind}
            match = re.fullmatch(r"bytes=(\d+)-", asked)
            start = int(match[1]) if match and fault != "ignore range" else 0
            if start and start >= len(content):
                self.answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
                return
            if start:
                first = 1 if fault == "other range" else start
                headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
            body = content[start:]
            if fault == "wrong bytes":
                body = bytes(255 - byte for byte in body)
            if fault == "no length":
                body, headers["Content-Length"] = body[: len(body) // 2], ""
            if fault.startswith("break"):
                headers["Content-Length"] = str(len(body))
                body = body[: int(fault.split()[1]) if " " in fault else len(body) // 2]
            self.answer(206 if start else 200, body, headers)

        def answer(self, code: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(code)
            for key, value in ({"Content-Length": str(len(body))} | headers).items():
                if value:
                    self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A running site; proxies are bypassed."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site = Site()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler_of(site)) as server:
        server.daemon_threads = True
        site.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield site
        server.shutdown()
        thread.join()
