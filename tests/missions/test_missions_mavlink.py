"""The MAVLink example flies a simulated vehicle to the find, over loopback, with the real protocol on both ends."""

import importlib
import socket
import sys
import threading
from pathlib import Path

import pytest

from airloc.areas.geotiff import Raster
from airloc.areas.layout import lay_out
from field_files import ground, write_projected
from field_server import TOKEN, Server

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    """The example and its vehicle, imported as a user's Python would."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module("fly_mavlink"), importlib.import_module("simulated_vehicle")
    for name in ("fly_mavlink", "simulated_vehicle"):
        sys.modules.pop(name)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_vehicle_is_flown_to_the_find(tmp_path: Path, example, capsys):
    fly_mavlink, simulated_vehicle = example
    raster = Raster(write_projected(tmp_path / "ortho.tif", ground(6)))
    layout = lay_out(raster, None, 96.0)
    plane = raster.plane()
    server = Server(tmp_path / "searches.sqlite")
    port = free_port()
    vehicle = simulated_vehicle.SimulatedVehicle(port, (plane.lat, plane.lon), hurry=400)
    vehicle.start()
    try:
        goal = tuple(layout.degrees((1, 4)).tolist())
        begin = fly_mavlink.request_for(raster, goal, 96.0, "spiral", 40)
        station = fly_mavlink.GroundStation(f"udpout:127.0.0.1:{port}")
        state = fly_mavlink.search(station, fly_mavlink.Client(server.url, TOKEN), raster, begin)
    finally:
        vehicle.stop()
        server.kill()
    assert state["status"] == "found"
    found = plane.from_degrees((state["declared"]["lat"], state["declared"]["lon"]))
    assert abs(found - plane.from_degrees(goal)).max() < 48, "the vehicle stands over the goal"
    here = plane.from_degrees((vehicle.state.lat, vehicle.state.lon))
    assert abs(here - found).max() < 2
    assert vehicle.state.height > state["height_m"]
    assert vehicle.state.pictures == state["photos"]
    assert vehicle.state.pictures > 3


def test_a_server_that_is_still_starting_is_waited_for_and_none_is_told_of_in_words(example):
    fly_mavlink, _ = example
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SystemExit, match=r"No server answers at .* Start `airloc serve`"):
            fly_mavlink.Client(url, TOKEN, patience=0.1).begin({})

        def start() -> None:
            taken.listen()
            connection, _ = taken.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b'HTTP/1.1 201 Created\r\nContent-Length: 13\r\n\r\n{"id": "abc"}')

        timer = threading.Timer(0.3, start)
        timer.start()
        assert fly_mavlink.Client(url, TOKEN, patience=20).begin({}) == {"id": "abc"}
        timer.join()
