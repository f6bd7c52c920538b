"""The search server: create searches, post photos and receive the next waypoint over HTTP, and watch them on a map.

Every request except `GET /health` and the page itself needs the header `Authorization: Bearer TOKEN`, or the cookie of
a browser that has signed in with `POST /session`. Errors are JSON objects with the
keys `problem` and `cure`. `GET /openapi.json` describes all requests and responses.
"""

import hmac
import socket
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.types import Scope

from airloc import __version__
from airloc.areas.raster import Raster
from airloc.errors import AirlocError
from airloc.missions.feed import SearchFeed
from airloc.missions.images import PHOTO_TYPES, photo_type
from airloc.missions.live import STATIC, is_session, live_routes, page_routes
from airloc.missions.messages import (
    BeliefMap,
    CandidateList,
    Health,
    NewVehicle,
    PhotoQuery,
    PhotoResult,
    RequestError,
    SearchList,
    SearchState,
    Verdict,
    error_responses,
)
from airloc.missions.refusals import explain
from airloc.missions.service import SearchService
from airloc.missions.settings import NewSearch
from airloc.missions.store import StoreError
from airloc.missions.views import view_of
from airloc.web import BodyLimitMiddleware, SameOriginMiddleware, SecurityHeadersMiddleware, make_server, serve

MAX_BYTES = 40_000_000
MAX_CONNECTIONS = 1000
"""Open connections; every watcher of a map has one."""
KEEP_ALIVE = 15
"""Seconds that an idle connection stays open."""
PHOTO_BODY = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in ("image/jpeg", "image/png")}
        | {"multipart/form-data": {"schema": {"type": "object", "properties": {"photo": {"format": "binary"}}}}},
    }
}
PHOTO_FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {} for kind in (*PHOTO_TYPES.values(), "application/octet-stream")}}
}
PhotoNumber = Annotated[int, Path(description="number of the photo, from 1")]
SENT_FILES = {"photos": "photo", "orthophoto": "orthophoto"}
"""What the body of a request is, by the end of its path."""
ORIGIN_ERROR = {"problem": "The request comes from a page of another site", "cure": "Open the map of this server"}


def make_app(searches: SearchService, token: str, background: Raster | None = None) -> FastAPI:
    """Return the web application of a search service.

    Args:
        searches: The searches.
        token: The token that clients must send.
        background: An orthophoto to show on the map.
    """
    description = (__doc__ or "").strip()
    app = FastAPI(title="airloc searcher", version=__version__, description=description, docs_url=None, redoc_url=None)
    app.add_middleware(BodyLimitMiddleware, max_bytes=MAX_BYTES, errors=_body_error)
    app.add_middleware(SameOriginMiddleware, error=ORIGIN_ERROR)
    app.add_middleware(SecurityHeadersMiddleware)
    _handle_errors(app)
    feed = SearchFeed(lambda search: searches.inspect(search, view_of).model_dump_json())
    searches.on_change, app.state.feed = feed.notify, feed

    @app.get("/health", tags=["server"])
    def health() -> Health:
        """Return the version of the server."""
        return Health(airloc=__version__)

    signed_in = [Depends(_require(token))]
    app.include_router(_search_routes(searches), dependencies=signed_in)
    app.include_router(live_routes(searches, feed, background), dependencies=signed_in)
    app.include_router(page_routes(token))
    app.mount("/static", STATIC)
    return app


def _body_error(scope: Scope, status: int) -> dict[str, str]:
    """Return the content of the response to a request that is too slow or too large."""
    if status == 408:
        return {"problem": "The request did not arrive in time", "cure": "Send it again over a better link"}
    sent = SENT_FILES.get(scope["path"].rpartition("/")[2], "request with all its files")
    limit = f"{MAX_BYTES / 1e6:g} MB"
    return {"problem": f"The {sent} is larger than {limit}", "cure": f"Reduce it to at most {limit}"}


