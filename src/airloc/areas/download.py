"""Download the files of a dataset with pooch: resumed, retried and verified. No incomplete file takes its final name.

Bytes go to `NAME.part` beside the target. The part file stays when the connection breaks or the user interrupts, and
the next attempt requests the rest (`Range`). A complete file takes the target's name only if its checksum is
right; otherwise it is deleted, and a file that was there before stays.

Checksums are pinned in `checksums.json` in the dataset's folder. A file without a pinned checksum is accepted if its
content can be read, and its SHA-256 is pinned from then on.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from airloc import __version__
from airloc.areas.area import read_image
from airloc.errors import AirlocError
from airloc.files import write_atomically

if TYPE_CHECKING:
    from requests import Response

Result = TypeVar("Result")

CHECKSUMS = "checksums.json"
_CHUNK = 1 << 13
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP status codes after which another attempt may succeed."""
_MAX_SECONDS = 86_400.0


@dataclass(frozen=True)
class Timeouts:
    """How long to wait and how often to retry."""

    timeout: float = 30.0
    """Seconds to wait for a server that sends nothing."""
    attempts: int = 5
    """Attempts in a row without a new byte before giving up."""
    pause: float = 1.0
    """Seconds before the second attempt; doubled before each further one."""

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= _MAX_SECONDS:
            raise AirlocError(f"A timeout of {self.timeout} s is not valid", "Give --timeout above 0, such as 30")
        if not 0 <= self.pause <= _MAX_SECONDS:
            raise AirlocError(f"A pause of {self.pause} s is not valid", "Give --pause 0 or more, such as 1")
        if self.attempts < 1:
            raise AirlocError(f"{self.attempts} attempts download nothing", "Give --attempts 1 or more")


@dataclass(frozen=True)
class Progress:
    """Functions that are called as a download proceeds."""

    listed: Callable[[int], None] = lambda count: None
    """Called with the number of files, once it is known."""
    bytes: Callable[[str, int, int | None], None] = lambda name, done, total: None
    """Called with a file's name, its bytes so far and, if known, in total."""
    file: Callable[[str], None] = lambda name: None
    """Called with the name of each file that is present and complete."""


@dataclass(frozen=True)
class Downloaded:
    """The result of a download."""

    new: int
    """Number of files downloaded."""
    kept: int
    """Number of files that were present and complete."""


def fetch_files(
    root: Path, urls: Mapping[str, str], *, timeouts: Timeouts | None = None, progress: Progress | None = None
) -> Downloaded:
    """Download the images that are missing or damaged; `urls` maps paths below `root` to addresses."""
    timeouts, progress = timeouts or Timeouts(), progress or Progress()
    progress.listed(len(urls))
    pinned = _read_checksums(root)
    new = 0
    for name, url in urls.items():
        if not _is_complete(root / name, pinned.get(name)):
            on_bytes = partial(progress.bytes, name)
            pinned[name] = fetch_file(url, root / name, sha256=pinned.get(name), timeouts=timeouts, on_bytes=on_bytes)
            write_atomically(root / CHECKSUMS, json.dumps(pinned, indent=1, sort_keys=True) + "\n")
            new += 1
        progress.file(name)
    return Downloaded(new, len(urls) - new)


def fetch_file(
    url: str,
    to: Path,
    *,
    sha256: str | None = None,
    timeouts: Timeouts | None = None,
    on_bytes: Callable[[int, int | None], None] = lambda done, total: None,
) -> str:
    """Download one image and return its SHA-256.

    A file that is already there stays until the new one is complete and correct: it has the pinned checksum `sha256`
    or, without one, can be read. `on_bytes` is called with the bytes so far and, if known, in total.
    """
    pooch = _quiet_pooch()
    part = to.with_name(to.name + ".part")
    downloader = _Downloader(part, timeouts or Timeouts(), on_bytes, check=sha256 is None)
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        if sha256 is None:
            to.unlink(missing_ok=True)  # otherwise pooch takes the file as it is
        pooch.retrieve(url, sha256, fname=to.name, path=to.parent, downloader=downloader)
        return str(pooch.file_hash(to))
    except ValueError as error:
        raise AirlocError(
            f"{url} is not the file whose checksum is pinned: {error}",
            f"Try again or from another --mirror; to accept the new file, delete its entry in {CHECKSUMS}",
        ) from error
    except OSError as error:
        raise AirlocError(
            f"Cannot write {to}: {error}", "Give a folder that can be written, with free space"
        ) from error


def list_links(page: str, timeouts: Timeouts) -> list[str]:
    """List the file names of the images that a page links to; the addresses of the links are not used."""
    parser = _Links()
    parser.feed(_retry(lambda: _request(page, {}, timeouts, stream=False).text, page, timeouts))
    paths = (PurePosixPath(unquote(urlsplit(link).path)) for link in parser.links)
    names = dict.fromkeys(path.name for path in paths if path.suffix.lower() in (".tif", ".tiff", ".png"))
    if not names:
        raise AirlocError(f"{page} links to no images", "Open it in a browser, or use another --mirror")
    return list(names)


