"""A simulated vehicle that speaks MAVLink: takes missions, flies them in a straight line, says where it took pictures.

It stands in for an autopilot on the other end of a link. It understands what `fly_mavlink.py` needs of the protocol:
heartbeats, the upload of a mission (MISSION_COUNT, MISSION_REQUEST_INT, MISSION_ITEM_INT, MISSION_ACK), arming and
starting (COMMAND_LONG, COMMAND_ACK), and while flying GLOBAL_POSITION_INT, MISSION_ITEM_REACHED and
CAMERA_IMAGE_CAPTURED. Time runs `hurry` times faster than on a clock.
"""

import math
import os
import threading
import time
from dataclasses import dataclass, field

os.environ["MAVLINK20"] = "1"  # read when pymavlink is imported
from pymavlink import mavutil
from pymavlink.dialects.v20 import common as mav

METRES_A_DEGREE = 111_320.0
TICK = 0.01
"""Seconds between two steps of the simulation."""


@dataclass
class State:
    """Where the vehicle is and what it is doing."""

    lat: float
    lon: float
    height: float = 0.0
    armed: bool = False
    items: list = field(default_factory=list)
    current: int | None = None
    """Number of the mission's item that is being flown; None when idle."""
    pictures: int = 0


class SimulatedVehicle(threading.Thread):
    """Flies in the background until `stop` is called.

    Args:
        port: UDP port on loopback to listen on.
        home: Latitude and longitude where it stands.
        speed: Metres a second.
        hurry: How much faster than real time runs.
    """

    def __init__(self, port: int, home: tuple[float, float], speed: float = 8.0, hurry: float = 100.0) -> None:
        super().__init__(daemon=True)
        self.state = State(*home)
        self.home, self.speed, self.hurry = home, speed, hurry
        self.link = mavutil.mavlink_connection(f"udpin:127.0.0.1:{port}", source_system=1, dialect="common")
        self._over = threading.Event()
        self._expected = 0

    def stop(self) -> None:
        """Land and hang up."""
        self._over.set()
        self.join(5)
        self.link.close()

    def run(self) -> None:
        """Listen and fly."""
        last_beat = 0.0
        while not self._over.is_set():
            while (message := self.link.recv_msg()) is not None:
                self._handle(message)
            now = time.monotonic()
            if self.link.clients and now - last_beat > 0.2:
                last_beat = now
                self._beat()
            if self.state.current is not None and self.state.armed:
                self._fly(TICK * self.hurry)
            time.sleep(TICK)

    def _handle(self, message: mav.MAVLink_message) -> None:
        kind, send = message.get_type(), self.link.mav
        if kind == "MISSION_COUNT":
            self.state.items, self.state.current = [], None
            self._expected = message.count
            send.mission_request_int_send(message.get_srcSystem(), message.get_srcComponent(), 0)
        elif kind == "MISSION_ITEM_INT" and message.seq == len(self.state.items):
            self.state.items.append(message)
            sender = message.get_srcSystem(), message.get_srcComponent()
            if len(self.state.items) < self._expected:
                send.mission_request_int_send(*sender, len(self.state.items))
            else:
                send.mission_ack_send(*sender, mav.MAV_MISSION_ACCEPTED)
        elif kind == "COMMAND_LONG":
            self._command(message)

    def _command(self, message: mav.MAVLink_message) -> None:
        result = mav.MAV_RESULT_ACCEPTED
        if message.command == mav.MAV_CMD_COMPONENT_ARM_DISARM:
            self.state.armed = bool(message.param1)
        elif message.command == mav.MAV_CMD_MISSION_START and self.state.armed and self.state.items:
            self.state.current = 0
        else:
            result = mav.MAV_RESULT_DENIED
        self.link.mav.command_ack_send(message.command, result)

    def _fly(self, seconds: float) -> None:
        """Go on with the current item for some simulated seconds."""
        state = self.state
        item = state.items[state.current]
        reached = True
        if item.command == mav.MAV_CMD_NAV_TAKEOFF:
            state.height = min(item.z, state.height + 3 * seconds)
            reached = state.height >= item.z
        elif item.command == mav.MAV_CMD_NAV_WAYPOINT:
            reached = self._approach(item.x / 1e7, item.y / 1e7, seconds)
        elif item.command == mav.MAV_CMD_NAV_RETURN_TO_LAUNCH:
            reached = self._approach(*self.home, seconds)
            state.height = 0.0 if reached else state.height
        elif item.command == mav.MAV_CMD_IMAGE_START_CAPTURE:
            self._take_picture()
        self._say_position()
        if reached:
            self.link.mav.mission_item_reached_send(item.seq)
            state.current = state.current + 1 if state.current + 1 < len(state.items) else None

    def _approach(self, lat: float, lon: float, seconds: float) -> bool:
        """Fly towards a place; say whether it is reached."""
        north = (lat - self.state.lat) * METRES_A_DEGREE
        east = (lon - self.state.lon) * METRES_A_DEGREE * math.cos(math.radians(lat))
        away = math.hypot(north, east)
        share = min(1.0, self.speed * seconds / away) if away else 1.0
        self.state.lat += share * (lat - self.state.lat)
        self.state.lon += share * (lon - self.state.lon)
        return share == 1.0

    def _beat(self) -> None:
        mode = mav.MAV_MODE_FLAG_SAFETY_ARMED if self.state.armed else 0
        self.link.mav.heartbeat_send(mav.MAV_TYPE_QUADROTOR, mav.MAV_AUTOPILOT_GENERIC, mode, 0, mav.MAV_STATE_ACTIVE)
        self._say_position()

    def _say_position(self) -> None:
        lat, lon, height = self._position()
        self.link.mav.global_position_int_send(0, lat, lon, height, height, 0, 0, 0, 0)

    def _take_picture(self) -> None:
        lat, lon, height = self._position()
        level = [1.0, 0.0, 0.0, 0.0]
        self.link.mav.camera_image_captured_send(0, 0, 0, lat, lon, height, height, level, self.state.pictures, 1, b"")
        self.state.pictures += 1

    def _position(self) -> tuple[int, int, int]:
        """Position as MAVLink writes it: ten-millionths of degrees and millimetres."""
        return round(self.state.lat * 1e7), round(self.state.lon * 1e7), round(self.state.height * 1000)
