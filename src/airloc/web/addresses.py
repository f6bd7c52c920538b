"""Addresses that servers listen on."""

import ipaddress
import socket

from airloc.errors import AirlocError


def take_address(host: str, port: int) -> socket.socket:
    """Take an address, before anything else is done; port 0 takes any that is free.

    Raises:
        AirlocError: When it cannot be taken.
    """
    if not 0 <= port <= 65535:
        raise AirlocError(f"There is no port {port}", "Give a port from 1 to 65535, or 0 for any that is free")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        taken = socket.socket(family, kind, protocol)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
    except (OSError, UnicodeError) as error:  # a name that no network knows may not even be text for one
        reason = getattr(error, "strerror", None) or error
        cure = "Give another --port or --host; port 0 takes any that is free"
        raise AirlocError(f"Cannot listen on {host}, port {port}: {reason}", cure) from error
    return taken


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def url_of(taken: socket.socket) -> str:
    """Where a client on this machine finds the server."""
    host, port = taken.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"
