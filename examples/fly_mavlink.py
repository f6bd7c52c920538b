"""Fly a vehicle to a find: `airloc serve` says where to go, MAVLink takes the vehicle there, photos go back.

    airloc serve --store searches.sqlite                       # in one terminal; prints the token
    python examples/fly_mavlink.py --area ortho.tif --goal 59.3573,15.0045 --cell 96 --token TOKEN

The vehicle is simulated on loopback, and its photos are cut from the image, which stands for the world. To fly a real
one, give its link with `--link` (such as udpout:192.168.1.10:14550) and put the camera's photos in `take_photo`.
"""

import argparse
import base64
import io
import json
import math
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

os.environ["MAVLINK20"] = "1"  # read when pymavlink is imported
import numpy as np
from PIL import Image
from pymavlink import mavutil
from pymavlink.dialects.v20 import common as mav

from airloc.areas.geotiff import Plane, Raster
from airloc.missions.flight import FRAME_RELATIVE, TAKE_PICTURE, TAKEOFF, WAYPOINT, Camera, Item

WAIT = 10.0
"""Seconds to wait for an answer of the vehicle before asking again."""
TRIES = 3


class GroundStation:
    """The other end of the link: uploads missions, starts them, hears of pictures.

    Args:
        link: What pymavlink connects to, such as udpout:127.0.0.1:14550.
    """

    def __init__(self, link: str) -> None:
        self.link = mavutil.mavlink_connection(link, source_system=255, dialect="common")
        for _ in range(TRIES):
            self.link.mav.heartbeat_send(mav.MAV_TYPE_GCS, mav.MAV_AUTOPILOT_INVALID, 0, 0, 0)
            if self.link.wait_heartbeat(timeout=WAIT / TRIES) is not None:
                return
        raise SystemExit(f"No vehicle answers on {link}")

    def fly(self, items: list[Item]) -> mav.MAVLink_camera_image_captured_message:
        """Upload a mission, start it, and wait for the picture that it takes."""
        self._upload(items)
        self._command(mav.MAV_CMD_COMPONENT_ARM_DISARM, 1)
        self._command(mav.MAV_CMD_MISSION_START, 0, len(items) - 1)
        return self._expect("CAMERA_IMAGE_CAPTURED", 60 * WAIT)

    def _upload(self, items: list[Item]) -> None:
        """Offer a mission and hand over the items that the vehicle asks for, until it accepts."""
        send, target = self.link.mav, (self.link.target_system, self.link.target_component)
        send.mission_count_send(*target, len(items))
        while (
            message := self._expect(["MISSION_REQUEST_INT", "MISSION_REQUEST", "MISSION_ACK"])
        ).get_type() != "MISSION_ACK":
            item = items[message.seq]
            lat, lon = round(item.lat * 1e7), round(item.lon * 1e7)
            send.mission_item_int_send(
                *target, message.seq, item.frame, item.command, message.seq == 0, 1, *item.params, lat, lon, item.height
            )
        if message.type != mav.MAV_MISSION_ACCEPTED:
            raise SystemExit(f"The vehicle refuses the mission: {message.type}")

    def _command(self, command: int, *params: float) -> None:
        padded = [*params, *[0.0] * (7 - len(params))]
        for attempt in range(TRIES):
            target = self.link.target_system, self.link.target_component
            self.link.mav.command_long_send(*target, command, attempt, *padded)
            answer = self.link.recv_match(type="COMMAND_ACK", blocking=True, timeout=WAIT)
            if answer is not None and answer.command == command:
                if answer.result != mav.MAV_RESULT_ACCEPTED:
                    raise SystemExit(f"The vehicle refuses the command {command}: {answer.result}")
                return
        raise SystemExit(f"The vehicle does not answer the command {command}")

    def _expect(self, kind: str | list[str], seconds: float = WAIT) -> mav.MAVLink_message:
        message = self.link.recv_match(type=kind, blocking=True, timeout=seconds)
        if message is None:
            raise SystemExit(f"The vehicle has not sent {kind} in {seconds:.0f} s")
        return message