def _read_checksums(root: Path) -> dict[str, str]:
    """Read the pinned checksums, by file."""
    path = root / CHECKSUMS
    try:
        pinned = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return {str(name): str(sha256) for name, sha256 in pinned.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise AirlocError(f"Cannot read {path}: {error}", "Correct the file; deleting it unpins all files") from error


@dataclass(frozen=True)
class _Downloader:
    """A pooch downloader that resumes a part file and retries."""

    part: Path
    timeouts: Timeouts
    on_bytes: Callable[[int, int | None], None]
    check: bool
    """Read the image before it takes its name."""

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        """Download `url` to `output_file`, as pooch calls it."""
        del pooch
        _retry(lambda: self._resume(url), url, self.timeouts, lambda: _size(self.part))
        if self.check:
            try:
                read_image(self.part)
            except AirlocError as error:
                self.part.unlink()
                problem = f"{url} has unexpected content and was deleted: {error.problem}"
                raise AirlocError(problem, "Try again, or use another --mirror") from error
        self.part.replace(output_file)

    def _resume(self, url: str) -> None:
        """Download the bytes that the part file lacks."""
        have = _size(self.part)
        headers = {"Range": f"bytes={have}-"} if have else {}
        with _request(url, headers, self.timeouts, stream=True) as response:
            if response.status_code == 416:
                if response.headers.get("Content-Range") == f"bytes */{have}":
                    return
                self.part.unlink(missing_ok=True)
                raise _InterruptedError("the server has fewer bytes than the part file")
            _refuse_pages(response, url)
            start, total = _extent(response, have)
            done = self._write(response, start, total)
        if total is not None and done < total:
            raise _InterruptedError(f"the connection broke after {done} of {total} bytes")

    def _write(self, response: "Response", start: int, total: int | None) -> int:
        """Append a response to the part file from a byte on; return the number of bytes that it holds."""
        done = start
        with self.part.open("ab") as file:
            file.truncate(start)
            self.on_bytes(done, total)
            for chunk in _chunks(response):
                file.write(chunk)
                done += len(chunk)
                self.on_bytes(done, total)
        return done


class _InterruptedError(Exception):
    """The connection failed; another attempt may succeed."""


class _Links(HTMLParser):
    """Collects the addresses of a page's links."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links += [value for key, value in attrs if key == "href" and value]


def _quiet_pooch() -> Any:
    """Import pooch, which is slow to import, and silence its messages."""
    import pooch

    pooch.get_logger().setLevel("ERROR")
    return pooch


def _request(url: str, headers: dict[str, str], timeouts: Timeouts, *, stream: bool) -> "Response":
    """Send a GET request; raise _InterruptedError if another attempt may succeed."""
    import requests  # a dependency of pooch

    if urlsplit(url).scheme not in ("http", "https"):
        raise AirlocError(f"{url!r} is not a web address", "Give one that starts with https:// or http://")
    headers = {"User-Agent": f"airloc/{__version__}", "Accept-Encoding": "identity", **headers}
    try:
        response = requests.get(url, headers=headers, timeout=timeouts.timeout, stream=stream)
    except (requests.RequestException, OSError) as error:
        raise _InterruptedError(_reason(error)) from error
    reason = f"{response.status_code} {response.reason}"
    if response.status_code in _TRANSIENT:
        raise _InterruptedError(reason)
    if not response.ok and response.status_code != 416:
        raise AirlocError(f"The server refused {url} ({reason})", "Check the address, or use another --mirror")
    return response


def _reason(error: BaseException) -> str:
    """Return the message of the error that is at the root of a chain of errors."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return str(error) or type(error).__name__


def _chunks(response: "Response") -> Iterator[bytes]:
    """Yield the content; errors of the network are distinguished from errors of the disk."""
    import requests

    try:
        yield from response.iter_content(_CHUNK)
    except (requests.RequestException, OSError) as error:
        raise _InterruptedError(_reason(error)) from error


def _refuse_pages(response: "Response", url: str) -> None:
    """Raise for a web page in place of a file: a login, an error or a captive portal."""
    if response.headers.get("Content-Type", "").partition(";")[0].strip() in ("text/html", "application/xhtml+xml"):
        raise AirlocError(
            f"{url} is a web page, not a file", "Open it in a browser to see what it says, or use another --mirror"
        )


def _extent(response: "Response", have: int) -> tuple[int, int | None]:
    """Return the first byte of a response and the length of the whole file, if known."""
    if response.status_code == 206:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != have:
            raise _InterruptedError("the server sent another range than requested")
        return have, None if match[2] == "*" else int(match[2])
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdigit() else None


def _retry(
    action: Callable[[], Result], url: str, timeouts: Timeouts, progress: Callable[[], int] = lambda: 0
) -> Result:
    """Call an action until it succeeds; give up after `attempts` failures in a row without progress."""
    failures, before = 0, progress()
    while True:
        try:
            return action()
        except _InterruptedError as error:
            reason = str(error)
        now = progress()
        failures, before = (failures + 1, before) if now <= before else (1, now)
        if failures >= timeouts.attempts:
            raise AirlocError(
                f"Cannot download {url}: {reason} ({failures} attempts)",
                "Check the connection and run the command again: it resumes the download",
            )
        time.sleep(timeouts.pause * 2 ** (failures - 1))


def _is_complete(path: Path, sha256: str | None) -> bool:
    """Return True if a file is complete: by its pinned checksum or, if it has none, by reading it."""
    if not path.is_file():
        return False
    if sha256 is not None:
        return str(_quiet_pooch().file_hash(path)) == sha256
    try:
        read_image(path)
    except AirlocError:
        return False
    return True


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
