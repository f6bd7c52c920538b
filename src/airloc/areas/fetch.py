"""Fetching the published datasets: what may be downloaded is, for the rest a word on where it is had.

Massachusetts Buildings is on its author's site as pages of links, one file each. Checksums are not published, so
each file's SHA-256 is recorded in `checksums.json` when it is first fetched and checked from then on.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from airloc.areas import dubai, xbd
from airloc.areas.download import Patience, download, get_text, hash_file
from airloc.areas.pictures import read_picture
from airloc.drawing.files import write_atomically
from airloc.errors import AirlocError

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
        f"the dataset is CC0, but its page asks for a form: {dubai.PAGE}",
        "Unpack it so that {root} holds `Tile 1/images`, `Tile 1/masks` and so on, and `classes.json`",
    ),
    "xbd": (
        f"the dataset is CC BY-NC-SA 4.0 and given to registered users only: {xbd.PAGE}",
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
    patience: Patience | None = None,
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
    patience = patience or Patience()
    wanted = [
        (f"{folder}/{name}", f"{mirror.rstrip('/')}/{page}/{quote(name)}")
        for page, folder in MASA_PAGES.items()
        for name in list_links(f"{mirror.rstrip('/')}/{page}/index.html", patience)
    ]
    on_listed(len(wanted))
    checksums = read_checksums(root)
    new = 0
    for name, url in wanted:
        if not _is_there(root / name, checksums.get(name)):
            report = _named(on_bytes, name)
            checksums[name] = download(
                url, root / name, check=_decodes, sha256=checksums.get(name), patience=patience, on_bytes=report
            )
            write_atomically(root / CHECKSUMS, json.dumps(checksums, indent=1, sort_keys=True) + "\n")
            new += 1
        on_file(name)
    return Fetched(new, len(wanted) - new)


def list_links(page: str, patience: Patience) -> list[str]:
    """Names of the pictures that a page links to; the links' own addresses are not used."""
    parser = _Links()
    parser.feed(get_text(page, patience))
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
    read_picture(path)


def _named(on_bytes: Callable[[str, int, int | None], None], name: str) -> Callable[[int, int | None], None]:
    return lambda done, total: on_bytes(name, done, total)
