"""Images of the live map: reduced, and encoded once for all watchers."""

import asyncio
import io
import threading
from collections import OrderedDict
from collections.abc import Callable

import numpy as np
from PIL import Image
from starlette.concurrency import run_in_threadpool

from airloc.areas.area import Pixels
from airloc.areas.layout import Layout
from airloc.areas.raster import Raster
from airloc.files import encode_png
from airloc.missions.messages import RequestError
from airloc.missions.orthophotos import background_corners, open_tiff, shows
from airloc.missions.photos import read_photo
from airloc.missions.service import ActiveSearch, SearchService

THUMBNAIL, BACKGROUND, LARGE = 480, 1200, 8192
"""Longest sides of reduced photos, of the background and of photos in another format, in pixels."""
PHOTO_TYPES = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG": "image/png"}
"""Media types of photos that every browser shows, by their first bytes."""
MAX_CELLS, MAX_THUMBNAILS, MAX_BACKGROUNDS = 2048, 512, 8
"""Images in memory."""


class SearchImages:
    """The images of all searches.

    Args:
        searches: The searches.
        raster: An orthophoto to show below the grids.
    """

    def __init__(self, searches: SearchService, raster: Raster | None) -> None:
        self._searches, self._raster = searches, raster
        self._raster_lock = threading.Lock()
        self.thumbnails = ImageCache(self._read_thumbnail, MAX_THUMBNAILS)
        """JPEG of a photo, by search and number."""
        self.cells = ImageCache(self._read_cell, MAX_CELLS)
        """PNG of the cell in a photo, by search and number."""
        self.goals = ImageCache(self._read_goal, MAX_THUMBNAILS)
        """JPEG of the goal image, by search."""
        self.backgrounds = ImageCache(self._read_background, MAX_BACKGROUNDS)
        """WebP of the ground, by search."""

    def shows(self, active: ActiveSearch) -> bool:
        """Return True if there is an orthophoto that shows some of the grid of a search."""
        if self._searches.orthophoto(active.stored.id) is not None:
            return True
        return self._raster is not None and shows(self._raster, active.field.layout)

    def _read_thumbnail(self, search: str, number: int) -> bytes:
        return _encode_jpeg(read_photo(self._searches.photo(search, number)))

    def _read_cell(self, search: str, number: int) -> bytes:
        return encode_png(self._searches.glimpse(search, number))

    def _read_goal(self, search: str) -> bytes:
        def read(active: ActiveSearch, _: object) -> Pixels:
            return read_photo(active.stored.picture) if active.stored.picture else active.field.goal.picture

        return _encode_jpeg(self._searches.inspect(search, read))

    def _read_background(self, search: str) -> bytes:
        active = self._searches.inspect(search, lambda active, _: active)
        own = self._searches.orthophoto(search)
        if own is not None:
            with open_tiff(own, "orthophoto") as raster:
                return _draw_background(raster, active.field.layout)
        if self._raster is None or not self.shows(active):
            problem = "The server has no orthophoto of this place"
            raise RequestError(404, problem, "Send one with PUT /searches/ID/orthophoto, or use serve --map")
        with self._raster_lock:
            return _draw_background(self._raster, active.field.layout)


def _draw_background(raster: Raster, layout: Layout) -> bytes:
    """Encode the ground below a grid."""
    corners = background_corners(layout)
    width, height = (float(np.linalg.norm(side)) for side in (corners[1] - corners[0], corners[3] - corners[0]))
    scale = BACKGROUND / max(width, height)
    size = max(1, round(height * scale)), max(1, round(width * scale))
    return _encode_transparent(raster.read_quad(layout.plane, corners, size).pixels)


class ImageCache:
    """Images by key. Requests for an image that is being read wait for it, without a thread.

    Args:
        read: Reads and encodes an image; runs in a thread.
        size: Number of images in memory.
    """

    def __init__(self, read: Callable[..., bytes], size: int) -> None:
        self._read, self._size = read, size
        self._images: OrderedDict[tuple[str | int, ...], bytes] = OrderedDict()
        self._pending: dict[tuple[str | int, ...], asyncio.Task[bytes]] = {}

    async def get(self, *key: str | int) -> bytes:
        """Return an image."""
        if key in self._images:
            self._images.move_to_end(key)
            return self._images[key]
        if key not in self._pending:
            self._pending[key] = asyncio.create_task(self._load(key))
        return await asyncio.shield(self._pending[key])  # a watcher that leaves does not disturb the others

    def forget(self, *key: str | int) -> None:
        """Read an image again when somebody asks for it."""
        self._images.pop(key, None)

    async def _load(self, key: tuple[str | int, ...]) -> bytes:
        try:
            image = await run_in_threadpool(self._read, *key)
        finally:
            del self._pending[key]
        self._images[key] = image
        if len(self._images) > self._size:
            self._images.popitem(last=False)
        return image


def photo_type(file: bytes) -> str | None:
    """Return the media type of a photo; None if not every browser shows it."""
    return next((kind for start, kind in PHOTO_TYPES.items() if file.startswith(start)), None)


def browser_image(file: bytes) -> tuple[bytes, str]:
    """Return a photo in a format that browsers show, with its media type: as it is if possible, or as JPEG."""
    kind = photo_type(file)
    return (_encode_jpeg(read_photo(file), LARGE), "image/jpeg") if kind is None else (file, kind)


def _encode_jpeg(pixels: Pixels, side: int = THUMBNAIL) -> bytes:
    """Encode an image as JPEG, reduced to a longest side."""
    image = Image.fromarray(pixels)
    image.thumbnail((side, side))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def _encode_transparent(pixels: Pixels) -> bytes:
    """Encode an image as WebP, transparent where it is black, as outside the orthophoto."""
    buffer = io.BytesIO()
    alpha = np.where(pixels.any(axis=2, keepdims=True), np.uint8(255), np.uint8(0))
    Image.fromarray(np.concatenate([pixels, alpha], axis=2)).save(buffer, "WEBP", quality=80)
    return buffer.getvalue()
