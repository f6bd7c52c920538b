"""What a request to the search server may cost: bytes and seconds."""

import hmac
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from airloc import __version__
from airloc.errors import AirlocError
from airloc.missions.messages import (
    BeliefMap,
    Health,
    Latitude,
    Longitude,
    Names,
    NewSearch,
    Observed,
    Problem,
    SearchState,
)
from airloc.missions.service import PhotoPlace, RefusedError, Searches
from airloc.web import BodyLimitMiddleware, bind, make_server, serve, url_of

MAX_BYTES = 40_000_000


_BODY_ERRORS = {
    408: {"problem": "The request did not arrive in time", "cure": "Send it again over a better link"},
    413: {"problem": f"The request is larger than {MAX_BYTES / 1e6:.0f} MB", "cure": "Send a smaller image"},
}

CONNECTIONS = 128


def listen(app: ASGIApp, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve an application until interrupted; `on_ready` is called with the address."""
    with bind(host, port) as bound:
        on_ready(url_of(bound).rstrip("/"))
        serve(make_server(app, max_connections=CONNECTIONS, keep_alive=15), bound)


# ---------- The live searcher over HTTP: begin a search, post photos, be told where to go next, cancel.
# ~
# ~ Every request but `/health` carries the token: `Authorization: Bearer TOKEN`. The description of all requests is at
# ~ `/openapi.json`; there is no page that would fetch scripts from elsewhere to show it. Errors are
# ~ `{"problem": ..., "cure": ...}`.

PHOTO_BODY = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in ("image/jpeg", "image/png")},
    }
}


def _answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Problem} for status in (400, 401, 408, 413, 422, *statuses)}


def make_app(searches: Searches, token: str) -> FastAPI:
    """Make the application over some searches; requests need the token."""
    app = FastAPI(
        title="airloc searcher", version=__version__, description=__doc__ or "", docs_url=None, redoc_url=None
    )
    app.add_middleware(BodyLimitMiddleware, max_bytes=MAX_BYTES, errors=_BODY_ERRORS)
    _explain_errors(app)
    guard = [Depends(_guard(token))]

    @app.get("/health", tags=["server"])
    def health() -> Health:
        """Say that the server is there."""
        return Health(airloc=__version__)

    @app.get("/searches", dependencies=guard, responses=_answers(), tags=["searches"])
    def list_searches() -> Names:
        """List all searches, the newest first."""
        return Names(searches=searches.names())

    @app.post("/searches", status_code=201, dependencies=guard, responses=_answers(), tags=["searches"])
    def create_search(wanted: NewSearch) -> SearchState:
        """Begin a search; the answer says where the first photo is wanted."""
        return searches.create(wanted)

    @app.get("/searches/{search}", dependencies=guard, responses=_answers(404), tags=["searches"])
    def read_search(search: str) -> SearchState:
        """Say how a search stands and where the next photo is wanted."""
        return searches.state(search)

    @app.delete("/searches/{search}", dependencies=guard, responses=_answers(404), tags=["searches"])
    def cancel_search(search: str) -> SearchState:
        """Cancel a search."""
        return searches.cancel(search)

    @app.get("/searches/{search}/belief", dependencies=guard, responses=_answers(404), tags=["searches"])
    def read_belief(search: str) -> BeliefMap:
        """Give the probability of every cell."""
        return searches.belief(search)

    @app.post(
        "/searches/{search}/photos",
        dependencies=guard,
        responses=_answers(404, 409),
        openapi_extra=PHOTO_BODY,
        tags=["searches"],
    )
    async def post_photo(
        search: str,
        request: Request,
        lat: Annotated[Latitude, Query(description="where the photo was taken", allow_inf_nan=False)],
        lon: Annotated[Longitude, Query(description="where the photo was taken", allow_inf_nan=False)],
        height_m: Annotated[
            float | None, Query(gt=0, le=20_000, description="height above the ground", allow_inf_nan=False)
        ] = None,
        heading: Annotated[
            float | None, Query(ge=-360, le=360, description="of the photo's upper edge", allow_inf_nan=False)
        ] = None,
    ) -> Observed:
        """Post a photo as the body; the answer says where the next one is wanted."""
        data = await request.body()
        return await run_in_threadpool(searches.observe, search, data, PhotoPlace(lat, lon, height_m, heading))

    return app


def _guard(token: str) -> Any:
    """Refuse requests without the token."""
    scheme = HTTPBearer(auto_error=False, description="the token that the server was started with")

    def check(given: Annotated[HTTPAuthorizationCredentials | None, Security(scheme)]) -> None:
        if given is None or not hmac.compare_digest(given.credentials.encode(), token.encode()):
            raise RefusedError(
                401, "The request carries no valid token", "Send the header 'Authorization: Bearer TOKEN'"
            )

    return check


def _explain_errors(app: FastAPI) -> None:
    """Answer everything that goes wrong with a problem and a cure."""

    @app.exception_handler(AirlocError)
    def explain(request: Request, error: AirlocError) -> JSONResponse:
        status = error.status if isinstance(error, RefusedError) else 422
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
        return JSONResponse({"problem": error.problem, "cure": error.cure}, status, headers)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return JSONResponse({"problem": f"{where}: {first['msg']}", "cure": "See /openapi.json"}, 422)

    @app.exception_handler(HTTPException)
    def unknown(request: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse(
            {"problem": str(error.detail), "cure": "See /openapi.json"}, error.status_code, error.headers
        )
