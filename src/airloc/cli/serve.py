"""`airloc serve`: the live searcher over HTTP, for the drone's computer or the ground station."""

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from airloc.agents.registry import DEFAULT_AGENT
from airloc.cli.console import need
from airloc.errors import AirlocError

TOKEN = "AIRLOC_TOKEN"
MIN_TOKEN = 8


@dataclass(frozen=True)
class Serve:
    """Lead searches over HTTP: clients post photos and are told where to go next."""

    store: Path = Path("searches.sqlite")
    """The file that keeps all searches; a server that is started again goes on with them."""
    host: str = "127.0.0.1"
    """The address to listen on; other machines reach the server only when this is not the default."""
    port: int = 8470
    """The port to listen on; 0 for any that is free."""
    token_file: Path | None = None
    """A file with the token that clients must send; $AIRLOC_TOKEN unless given, and a new one without both."""
    agent: str = DEFAULT_AGENT
    """Who leads where a client names nobody."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc serve`."""
    options = tyro.cli(Serve, args=arguments, prog="airloc serve")
    need("field", "fastapi", "uvicorn", "pyproj", "shapely", "rasterio")
    run(options)


def run(options: Serve) -> None:
    """Serve until stopped."""
    import torch

    from airloc.agents.registry import make_agent
    from airloc.missions.server import listen, make_app
    from airloc.missions.service import Searches
    from airloc.missions.store import Store

    token, made = _token(options)
    make_agent(options.agent)  # an unknown one is told now, not to the first client
    torch.set_num_threads(1)
    store = Store(options.store)
    console = Console()
    try:
        app = make_app(Searches(store, options.agent), token)

        def say(address: str) -> None:
            console.print(f"Listening on {address}, searches in {options.store}", soft_wrap=True, highlight=False)
            if made:
                console.print(f"Token: {token}", soft_wrap=True, highlight=False)

        listen(app, options.host, options.port, say)
    finally:
        store.close()


def _token(options: Serve) -> tuple[str, bool]:
    """The token, and whether it is a new one."""
    if options.token_file is not None:
        try:
            token = options.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise AirlocError(f"Cannot read the token from {options.token_file}: {error}", "Give a text file") from None
    else:
        token = os.environ.get(TOKEN, "").strip()
        if not token:
            return secrets.token_urlsafe(18), True
    if len(token) < MIN_TOKEN or not token.isascii():
        raise AirlocError("The token is shorter than 8 plain characters", f"Write a longer one, or unset {TOKEN}")
    return token, False
