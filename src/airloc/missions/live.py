"""Routes of the live map: the page, its session, and what it shows of a search.

| route                                       | response                                                   |
|---------------------------------------------|------------------------------------------------------------|
| GET /                                       | the page                                                   |
| POST /session, DELETE /session              | sign in with the token, which sets a cookie; sign out      |
| GET /options                                | what the form of a new search offers                       |
| GET /searches/ID/map                        | grid, outline and colours                                  |
| GET /searches/ID/view                       | state, photos, tracks and probabilities                    |
| GET /searches/ID/events                     | the view now and after every change, as server-sent events |
| GET /searches/ID/goal                       | the goal image                                             |
| GET /searches/ID/background                 | the ground below the grid, if the server has an orthophoto |
| GET /searches/ID/photos/N/thumbnail         | a photo, reduced                                           |
| GET /searches/ID/photos/N/cell              | the part of a photo that shows its cell                    |
"""

import hashlib
import hmac
import io
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, ParamSpec

import numpy as np
from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.staticfiles import StaticFiles
from PIL import Image
from pydantic import Field
from shapely.geometry import Polygon
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from airloc.areas.area import Pixels
from airloc.areas.raster import Raster
from airloc.files import encode_png
from airloc.missions.feed import SearchFeed
from airloc.missions.messages import Message, Problem
from airloc.missions.photos import read_photo
from airloc.missions.priors import subjects
from airloc.missions.service import ActiveSearch, RequestError, SearchService
from airloc.missions.team import MAX_VEHICLES
from airloc.missions.views import SearchGeometry, SearchView, background_corners, geometry_of, view_of
from airloc.web import PRIVATE, cookie_name, set_cookie

__all__ = ["STATIC", "is_session", "live_routes", "page_routes"]

P = ParamSpec("P")

STATIC = StaticFiles(packages=[("airloc.missions", "static"), ("airloc", "static")])
"""The files of the page."""
CACHED = {"cache-control": "private, max-age=86400"}
"""Header of images that never change."""
STREAM = PRIVATE | {"x-accel-buffering": "no"}
"""Headers of a stream, which proxies must not hold back."""
THUMBNAIL, BACKGROUND = 480, 1200
"""Longest sides of reduced photos and of the background, in pixels."""
MAX_CELLS, MAX_THUMBNAILS, MAX_BACKGROUNDS = 2048, 512, 8
"""Images in memory."""

PhotoNumber = Annotated[int, Path(description="number of the photo, from 1")]


class SessionRequest(Message):
    """Request that signs in."""

    token: Annotated[str, Field(max_length=1000, description="the token of the server")]


class FormOptions(Message):
    """What the form of a new search offers."""

    subjects: Annotated[list[str], Field(description="categories of lost persons")]
    max_drones: Annotated[int, Field(description="largest number of drones of a search")]


def session_of(token: str) -> str:
    """Return the value of the cookie of people who know the token."""
    return hmac.new(token.encode(), b"session of the map", hashlib.sha256).hexdigest()


def is_session(request: HTTPConnection, token: str) -> bool:
    """Return True if a request has the cookie of the token."""
    cookie = request.cookies.get(cookie_name(request), "")
    return hmac.compare_digest(cookie.encode(), session_of(token).encode())


def page_routes(token: str) -> APIRouter:
    """Return the routes that need no token."""
    router = APIRouter()

    @router.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return await STATIC.get_response("index.html", request.scope)

    @router.post("/session", status_code=204, tags=["server"], responses=_errors(400, 401, 408, 413, 422))
    def sign_in(session: SessionRequest, request: Request) -> Response:
        """Sign in: sets a cookie that replaces the header with the token."""
        if not hmac.compare_digest(session.token.strip().encode(), token.encode()):
            raise RequestError(401, "This is not the token of the server", "The server prints it when it starts")
        response = Response(status_code=204, headers=PRIVATE)
        set_cookie(response, session_of(token), request)
        return response

    @router.delete("/session", status_code=204, tags=["server"])
    def sign_out(request: Request) -> Response:
        """Sign out: removes the cookie."""
        response = Response(status_code=204, headers=PRIVATE)
        response.delete_cookie(cookie_name(request))
        return response

    return router