def run_server(app: FastAPI, bound: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve an application on a bound socket until interrupted; `on_ready` runs once it accepts connections."""
    server = make_server(app, max_connections=MAX_CONNECTIONS, keep_alive=KEEP_ALIVE, on_shutdown=app.state.feed.close)
    serve(server, bound, on_ready=on_ready)


def _search_routes(searches: SearchService) -> APIRouter:
    router = APIRouter(prefix="/searches", tags=["searches"])

    @router.get("", responses=_errors())
    def list_searches() -> SearchList:
        """List all searches, newest first."""
        return searches.list_searches()

    @router.post("", status_code=201, responses=_errors())
    def create_search(request: NewSearch) -> SearchState:
        """Create a search; the response names the first cell to photograph."""
        return searches.create(request)

    @router.get("/{search}", responses=_errors(404))
    def read_search(search: str) -> SearchState:
        """Return the state of a search and the next cell to photograph."""
        return searches.state(search)

    @router.delete("/{search}", responses=_errors(404))
    def cancel_search(search: str) -> SearchState:
        """Cancel a search."""
        return searches.cancel(search)

    @router.get("/{search}/belief", responses=_errors(404))
    def read_belief(search: str) -> BeliefMap:
        """Return the probabilities of all cells."""
        return searches.belief(search)

    @router.post("/{search}/photos", responses=_errors(404, 409), openapi_extra=PHOTO_BODY)
    async def post_photo(search: str, request: Request, position: Annotated[PhotoQuery, Query()]) -> PhotoResult:
        """Post a photo as the body or as a file of a form; the response names the next cell to photograph."""
        return await run_in_threadpool(searches.observe, search, await _photo_of(request), position)

    @router.post("/{search}/vehicles", responses=_errors(404, 409))
    def add_vehicle(search: str, request: NewVehicle) -> SearchState:
        """Let a vehicle join the search; the response has its first cell to photograph."""
        return searches.join(search, request)

    @router.delete("/{search}/vehicles/{vehicle}", responses=_errors(404))
    def remove_vehicle(search: str, vehicle: str) -> SearchState:
        """Let a vehicle leave the search; its next cell is free for the others."""
        return searches.leave(search, vehicle)

    @router.get("/{search}/candidates", responses=_errors(404))
    def list_candidates(search: str) -> CandidateList:
        """List all photos, the one that looks most like the goal first."""
        return searches.candidates(search)

    @router.get("/{search}/photos/{number}", responses=PHOTO_FILE | _errors(404), response_class=Response)
    def read_photo(search: str, number: PhotoNumber) -> Response:
        """Return the file of a photo as it was sent."""
        file = searches.photo(search, number)
        return Response(
            file,
            media_type=photo_type(file) or "application/octet-stream",
            headers={"X-Content-Type-Options": "nosniff"},
        )

    @router.post("/{search}/photos/{number}/verdict", responses=_errors(404, 409))
    def post_verdict(search: str, number: PhotoNumber, verdict: Verdict) -> SearchState:
        """Confirm or reject a photo; the response has the next cell to photograph."""
        return searches.judge(search, number, verdict.goal)

    return router


async def _photo_of(request: Request) -> bytes:
    """Return the photo of a request: its body, or the first file of a form as `curl -F photo=@photo.jpg` sends it."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return await request.body()
    try:
        async with request.form(max_files=1, max_fields=20) as form:
            for part in form.values():
                if isinstance(part, UploadFile):
                    return await part.read()
    except HTTPException as error:  # a damaged form, or more than one file
        raise RequestError(422, f"The form is not valid: {error.detail}", "Send one photo, as the body") from None
    raise RequestError(422, "The form has no file", "Send the photo as in curl -F photo=@photo.jpg")


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return error_responses(400, 401, 408, 413, 422, 503, *statuses)


def _require(token: str) -> Callable[..., Awaitable[None]]:
    """Return the dependency that rejects requests without the token."""
    scheme = HTTPBearer(auto_error=False, description="the token of the server")

    async def check(
        request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Security(scheme)]
    ) -> None:
        if credentials is None:
            valid = is_session(request, token)
        else:
            valid = hmac.compare_digest(credentials.credentials.encode(), token.encode())
        if not valid:
            raise RequestError(401, "The request has no valid token", "Send the header 'Authorization: Bearer TOKEN'")

    return check


def _handle_errors(app: FastAPI) -> None:
    """Respond to every error with a problem and a cure."""

    @app.exception_handler(AirlocError)
    def airloc_error(request: Request, error: AirlocError) -> JSONResponse:
        status = error.status if isinstance(error, RequestError) else 503 if isinstance(error, StoreError) else 422
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
        return JSONResponse({"problem": error.problem, "cure": error.cure}, status, headers)

    @app.exception_handler(RequestValidationError)
    def invalid_request(request: Request, error: RequestValidationError) -> JSONResponse:
        problem, cure = explain(error.errors()[0], request.url.path)
        return JSONResponse({"problem": problem, "cure": cure}, 422)

    @app.exception_handler(HTTPException)
    def http_error(request: Request, error: HTTPException) -> JSONResponse:
        content = {"problem": str(error.detail), "cure": "See /openapi.json"}
        return JSONResponse(content, error.status_code, error.headers)
