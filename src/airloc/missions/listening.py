"""Listening for clients with uvicorn, within bounds."""

from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from airloc.web.addresses import take_address, url_of
from airloc.web.patience import ImpatientProtocol

CONNECTIONS = 128


def listen(app: ASGIApp, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve an application until interrupted; `on_ready` is called with the address."""
    with take_address(host, port) as taken:
        config = uvicorn.Config(
            app,
            http=ImpatientProtocol,
            log_level="warning",
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=5,
        )
        on_ready(url_of(taken).rstrip("/"))
        uvicorn.Server(config).run(sockets=[taken])
