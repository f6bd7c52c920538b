"""The application: addresses that other machines can reach need a flag; `import airloc` loads no web framework."""

import subprocess
import sys

import pytest

from airloc.errors import AirlocError
from airloc.game import bind
from airloc.web import url_of


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_an_address_that_other_machines_can_reach_needs_public(host: str):
    with pytest.raises(AirlocError, match="--public"):
        bind(host, 0, public=False)


def test_a_public_server_is_reached_as_localhost():
    with bind("0.0.0.0", 0, public=True) as bound:
        assert url_of(bound).startswith("http://localhost:")


def test_importing_airloc_loads_neither_the_game_nor_a_web_framework():
    code = "import sys, airloc, airloc.cli.main; print([m for m in sys.modules if m.split('.')[0] in {'fastapi', 'starlette', 'uvicorn'} or m.startswith(('airloc.game', 'airloc.web'))])"  # noqa: E501
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
