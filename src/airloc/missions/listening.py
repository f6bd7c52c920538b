"""Listening for clients with uvicorn, within bounds."""

import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from airloc.errors import AirlocError
from airloc.missions.bounds import ImpatientProtocol

CONNECTIONS = 128


def listen(app: ASGIApp, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve an application until interrupted; `on_ready` is called with the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the port must lie between 0 and 65535"
        raise AirlocError(f"Cannot listen on {host} port {port}: {reason}", "Give another --host or --port") from error
    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        log_level="warning",
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=5,
    )
    shown = f"[{host}]" if ":" in host else host
    on_ready(f"http://{shown}:{listener.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[listener])
