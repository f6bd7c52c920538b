"""`airloc serve`: the live searcher over HTTP, for an onboard computer or a ground station."""

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.console import Console

from airloc.agents.registry import DEFAULT_AGENT, make_agent
from airloc.cli.console import need, say
from airloc.errors import AirlocError

if TYPE_CHECKING:
    from airloc.areas.raster import Raster

TOKEN = "AIRLOC_TOKEN"
MIN_TOKEN = 8


@dataclass(frozen=True)
class ServeOptions:
    """Run searches over HTTP: clients post photos and receive the next waypoint; people watch on a live map."""

    store: Path = Path("searches.sqlite")
    """File that stores all searches; a restarted server continues them."""
    recover: Path | None = None
    """New file to which the readable searches of a damaged store are copied; the server then uses that file."""
    host: str = "127.0.0.1"
    """Address to listen on; the default accepts connections from this machine only."""
    port: int = 8470
    """Port to listen on; 0 for any free port."""
    token_file: Path | None = None
    """File with the token that clients must send; by default $AIRLOC_TOKEN, or a new random token."""
    agent: str = DEFAULT_AGENT
    """Agent of searches whose request does not name one."""
    map: Path | None = None
    """Orthophoto of the ground, a GeoTIFF: the live map shows it below the grid, and searches may match their goal
    against it. By default a plain grid."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc serve`."""
    options = tyro.cli(ServeOptions, args=arguments, prog="airloc serve")
    need("field", "fastapi", "uvicorn", "rasterio", "pyproj", "shapely")  # the extra field includes web
    run(options)


def run(options: ServeOptions) -> None:
    """Check the options, open the store and serve until stopped."""
    import torch

    from airloc.missions.recovery import recover_store
    from airloc.missions.server import make_app, run_server
    from airloc.missions.service import SearchService, valid_settings
    from airloc.missions.store import SearchStore
    from airloc.web import bind, url_of

    token, is_new = _token(options)
    background = None if options.map is None else _open_map(options.map)
    progress = Console(stderr=True)
    with bind(options.host, options.port) as bound:
        with progress.status(f"loading the agent {options.agent}"):
            make_agent(options.agent)  # raises an error for an unknown agent
            torch.set_num_threads(1)
        path = options.recover or options.store
        if options.recover is not None:
            with progress.status(f"reading the store {options.store}"):
                count, photos = recover_store(options.store, options.recover, valid_settings)
            found = f"{count} search{'es' * (count != 1)} with {photos} photo{'s' * (photos != 1)}"
            say(f"Recovered {found} from {options.store}")
        with progress.status(f"checking the store {path}"):
            store = SearchStore(path)
            searches = SearchService(store, options.agent, options.map)
            try:
                searches.check_store()
            except BaseException:
                store.close()
                raise

        def announce() -> None:
            url = url_of(bound).rstrip("/")
            say(f"Listening on {url}, searches in {path}; open {url}/ for the live map")
            if is_new:
                print(f"Token: {token}", flush=True)

        try:
            run_server(make_app(searches, token, background), bound, announce)
        finally:
            store.close()


def _open_map(path: Path) -> "Raster":
    """Open the orthophoto of the map."""
    from airloc.areas.raster import Raster

    raster = Raster(path)
    if not raster.georeferenced:
        problem = f"The map {path} has no georeference, so it cannot be placed below a grid"
        raise AirlocError(problem, "Georeference it first, or leave out --map")
    return raster


def _token(options: ServeOptions) -> tuple[str, bool]:
    """Return the token, and True if it is new."""
    if options.token_file is not None:
        try:
            token = options.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise AirlocError(f"Cannot read the token file {options.token_file}: {error}", "Give a text file") from None
    else:
        token = os.environ.get(TOKEN, "").strip()
        if not token:
            return secrets.token_urlsafe(18), True
    if len(token) < MIN_TOKEN or not token.isascii():
        problem = f"The token has fewer than {MIN_TOKEN} ASCII characters"
        raise AirlocError(problem, f"Choose a longer token, or unset {TOKEN}")
    return token, False
