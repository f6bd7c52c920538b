"""Downloading one file over HTTP: resumed where it broke off, tried again, and never half there.

Bytes go to `NAME.part` beside the target. The part file stays when the connection breaks or the user does, and the
next attempt asks the server for the rest (`Range`); it takes the target's name when the length, the checksum (where
one is known) and the content are right, and is deleted when they are wrong.
"""

import hashlib
import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import quote, unquote, urlsplit

from airloc import __version__
from airloc.areas.dubai import Dubai
from airloc.areas.images import read_image
from airloc.areas.xbd import Xbd
from airloc.errors import AirlocError
from airloc.files import write_atomically

Result = TypeVar("Result")

CHUNK = 1 << 16

_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP answers that may be another one in a moment."""


@dataclass(frozen=True)
class Timeouts:
    """How long to try."""

    timeout: float = 30.0
    """Seconds to wait for a server that sends nothing."""
    attempts: int = 5
    """Tries in a row without a single new byte before giving up."""
    pause: float = 1.0
    """Seconds before the second try; doubled before each further one."""


class _BrokenError(Exception):
    """The connection failed in a way that another try may mend."""


def get_text(url: str, timeouts: Timeouts) -> str:
    """Fetch a small text, such as a page of links."""
    return _try(lambda: _request(url, {}, timeouts).read().decode("utf-8", "replace"), url, timeouts)


def download(
    url: str,
    to: Path,
    *,
    check: Callable[[Path], None],
    sha256: str | None = None,
    timeouts: Timeouts | None = None,
    on_bytes: Callable[[int, int | None], None] = lambda done, total: None,
) -> str:
    """Download a file.

    Args:
        url: Where it is, by http or https.
        to: Where it is to lie; what lies there stays until the new file is whole and right.
        check: Raises AirlocError for content that is not what it should be; called before the file gets its name.
        sha256: The checksum it must have, where one is known.
        patience: How long to try.
        on_bytes: Told of the bytes so far and, where known, in total.

    Returns:
        The SHA-256 of the file.
    """
    part = to.with_name(to.name + ".part")
    timeouts = timeouts or Timeouts()
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        _try(lambda: _continue(url, part, timeouts, on_bytes), url, timeouts, lambda: _size(part))
        got = hash_file(part)
        _accept(part, to, url, got, sha256, check)
    except OSError as error:
        raise AirlocError(f"Cannot write {to}: {error}", "Give a folder that can be written, with room left") from error
    return got


def hash_file(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _accept(part: Path, to: Path, url: str, got: str, sha256: str | None, check: Callable[[Path], None]) -> None:
    """Give a complete part file its name, or delete it and say what is wrong."""
    stays = f"the file {to} from before was kept" if to.exists() else "nothing was kept"
    if sha256 is not None and got != sha256:
        part.unlink()
        raise AirlocError(
            f"{url} is not the file that was first fetched: its SHA-256 is {got}, recorded is {sha256}; {stays}",
            "Try again or from another mirror; if the change is wanted, delete the entry in checksums.json",
        )
    try:
        check(part)
    except AirlocError as error:
        part.unlink()
        raise AirlocError(f"{url} sent something else than expected ({error.problem}); {stays}", "Try again") from error
    part.replace(to)


def _continue(url: str, part: Path, timeouts: Timeouts, on_bytes: Callable[[int, int | None], None]) -> None:
    """Fetch what a part file still lacks."""
    have = _size(part)
    try:
        answer = _request(url, {"Range": f"bytes={have}-"} if have else {}, timeouts)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        if error.headers.get("Content-Range") == f"bytes */{have}":
            return
        part.unlink(missing_ok=True)
        raise _BrokenError("the server has fewer bytes than were fetched before") from None
    with answer:
        _refuse_pages(answer, url)
        start, total = _extent(answer, have)
        with part.open("ab") as file:
            file.truncate(start)
            done = start
            on_bytes(done, total)
            while chunk := _read(answer):
                file.write(chunk)
                done += len(chunk)
                on_bytes(done, total)
    if total is not None and done < total:
        raise _BrokenError(f"the connection broke off after {done} of {total} bytes")


def _extent(answer: http.client.HTTPResponse, have: int) -> tuple[int, int | None]:
    """First byte of an answer and length of the whole file; a server that ignores ranges starts at 0."""
    if answer.status == 206:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != have:
            raise _BrokenError("the server sent another part than was asked for")
        return have, None if match[2] == "*" else int(match[2])
    length = answer.headers.get("Content-Length")
    return 0, int(length) if length and length.isdigit() else None


def _refuse_pages(answer: http.client.HTTPResponse, url: str) -> None:
    """A web page in place of a file is a login, an error or a captive portal."""
    if answer.headers.get_content_type() in ("text/html", "application/xhtml+xml"):
        raise AirlocError(
            f"{url} is a web page, not a file", "Open it in a browser to see what it says, or use another mirror"
        )


def _request(url: str, headers: dict[str, str], timeouts: Timeouts) -> http.client.HTTPResponse:
    if urlsplit(url).scheme not in ("http", "https"):
        raise AirlocError(f"{url!r} is no web address", "Give one that starts with https:// or http://")
    request = urllib.request.Request(url, headers={"User-Agent": f"airloc/{__version__}", **headers})
    answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=timeouts.timeout)
    return answer


def _read(answer: http.client.HTTPResponse) -> bytes:
    """Read the next bytes; a failure of the network is told from one of the disk."""
    try:
        return answer.read(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(str(error) or type(error).__name__) from error


def _try(action: Callable[[], Result], url: str, timeouts: Timeouts, progress: Callable[[], int] = lambda: 0) -> Result:
    """Do something with the network until it succeeds, is refused, or makes no progress any more."""
    failures, before = 0, progress()
    while True:
        try:
            return action()
        except urllib.error.HTTPError as error:
            reason = f"{error.code} {error.reason}"
            if error.code not in _TRANSIENT:
                raise AirlocError(
                    f"The server refused {url} ({reason})", "Check the address, or use another --mirror"
                ) from error
        except (_BrokenError, urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        now = progress()
        failures, before = (failures + 1, before) if now <= before else (1, now)
        if failures >= timeouts.attempts:
            raise AirlocError(
                f"Cannot fetch {url}: {reason} (tried {failures} times)",
                "Check the connection and run the command again: it goes on where it broke off",
            )
        time.sleep(timeouts.pause * 2 ** (failures - 1))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# ---------- Fetching the published datasets: what may be downloaded is, for the rest a word on where it is had.
# ~
# ~ Massachusetts Buildings is on its author's site as pages of links, one file each. Checksums are not published, so
# ~ each file's SHA-256 is recorded in `checksums.json` when it is first fetched and checked from then on.

MASA_URL = "https://www.cs.toronto.edu/~vmnih/data/mass_buildings"

MASA_PAGES = {
    "train/sat": "train",
    "train/map": "train_labels",
    "valid/sat": "val",
    "valid/map": "val_labels",
    "test/sat": "test",
    "test/map": "test_labels",
}
"""The site's folders, and the folders their files go to."""