def live_routes(searches: SearchService, feed: SearchFeed, background: Raster | None) -> APIRouter:
    """Return the routes of the map of a search.

    Args:
        searches: The searches.
        feed: The feed of their views.
        background: An orthophoto to show below the grids.
    """
    router = APIRouter(tags=["map"])
    images = _Images(searches, background)

    @router.get("/options", responses=_errors(401, 408, 413))
    def read_options() -> FormOptions:
        """Return what the form of a new search offers."""
        return FormOptions(subjects=list(subjects()), max_drones=MAX_VEHICLES)

    @router.get("/searches/{search}/map", responses=_errors())
    def read_map(search: str) -> SearchGeometry:
        """Return the grid of a search, its outline and the colours of the map."""
        return searches.inspect(search, lambda active, _: geometry_of(active, images.shows(active)))

    @router.get("/searches/{search}/view", responses=_errors())
    def read_view(search: str) -> SearchView:
        """Return everything that changes during a search."""
        return searches.inspect(search, view_of)

    @router.get(
        "/searches/{search}/events",
        responses=_content("text/event-stream") | _errors(),
        response_class=StreamingResponse,
    )
    async def read_events(search: str) -> StreamingResponse:
        """Return the view now and after every change, as server-sent events of the type `view`."""
        await run_in_threadpool(searches.require, search)
        return StreamingResponse(feed.events(search), media_type="text/event-stream", headers=STREAM)

    @router.get("/searches/{search}/goal", responses=_content("image/jpeg") | _errors(), response_class=Response)
    def read_goal(search: str) -> Response:
        """Return the goal image, reduced."""
        return _image(images.goal(search))

    @router.get("/searches/{search}/background", responses=_content("image/webp") | _errors(), response_class=Response)
    def read_background(search: str) -> Response:
        """Return the ground below the grid from the orthophoto of the server, turned like the grid."""
        return Response(images.background(search), media_type="image/webp")

    @router.get(
        "/searches/{search}/photos/{number}/thumbnail",
        responses=_content("image/jpeg") | _errors(),
        response_class=Response,
    )
    def read_thumbnail(search: str, number: PhotoNumber) -> Response:
        """Return a photo, reduced."""
        return _image(images.thumbnail(search, number))

    @router.get(
        "/searches/{search}/photos/{number}/cell", responses=_content("image/png") | _errors(), response_class=Response
    )
    def read_cell(search: str, number: PhotoNumber) -> Response:
        """Return the part of a photo that shows its cell, turned like the grid."""
        return _image(images.cell(search, number), "image/png")

    return router


class _Images:
    """Reduced images for all watchers: each is read once, not once for every watcher."""

    def __init__(self, searches: SearchService, raster: Raster | None) -> None:
        self._searches, self._raster = searches, raster
        self.thumbnail = _read_once(self._read_thumbnail, MAX_THUMBNAILS)
        self.cell = _read_once(self._read_cell, MAX_CELLS)
        self.goal = _read_once(self._read_goal, MAX_THUMBNAILS)
        self.background = _read_once(self._read_background, MAX_BACKGROUNDS)

    def shows(self, active: ActiveSearch) -> bool:
        """Return True if the orthophoto shows some of the grid of a search."""
        plane = active.field.layout.plane
        if self._raster is None or plane is None:
            return False
        corners = background_corners(active.field.layout)
        return bool(Polygon(self._raster.border(plane)).intersects(Polygon(corners)))

    def _read_thumbnail(self, search: str, number: int) -> bytes:
        return _encode(read_photo(self._searches.photo(search, number)))

    def _read_cell(self, search: str, number: int) -> bytes:
        return encode_png(self._searches.glimpse(search, number))

    def _read_goal(self, search: str) -> bytes:
        def read(active: ActiveSearch, _: object) -> Pixels:
            return active.field.goal.picture if active.stored.picture is None else read_photo(active.stored.picture)

        return _encode(self._searches.inspect(search, read))

    def _read_background(self, search: str) -> bytes:
        active = self._searches.inspect(search, lambda active, _: active)
        if self._raster is None or not self.shows(active):
            problem = "The server has no orthophoto of this place"
            raise RequestError(404, problem, "Start it with --map and a GeoTIFF of the search area")
        layout = active.field.layout
        corners = background_corners(layout)
        sides = abs(corners[2] - corners[3]), abs(corners[3] - corners[0])
        width, height = (float((side**2).sum() ** 0.5) for side in sides)
        scale = BACKGROUND / max(width, height)
        size = max(1, round(height * scale)), max(1, round(width * scale))
        return _encode_transparent(self._raster.read_quad(layout.plane, corners, size).pixels)


def _read_once(read: Callable[P, bytes], size: int) -> Callable[P, bytes]:
    """Return a reader with a cache; who asks for an image while it is read waits for it."""
    lock, cached = threading.Lock(), lru_cache(size)(read)

    def read_once(*args: P.args, **kwargs: P.kwargs) -> bytes:
        with lock:
            return cached(*args, **kwargs)  # type: ignore[arg-type]  # the arguments are hashable

    return read_once


def _encode(pixels: Pixels) -> bytes:
    """Encode an image as JPEG, reduced to the size of a thumbnail."""
    image = Image.fromarray(pixels)
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def _encode_transparent(pixels: Pixels) -> bytes:
    """Encode an image as WebP, transparent where it is black, as outside the orthophoto."""
    buffer = io.BytesIO()
    alpha = np.where(pixels.any(axis=2, keepdims=True), np.uint8(255), np.uint8(0))
    Image.fromarray(np.concatenate([pixels, alpha], axis=2)).save(buffer, "WEBP", quality=80)
    return buffer.getvalue()


def _image(data: bytes, kind: str = "image/jpeg") -> Response:
    return Response(data, media_type=kind, headers=CACHED)


def _content(kind: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {kind: {}}}}


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Problem} for status in statuses or (400, 401, 404, 408, 413, 422, 503)}
