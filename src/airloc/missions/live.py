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
| GET /searches/ID/background                 | the ground below the grid, if there is an orthophoto       |
| PUT /searches/ID/orthophoto                 | send an orthophoto of the search area, a GeoTIFF           |
| GET /searches/ID/photos/N/thumbnail         | a photo, reduced                                           |
| GET /searches/ID/photos/N/image             | a photo in a format that browsers show                     |
| GET /searches/ID/photos/N/cell              | the part of a photo that shows its cell                    |
"""

import hashlib
import hmac
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection

from airloc.areas.raster import Raster
from airloc.missions.feed import SearchFeed
from airloc.missions.images import PHOTO_TYPES, SearchImages, browser_image
from airloc.missions.messages import Message, RequestError, SearchState, error_responses
from airloc.missions.priors import subjects
from airloc.missions.service import SearchService
from airloc.missions.team import MAX_VEHICLES
from airloc.missions.views import SearchGeometry, SearchView, geometry_of, view_of
from airloc.web import PRIVATE, cookie_name, set_cookie

STATIC = StaticFiles(packages=[("airloc.missions", "static"), ("airloc", "static")])
"""The files of the page."""
CACHED = {"cache-control": "private, max-age=86400"}
"""Header of images that never change."""
STREAM = PRIVATE | {"x-accel-buffering": "no"}
"""Headers of a stream, which proxies must not hold back."""

ORTHOPHOTO_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
ERRORS = error_responses(400, 401, 404, 408, 413, 422, 503)
"""Errors of a request about a search."""
PhotoNumber = Annotated[int, Path(description="number of the photo, from 1")]


class SessionRequest(Message):
    """Request that signs in."""

    token: Annotated[str, Field(max_length=1000, description="the token of the server")]


class FormOptions(Message):
    """What the form of a new search offers."""

    subjects: Annotated[list[str], Field(description="categories of lost persons")]
    orthophoto: Annotated[bool, Field(description="whether the server has an orthophoto to match goals with")]
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

    @router.post("/session", status_code=204, tags=["server"], responses=error_responses(400, 401, 408, 413, 422))
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
    images = SearchImages(searches, background)

    @router.get("/options", responses=error_responses(401, 408, 413))
    def read_options() -> FormOptions:
        """Return what the form of a new search offers."""
        return FormOptions(subjects=list(subjects()), orthophoto=background is not None, max_drones=MAX_VEHICLES)

    @router.get("/searches/{search}/map", responses=ERRORS)
    def read_map(search: str) -> SearchGeometry:
        """Return the grid of a search, its outline and the colours of the map."""
        return searches.inspect(search, lambda active, _: geometry_of(active, images.shows(active)))

    @router.get("/searches/{search}/view", responses=ERRORS)
    def read_view(search: str) -> SearchView:
        """Return everything that changes during a search."""
        return searches.inspect(search, view_of)

    @router.get(
        "/searches/{search}/events",
        responses=_content("text/event-stream") | ERRORS,
        response_class=StreamingResponse,
    )
    async def read_events(search: str) -> StreamingResponse:
        """Return the view now and after every change, as server-sent events of the type `view`."""
        await run_in_threadpool(searches.require, search)
        return StreamingResponse(feed.events(search), media_type="text/event-stream", headers=STREAM)

    @router.get("/searches/{search}/goal", responses=_content("image/jpeg") | ERRORS, response_class=Response)
    async def read_goal(search: str) -> Response:
        """Return the goal image, reduced."""
        return _image(await images.goals.get(search))

    @router.get("/searches/{search}/background", responses=_content("image/webp") | ERRORS, response_class=Response)
    async def read_background(search: str) -> Response:
        """Return the ground below the grid from the orthophoto of the search or of the server, turned like the grid."""
        return Response(await images.backgrounds.get(search), media_type="image/webp")

    @router.put("/searches/{search}/orthophoto", responses=ERRORS, openapi_extra=ORTHOPHOTO_BODY)
    async def put_orthophoto(search: str, request: Request) -> SearchState:
        """Show an orthophoto, the GeoTIFF in the body, below the grid of a search."""
        state = await run_in_threadpool(searches.set_orthophoto, search, await request.body())
        images.backgrounds.forget(search)
        return state

    @router.get(
        "/searches/{search}/photos/{number}/thumbnail",
        responses=_content("image/jpeg") | ERRORS,
        response_class=Response,
    )
    async def read_thumbnail(search: str, number: PhotoNumber) -> Response:
        """Return a photo, reduced."""
        return _image(await images.thumbnails.get(search, number))

    @router.get(
        "/searches/{search}/photos/{number}/image",
        responses=_content(*PHOTO_TYPES.values()) | ERRORS,
        response_class=Response,
    )
    def read_image(search: str, number: PhotoNumber) -> Response:
        """Return a photo as it was sent, or as JPEG if it is neither JPEG nor PNG."""
        return _image(*browser_image(searches.photo(search, number)))

    @router.get(
        "/searches/{search}/photos/{number}/cell", responses=_content("image/png") | ERRORS, response_class=Response
    )
    async def read_cell(search: str, number: PhotoNumber) -> Response:
        """Return the part of a photo that shows its cell, turned like the grid."""
        return _image(await images.cells.get(search, number), "image/png")

    return router


def _image(data: bytes, kind: str = "image/jpeg") -> Response:
    return Response(data, media_type=kind, headers=CACHED)


def _content(*kinds: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {kind: {} for kind in kinds}}}