CHECKSUMS = "checksums.json"

BY_HAND = {
    "dubai": (
        f"the dataset is CC0, but its page asks for a form: {Dubai.homepage}",
        "Unpack it so that {root} holds `Tile 1/images`, `Tile 1/masks` and so on, and `classes.json`",
    ),
    "xbd": (
        f"the dataset is CC BY-NC-SA 4.0 and given to registered users only: {Xbd.homepage}",
        "Unpack it so that {root} holds `images` and `labels`, or `train/images` and so on "
        "(files are called EVENT_00000000_pre_disaster.png)",
    ),
}
"""Why a dataset cannot be fetched, and what to do instead."""


@dataclass(frozen=True)
class Fetched:
    """What a fetch did."""

    new: int
    """Files downloaded."""
    kept: int
    """Files that were there already."""


def fetch_by_hand(dataset: str, root: Path) -> AirlocError:
    """The word for a dataset that a person must ask for."""
    reason, cure = BY_HAND[dataset]
    return AirlocError(f"airloc cannot fetch {dataset}: {reason}", cure.format(root=root))


def fetch_masa(
    root: Path,
    *,
    mirror: str = MASA_URL,
    timeouts: Timeouts | None = None,
    on_listed: Callable[[int], None] = lambda files: None,
    on_bytes: Callable[[str, int, int | None], None] = lambda name, done, total: None,
    on_file: Callable[[str], None] = lambda name: None,
) -> Fetched:
    """Download Massachusetts Buildings, or what is still missing of it.

    Args:
        root: The folder to write to.
        mirror: Where the site's folders are.
        patience: How long to try.
        on_listed: Told of the number of files, once it is known.
        on_bytes: Told of a file's bytes so far and, where known, in total.
        on_file: Told of each file that is there.
    """
    timeouts = timeouts or Timeouts()
    wanted = [
        (f"{folder}/{name}", f"{mirror.rstrip('/')}/{page}/{quote(name)}")
        for page, folder in MASA_PAGES.items()
        for name in list_links(f"{mirror.rstrip('/')}/{page}/index.html", timeouts)
    ]
    on_listed(len(wanted))
    checksums = read_checksums(root)
    new = 0
    for name, url in wanted:
        if not _is_there(root / name, checksums.get(name)):
            report = _named(on_bytes, name)
            checksums[name] = download(
                url, root / name, check=_decodes, sha256=checksums.get(name), timeouts=timeouts, on_bytes=report
            )
            write_atomically(root / CHECKSUMS, json.dumps(checksums, indent=1, sort_keys=True) + "\n")
            new += 1
        on_file(name)
    return Fetched(new, len(wanted) - new)


def list_links(page: str, timeouts: Timeouts) -> list[str]:
    """Names of the pictures that a page links to; the links' own addresses are not used."""
    parser = _Links()
    parser.feed(get_text(page, timeouts))
    paths = (PurePosixPath(unquote(urlsplit(link).path)) for link in parser.links)
    names = dict.fromkeys(path.name for path in paths if path.suffix.lower() in (".tif", ".tiff", ".png"))
    if not names:
        raise AirlocError(f"{page} lists no pictures", "Open it in a browser, or use another --mirror")
    return list(names)


def read_checksums(root: Path) -> dict[str, str]:
    """Checksums recorded by earlier fetches, by file."""
    path = root / CHECKSUMS
    try:
        recorded = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return {str(name): str(sha256) for name, sha256 in recorded.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise AirlocError(f"Cannot read {path}: {error}", "Mend the file; deleting it forgets all checksums") from error


class _Links(HTMLParser):
    """Collects the addresses of a page's links."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links += [value for key, value in attrs if key == "href" and value]


def _is_there(path: Path, sha256: str | None) -> bool:
    """Whether a file is there and whole: by its checksum or, if it was not fetched by us, by decoding it."""
    if not path.is_file():
        return False
    if sha256 is not None:
        return hash_file(path) == sha256
    try:
        _decodes(path)
    except AirlocError:
        return False
    return True


def _decodes(path: Path) -> None:
    read_image(path)


def _named(on_bytes: Callable[[str, int, int | None], None], name: str) -> Callable[[int, int | None], None]:
    return lambda done, total: on_bytes(name, done, total)
