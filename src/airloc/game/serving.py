"""Running the server: the address, the port, the browser, the end."""

import gc
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from fastapi import FastAPI

from airloc.errors import AirlocError
from airloc.web.addresses import is_loopback, take_address
from airloc.web.patience import ImpatientProtocol

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def listen(host: str, port: int, *, public: bool) -> socket.socket:
    """Take an address, before anything else is done.

    Args:
        host: The address; anything but loopback only where `public` says so.
        port: The port; 0 takes any that is free.
        public: Whether others than this machine may reach it.

    Raises:
        AirlocError: When the address cannot be taken.
    """
    if not public and not is_loopback(host):
        raise AirlocError(f"The address {host} can be reached from other machines", "Add --public if that is meant")
    return take_address(host, port)


def serve(app: FastAPI, taken: socket.socket, *, on_ready: Callable[[], None] = lambda: None) -> None:
    """Serve until interrupted, which is how a server ends; requests under way are answered first."""
    server = make_server(app)
    ready = threading.Thread(target=_when_started, args=(server, on_ready), daemon=True)
    ready.start()
    # What the start left behind stays: the collector need not go through it while people wait.
    gc.collect()
    gc.freeze()
    with suppress(KeyboardInterrupt):
        server.run(sockets=[taken])


def make_server(app: FastAPI) -> uvicorn.Server:
    """The server, quiet: no addresses of people are written anywhere."""
    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=True,  # of a proxy on this machine alone, which is uvicorn's default
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,
        limit_concurrency=2000,
        h11_max_incomplete_event_size=16 * 1024,
    )
    return uvicorn.Server(config)


def open_browser(url: str) -> None:
    """Open a page in the person's browser; without one nothing happens."""
    webbrowser.open(url)


def _when_started(server: uvicorn.Server, then: Callable[[], None]) -> None:
    while not server.started:
        if server.should_exit:
            return
        time.sleep(0.01)
    then()
