"""The MAVLink example flies a simulated vehicle to the find, over loopback, with the real protocol on both ends."""

import importlib
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from airloc.areas.layout import lay_out
from airloc.areas.raster import Raster
from field_files import ground, write_projected
from field_server import TOKEN, server_thread

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    """The example and its vehicle, imported as by a user's Python."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module("fly_mavlink"), importlib.import_module("simulated_vehicle")
    for name in ("fly_mavlink", "simulated_vehicle"):
        sys.modules.pop(name)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_the_vehicle_flies_to_a_photo_of_the_goal_which_is_located(tmp_path: Path, example, monkeypatch):
    fly_mavlink, simulated_vehicle = example
    raster = Raster(write_projected(tmp_path / "ortho.tif", ground(6)))
    plane = raster.plane()
    goal = tuple(lay_out(raster, None, 96.0).lat_lon((1, 4)).tolist())
    port = free_port()
    monkeypatch.setattr(simulated_vehicle, "TICK", 0.002)
    monkeypatch.setattr(fly_mavlink, "PHOTO_SIZE", (120, 160))
    vehicle = simulated_vehicle.SimulatedVehicle(port, (plane.lat, plane.lon), speedup=5000)
    vehicle.start()
    try:
        with server_thread(tmp_path / "searches.sqlite") as url:
            request = fly_mavlink.request_for(raster, goal, 96.0, "spiral", 40)
            station = fly_mavlink.GroundStation(f"udpout:127.0.0.1:{port}")
            client, camera = fly_mavlink.Client(url, TOKEN), fly_mavlink.simulated_camera(raster)
            state = fly_mavlink.search(station, client, camera, request)
        landed = wait_for(lambda: not vehicle.state.armed)
    finally:
        vehicle.stop()
    assert state["status"] == "found"
    found = plane.from_degrees((state["declared"]["lat"], state["declared"]["lon"]))
    assert abs(found - plane.from_degrees(goal)).max() < 16, "the goal is located"
    assert vehicle.state.photos == state["photos"] > 2
    assert landed, "the vehicle returns when the goal is found"
    assert (vehicle.state.lat, vehicle.state.lon, vehicle.state.height) == (*vehicle.home, 0.0)


def test_the_vehicle_flies_with_its_own_photos_and_returns_when_they_are_lost(tmp_path: Path, example, monkeypatch):
    fly_mavlink, simulated_vehicle = example
    raster = Raster(write_projected(tmp_path / "ortho.tif", ground(6)))
    plane, port, folder = raster.plane(), free_port(), tmp_path / "DCIM"
    folder.mkdir()
    (folder / "DJI_0000.JPG").write_bytes(b"from an earlier flight")
    monkeypatch.setattr(simulated_vehicle, "TICK", 0.002)
    monkeypatch.setattr(fly_mavlink, "PHOTO_SIZE", (120, 160))
    monkeypatch.setattr(fly_mavlink, "PHOTO_TIMEOUT", 0.5)
    vehicle = simulated_vehicle.SimulatedVehicle(port, (plane.lat, plane.lon), speedup=5000)
    own, wanted, taken = fly_mavlink.folder_camera(folder), fly_mavlink.simulated_camera(raster), []

    def copied(at: dict) -> bytes:
        taken.append(at)
        if len(taken) <= 3:  # the fourth photo never arrives
            (folder / f"DJI_{len(taken):04}.JPG").write_bytes(wanted(at))
        return own(at)

    vehicle.start()
    try:
        with server_thread(tmp_path / "searches.sqlite") as url:
            goal = tuple(lay_out(raster, None, 96.0).lat_lon((0, 5)).tolist())
            request = fly_mavlink.request_for(raster, goal, 96.0, "spiral", 40)
            station = fly_mavlink.GroundStation(f"udpout:127.0.0.1:{port}")
            with pytest.raises(SystemExit, match="No photo arrived"):
                fly_mavlink.search(station, fly_mavlink.Client(url, TOKEN), copied, request)
        assert wait_for(lambda: not vehicle.state.armed), "the vehicle returns when a photo is lost"
    finally:
        vehicle.stop()
    assert (vehicle.state.lat, vehicle.state.lon, len(taken)) == (*vehicle.home, 4)


def test_the_client_waits_for_a_server_that_starts_and_names_one_that_does_not(example):
    fly_mavlink, _ = example
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(SystemExit, match=f"{url}.*airloc serve.*--server"):
            fly_mavlink.Client(url, TOKEN, timeout=0.1).create_search({})

        def start() -> None:
            bound.listen()
            connection, _ = bound.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b'HTTP/1.1 201 Created\r\nContent-Length: 13\r\n\r\n{"id": "abc"}')

        timer = threading.Timer(0.3, start)
        timer.start()
        assert fly_mavlink.Client(url, TOKEN, timeout=20).create_search({}) == {"id": "abc"}
        timer.join()


@pytest.mark.parametrize(("name", "package"), [("fly_mavlink", "pymavlink"), ("make_ortho", "rasterio")])
def test_an_example_without_its_packages_names_the_extra(monkeypatch, name: str, package: str):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit, match=r"airloc\[field\]"):
        importlib.import_module(name)
