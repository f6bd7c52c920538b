r"""Fly a vehicle with `airloc serve`: the server sends the next waypoint, MAVLink flies there, photos go back.

    airloc serve --store searches.sqlite                       # in another terminal; prints the token
    python examples/fly_mavlink.py --area ortho.tif --goal 59.3573,15.0045 --cell 96 --token TOKEN

By default the vehicle is simulated on loopback, and its photos are cropped from the image. A real vehicle has a MAVLink
connection, and a folder into which its photos are copied as they are taken:

    python examples/fly_mavlink.py --link udpout:192.168.1.10:14550 --photos DCIM/100MEDIA --goal goal.jpg \
        --outline '59.357,15.001 59.352,15.010' --cell 96 --token TOKEN

The vehicle returns to launch when the goal is found, the budget is spent, the search is cancelled, the server or a
photo is lost, or the example is interrupted.
"""

import argparse
import base64
import io
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

os.environ["MAVLINK20"] = "1"  # read when pymavlink is imported
try:
    import numpy as np
    from PIL import Image
    from pymavlink import mavutil
    from pymavlink.dialects.v20 import common as mav

    from airloc.areas.raster import Plane, Raster
    from airloc.missions.exif import read_tags
    from airloc.missions.flight import (
        FRAME_MISSION,
        FRAME_RELATIVE,
        TAKE_PHOTO,
        TAKEOFF,
        WAYPOINT,
        Camera,
        MissionItem,
        camera_items,
        great_circle_distance,
    )
except ModuleNotFoundError as error:
    raise SystemExit(f"This example needs {error.name}. Run: pip install 'airloc[field]'.") from None

TIMEOUT = 10.0
"""Seconds to wait for a reply of the vehicle."""
FLIGHT_TIMEOUT = 600.0
"""Seconds to wait for the vehicle to take a photo."""
PHOTO_TIMEOUT = 60.0
"""Seconds to wait for the file of a photo."""
SPEED = 8.0
"""Speed of the vehicle in metres per second."""
TRIES = 3
PHOTO_SIZE = 480, 640
"""Height and width of the simulated photos in pixels."""


class GroundStation:
    """Ground station: uploads missions, starts them and waits for photos.

    Args:
        link: Connection string of pymavlink, such as udpout:127.0.0.1:14550.
    """

    def __init__(self, link: str) -> None:
        self.link = mavutil.mavlink_connection(link, source_system=255, dialect="common")
        for _ in range(TRIES):
            self.link.mav.heartbeat_send(mav.MAV_TYPE_GCS, mav.MAV_AUTOPILOT_INVALID, 0, 0, 0)
            if self.link.wait_heartbeat(timeout=TIMEOUT / TRIES) is not None:
                return
        raise SystemExit(f"No vehicle replies on {link}.")

    def fly(self, items: list[MissionItem]) -> mav.MAVLink_camera_image_captured_message:
        """Upload a mission, start it and wait for its photo."""
        self._upload(items)
        self._command(mav.MAV_CMD_COMPONENT_ARM_DISARM, 1)
        self._command(mav.MAV_CMD_MISSION_START, 0, len(items) - 1)
        return self._expect("CAMERA_IMAGE_CAPTURED", FLIGHT_TIMEOUT)

    def return_to_launch(self) -> None:
        """Send the vehicle home."""
        self._command(mav.MAV_CMD_NAV_RETURN_TO_LAUNCH)

    def _upload(self, items: list[MissionItem]) -> None:
        """Announce a mission and send the items that the vehicle requests, until it accepts."""
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
            raise SystemExit(f"The vehicle rejects the mission with code {message.type}.")

    def _command(self, command: int, *params: float) -> None:
        padded = [*params, *[0.0] * (7 - len(params))]
        for attempt in range(TRIES):
            target = self.link.target_system, self.link.target_component
            self.link.mav.command_long_send(*target, command, attempt, *padded)
            reply = self.link.recv_match(type="COMMAND_ACK", blocking=True, timeout=TIMEOUT)
            if reply is not None and reply.command == command:
                if reply.result != mav.MAV_RESULT_ACCEPTED:
                    raise SystemExit(f"The vehicle rejects command {command} with code {reply.result}.")
                return
        raise SystemExit(f"The vehicle does not reply to command {command}.")

    def _expect(self, kind: str | list[str], seconds: float = TIMEOUT) -> mav.MAVLink_message:
        message = self.link.recv_match(type=kind, blocking=True, timeout=seconds)
        if message is None:
            raise SystemExit(f"The vehicle sent no {kind} within {seconds:.0f} s.")
        return message