class Client:
    """Speaks to `airloc serve`.

    Args:
        url: Where it listens.
        token: What it asks for.
        patience: Seconds to wait for it.
    """

    def __init__(self, url: str, token: str, patience: float = 60.0) -> None:
        self._url, self._token, self._patience = url, token, patience

    def begin(self, wanted: dict) -> dict:
        """Begin a search."""
        return self._call("/searches", json.dumps(wanted).encode(), "application/json")

    def post_photo(self, search: str, photo: bytes, **where: float) -> dict:
        """Post a JPEG with where it was taken."""
        return self._call(f"/searches/{search}/photos?{urllib.parse.urlencode(where)}", photo, "image/jpeg")

    def _call(self, path: str, body: bytes, kind: str) -> dict:
        """Ask, and ask again while the server starts or is started again: photos may be posted twice."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        request = urllib.request.Request(self._url + path, body, headers)
        until = time.monotonic() + self._patience
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                raise SystemExit(f"{path}: {error.read().decode()}") from None
            except OSError as error:
                if time.monotonic() > until:
                    problem = f"No server answers at {self._url}: {getattr(error, 'reason', error)}"
                    raise SystemExit(f"{problem}. Start `airloc serve`, or name its address with --server.") from None
                time.sleep(0.5)


def take_photo(raster: Raster, plane: Plane, camera: Camera, lat: float, lon: float, height: float) -> bytes:
    """What a camera that looks down from here would see, north up, cut from the image: a JPEG."""
    width, depth = camera.footprint(height)
    x, y = plane.from_degrees((lat, lon))
    corners = np.array([(-1, 1), (1, 1), (1, -1), (-1, -1)]) * (width / 2, depth / 2) + (x, y)
    view = raster.view(plane, corners, (480, 640))
    buffer = io.BytesIO()
    Image.fromarray(view.pixels).save(buffer, "JPEG", quality=92)
    return buffer.getvalue()


def search(station: GroundStation, client: Client, raster: Raster, begin: dict) -> dict:
    """Fly until the find is declared or the flight is spent; give the last answer."""
    plane, camera = raster.plane(), Camera()
    state = client.begin(begin)
    mission = []
    while (point := state["next"]) is not None:
        height = state["height_m"] * 1.1  # a little higher than needed, for a vehicle that is not quite in the middle
        if not mission:
            mission = [Item(TAKEOFF, FRAME_RELATIVE, (0, 0, 0, 0), point["lat"], point["lon"], height)]
        leg = [
            *mission[:1],
            Item(WAYPOINT, FRAME_RELATIVE, (0, 0, 0, 0), point["lat"], point["lon"], height),
            Item(TAKE_PICTURE, 2, (0, 0, 1, 0), 0, 0, 0),
        ]
        taken = station.fly(leg)
        where = {"lat": taken.lat / 1e7, "lon": taken.lon / 1e7, "height_m": taken.relative_alt / 1000}
        photo = take_photo(raster, plane, camera, where["lat"], where["lon"], where["height_m"])
        state = client.post_photo(state["id"], photo, heading=0, **where)
        print(f"row {state['photo']['row']}, column {state['photo']['col']}: the goal to {100 * state['here']:.1f} %")
    return state


def request_for(raster: Raster, goal: tuple[float, float], cell: float, agent: str | None, budget: int | None) -> dict:
    """The search of the whole image for a place on it, whose picture is cut from the image."""
    plane = raster.plane()
    half = (np.ptp(raster.border(plane), axis=0) - cell) / 2
    corners = [dict(zip(("lat", "lon"), corner, strict=True)) for corner in plane.to_degrees([-half, half]).tolist()]
    x, y = plane.from_degrees(goal)
    square = np.array([(-1, 1), (1, 1), (1, -1), (-1, -1)]) * cell / 2 + (x, y)
    buffer = io.BytesIO()
    Image.fromarray(raster.view(plane, square, (192, 192)).pixels).save(buffer, "PNG")
    picture = base64.b64encode(buffer.getvalue()).decode()
    return {"goal": picture, "outline": corners, "cell_m": cell, "agent": agent, "budget": budget}


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--area", type=Path, required=True, help="the georeferenced image")
    parser.add_argument("--goal", required=True, help="the place to find, lat,lon; only its picture is given away")
    parser.add_argument("--cell", type=float, default=100.0, help="side of a cell in metres")
    parser.add_argument("--budget", type=int, help="moves that may be flown")
    parser.add_argument("--agent", help="who leads")
    parser.add_argument("--server", default="http://127.0.0.1:8470")
    parser.add_argument("--token", default=os.environ.get("AIRLOC_TOKEN", ""))
    parser.add_argument("--link", help="a vehicle's MAVLink; a simulated one on loopback unless given")
    options = parser.parse_args()
    lat, lon = (float(part) for part in options.goal.split(","))
    with Raster(options.area) as raster:
        vehicle = None
        if options.link is None:
            sys.path.insert(0, str(Path(__file__).parent))
            from simulated_vehicle import SimulatedVehicle

            vehicle = SimulatedVehicle(14599, (raster.plane().lat, raster.plane().lon))
            vehicle.start()
        began = time.monotonic()
        begin = request_for(raster, (lat, lon), options.cell, options.agent, options.budget)
        station = GroundStation(options.link or "udpout:127.0.0.1:14599")
        state = search(station, Client(options.server, options.token), raster, begin)
        if vehicle is not None:
            vehicle.stop()
    print(f"{state['status']} after {state['photos']} photos and {time.monotonic() - began:.0f} s")
    if state["declared"] is not None:
        found = state["declared"]["lat"], state["declared"]["lon"]
        north, east = (found[0] - lat) * 111_320, (found[1] - lon) * 111_320 * math.cos(math.radians(lat))
        print(f"declared at {found[0]:.6f},{found[1]:.6f}, {math.hypot(north, east):.0f} m from the goal")


if __name__ == "__main__":
    main()
