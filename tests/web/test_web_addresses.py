"""Addresses: taken before anything else is done, or refused in words for people."""

import pytest

from airloc.errors import AirlocError
from airloc.web import is_loopback, take_address, url_of


def test_any_free_port_is_taken_and_told():
    with take_address("127.0.0.1", 0) as taken:
        assert url_of(taken) == f"http://127.0.0.1:{taken.getsockname()[1]}/"


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("127.0.0.1", 70000, "no port 70000"),
        ("127.0.0.1", -1, "no port -1"),
        ("192.0.2.1", 0, "Cannot listen on 192.0.2.1"),
        ("no.such.host.invalid", 0, "Cannot listen on no.such"),
        ("a" * 70 + ".example", 0, "Cannot listen on aaa"),
        ("." + "ä" * 70, 0, "Cannot listen on"),
    ],
)
def test_an_address_that_is_none_is_an_error_for_people(host: str, port: int, said: str):
    with pytest.raises(AirlocError, match=said):
        take_address(host, port)


def test_loopback_is_this_machine_alone():
    assert all(is_loopback(host) for host in ("127.1.2.3", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "192.0.2.1", "example.org"))