class Client:
    """Client of `airloc serve`.

    Args:
        url: Address of the server.
        token: Token of the server.
        timeout: Seconds to wait for a server that does not run yet.
    """

    def __init__(self, url: str, token: str, timeout: float = 60.0) -> None:
        self._url, self._token, self._timeout = url, token, timeout

    def create_search(self, request: dict) -> dict:
        """Create a search."""
        return self._call("/searches", json.dumps(request).encode(), "application/json")

    def post_photo(self, search: str, photo: bytes, **position: float) -> dict:
        """Post a JPEG with the position of the camera."""
        return self._call(f"/searches/{search}/photos?{urllib.parse.urlencode(position)}", photo, "image/jpeg")

    def _call(self, path: str, body: bytes, kind: str) -> dict:
        """Send a request; send it again while the server starts or restarts, which is safe for photos."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        request = urllib.request.Request(self._url + path, body, headers)
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    return json.load(response)
            except urllib.error.HTTPError as error:
                raise SystemExit(f"{path}: {error.read().decode()}") from None
            except OSError as error:
                if time.monotonic() > deadline:
                    reason = getattr(error, "reason", error)
                    problem = f"No server replies at {self._url}: {reason}."
                    raise SystemExit(f"{problem} Start `airloc serve`, or pass its address with --server.") from None
                time.sleep(0.5)


def take_photo(raster: Raster, plane: Plane, camera: Camera, lat: float, lon: float, height: float) -> bytes:
    """Return the photo of a camera that looks straight down, north up, cropped from the image: a JPEG."""
    width, depth = camera.footprint(height)
    x, y = plane.from_degrees((lat, lon))
    corners = np.array([(-1, 1), (1, 1), (1, -1), (-1, -1)]) * (width / 2, depth / 2) + (x, y)
    view = raster.read_quad(plane, corners, PHOTO_SIZE)
    buffer = io.BytesIO()
    Image.fromarray(view.pixels).save(buffer, "JPEG", quality=92)
    return buffer.getvalue()


TakePhoto = Callable[[dict], bytes]
"""Returns the photo that was taken at a position."""


def simulated_camera(raster: Raster) -> TakePhoto:
    """Return a camera whose photos are cropped from the image."""
    plane, camera = raster.plane(), Camera()
    return lambda at: take_photo(raster, plane, camera, at["lat"], at["lon"], at["height_m"])


def folder_camera(folder: Path) -> TakePhoto:
    """Return the camera of the vehicle: its next photo is the next new file in a folder."""
    known = set(folder.iterdir())

    def next_photo(at: dict) -> bytes:
        deadline = time.monotonic() + PHOTO_TIMEOUT
        while time.monotonic() < deadline:
            new = sorted(path for path in set(folder.iterdir()) - known if path.suffix.lower() in (".jpg", ".jpeg"))
            data = new[0].read_bytes() if new else b""
            if data.endswith(b"\xff\xd9"):  # the file is complete
                known.add(new[0])
                return data
            time.sleep(0.1)
        raise SystemExit(f"No photo arrived in {folder} within {PHOTO_TIMEOUT:.0f} s.")

    return next_photo


def search(station: GroundStation, client: Client, camera: TakePhoto, request: dict) -> dict:
    """Fly until the search ends or anything is lost, and send the vehicle home; return the last state."""
    state = client.create_search(request)
    try:
        return _fly(station, client, camera, state)
    finally:
        station.return_to_launch()


def _fly(station: GroundStation, client: Client, camera: TakePhoto, state: dict) -> dict:
    """Fly until the search ends; return its last state."""
    takeoff, unusable = None, 0
    while (point := state["next"]) is not None:
        height = state["height_m"] * 1.1  # a margin for a vehicle that is not exactly above the centre
        takeoff = takeoff or MissionItem(TAKEOFF, FRAME_RELATIVE, (0, 0, 0, 0), point["lat"], point["lon"], height)
        stops = [*state["vehicles"][0]["route"], point]  # the route bends around the corners of the outline
        way = [MissionItem(WAYPOINT, FRAME_RELATIVE, (0, 0, 0, 0), at["lat"], at["lon"], height) for at in stops]
        photograph = MissionItem(TAKE_PHOTO, FRAME_MISSION, (0, 0, 1, 0), 0, 0, 0)
        taken = station.fly([takeoff, *camera_items(SPEED), *way, photograph])
        position = {"lat": taken.lat / 1e7, "lon": taken.lon / 1e7, "height_m": taken.relative_alt / 1000}
        photo = camera(position)
        heading = read_tags(photo).heading or 0.0  # waypoints ask for a yaw of zero
        # After two photos that the server cannot use, it takes the third as it is.
        state = client.post_photo(state["id"], photo, heading=heading, accept=unusable == 2, **position)
        if state["outcome"] == "unusable":
            unusable += 1
            print(state["reason"])
            continue
        unusable = 0
        cell, probability = state["photo"], 100 * state["match_probability"]
        print(f"row {cell['row'] + 1}, column {cell['col'] + 1}: match probability {probability:.1f} %")
    return state


def request_for(raster: Raster, goal: tuple[float, float], cell: float, agent: str | None, budget: int | None) -> dict:
    """Return the request to search the whole image for a position, with a goal image cropped from it."""
    plane = raster.plane()
    half = (np.ptp(raster.border(plane), axis=0) - cell) / 2
    corners = [dict(zip(("lat", "lon"), corner, strict=True)) for corner in plane.to_degrees([-half, half]).tolist()]
    x, y = plane.from_degrees(goal)
    square = np.array([(-1, 1), (1, 1), (1, -1), (-1, -1)]) * cell / 2 + (x, y)
    buffer = io.BytesIO()
    Image.fromarray(raster.read_quad(plane, square, (192, 192)).pixels).save(buffer, "PNG")
    image = base64.b64encode(buffer.getvalue()).decode()
    return {
        "goal": image, "goal_heading": 0, "outline": corners, "cell_m": cell, "agent": agent, "budget": budget
    }  # fmt: skip


def request_from(options: argparse.Namespace) -> dict:
    """Return the request to search an outline for the place of a goal image."""
    corners = [tuple(map(float, corner.split(","))) for corner in options.outline.split()]
    return {
        "goal": base64.b64encode(Path(options.goal).read_bytes()).decode(), "goal_heading": options.goal_heading,
        "outline": [{"lat": lat, "lon": lon} for lat, lon in corners], "cell_m": options.cell, "agent": options.agent,
        "budget": options.budget,
    }  # fmt: skip


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--area", type=Path, help="georeferenced image, for a simulated vehicle")
    parser.add_argument("--goal", required=True, help="position of the goal on the image, lat,lon, or a goal image")
    parser.add_argument("--goal-heading", type=float, help="compass direction of the goal image's upper edge")
    parser.add_argument("--outline", help="corners of the search area, 'lat,lon lat,lon ...'")
    parser.add_argument("--photos", type=Path, help="folder into which the photos of the vehicle are copied")
    parser.add_argument("--cell", type=float, default=100.0, help="side of a cell in metres")
    parser.add_argument("--budget", type=int, help="moves that the vehicle may fly")
    parser.add_argument("--agent", help="name of the agent")
    parser.add_argument("--server", default="http://127.0.0.1:8470")
    parser.add_argument("--token", default=os.environ.get("AIRLOC_TOKEN", ""))
    parser.add_argument("--link", help="MAVLink connection of a vehicle; a simulated vehicle by default")
    options = parser.parse_args()
    started, client = time.monotonic(), Client(options.server, options.token)
    if options.photos is not None:
        if not (options.link and options.outline):
            parser.error("--photos needs --link and --outline")
        station = GroundStation(options.link)
        state = search(station, client, folder_camera(options.photos), request_from(options))
    elif options.area is not None:
        state = simulate(client, options)
    else:
        parser.error("give --area, or --photos with --link and --outline")
    print(f"{state['status']} after {state['photos']} photos and {time.monotonic() - started:.0f} s")
    if state["declared"] is not None:
        found = state["declared"]["lat"], state["declared"]["lon"]
        error = ""
        if options.photos is None:
            lat, lon = (float(part) for part in options.goal.split(","))
            error = f", {great_circle_distance(found, (lat, lon)):.0f} m from the goal"
        print(f"declared at {found[0]:.6f},{found[1]:.6f}{error}")


def simulate(client: Client, options: argparse.Namespace) -> dict:
    """Search the image with a simulated vehicle, or with a real one whose photos are cropped from the image."""
    lat, lon = (float(part) for part in options.goal.split(","))
    with Raster(options.area) as raster:
        vehicle = None
        if options.link is None:
            sys.path.insert(0, str(Path(__file__).parent))
            from simulated_vehicle import SimulatedVehicle

            vehicle = SimulatedVehicle(14599, (raster.plane().lat, raster.plane().lon))
            vehicle.start()
        request = request_for(raster, (lat, lon), options.cell, options.agent, options.budget)
        station = GroundStation(options.link or "udpout:127.0.0.1:14599")
        try:
            return search(station, client, simulated_camera(raster), request)
        finally:
            if vehicle is not None:
                vehicle.stop()


if __name__ == "__main__":
    main()
