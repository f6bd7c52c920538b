"""A simulated MAVLink vehicle: accepts missions, flies them in straight lines and reports where it takes photos.

The vehicle implements the part of the protocol that `fly_mavlink.py` uses: heartbeats, mission upload (MISSION_COUNT,
MISSION_REQUEST_INT, MISSION_ITEM_INT, MISSION_ACK), arming and starting (COMMAND_LONG, COMMAND_ACK), and in flight
GLOBAL_POSITION_INT, MISSION_ITEM_REACHED and CAMERA_IMAGE_CAPTURED. It runs `speedup` times faster than real time.
"""

import math
import os
import threading
import time
from dataclasses import dataclass, field

os.environ["MAVLINK20"] = "1"  # read when pymavlink is imported
from pymavlink import mavutil
from pymavlink.dialects.v20 import common as mav

METRES_PER_DEGREE = 111_320.0
TICK = 0.01
"""Seconds between two steps of the simulation."""
CLIMB_RATE = 3.0
"""Metres per second."""


@dataclass
class State:
    """State of the vehicle."""

    lat: float
    lon: float
    height: float = 0.0
    armed: bool = False
    items: list = field(default_factory=list)
    current: int | None = None
    """Index of the current mission item; None when idle."""
    photos: int = 0
    returning: bool = False
    """The vehicle was told to return to launch."""


class SimulatedVehicle(threading.Thread):
    """Flies in the background until `stop` is called.

    Args:
        port: UDP port on loopback.
        home: Latitude and longitude of take-off.
        speed: Speed in metres per second.
        speedup: Simulated seconds per second.
    """

    def __init__(self, port: int, home: tuple[float, float], speed: float = 8.0, speedup: float = 100.0) -> None:
        super().__init__(daemon=True)
        self.state = State(*home)
        self.home, self.speed, self.speedup = home, speed, speedup
        self.link = mavutil.mavlink_connection(f"udpin:127.0.0.1:{port}", source_system=1, dialect="common")
        self._stopped = threading.Event()
        self._expected = 0

    def stop(self) -> None:
        """Stop the simulation and close the connection."""
        self._stopped.set()
        self.join(5)
        self.link.close()

    def run(self) -> None:
        """Handle messages and fly."""
        last_beat = 0.0
        while not self._stopped.is_set():
            while (message := self.link.recv_msg()) is not None:
                self._handle(message)
            now = time.monotonic()
            if self.link.clients and now - last_beat > 0.2:
                last_beat = now
                self._send_heartbeat()
            if self.state.current is not None and self.state.armed:
                self._fly(TICK * self.speedup)
            elif self.state.returning:
                self._return(TICK * self.speedup)
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
        elif message.command == mav.MAV_CMD_NAV_RETURN_TO_LAUNCH:
            self.state.items, self.state.current = [], None
            self.state.returning = True
        elif message.command == mav.MAV_CMD_MISSION_START and self.state.armed and self.state.items:
            self.state.current = 0
        else:
            result = mav.MAV_RESULT_DENIED
        self.link.mav.command_ack_send(message.command, result)

    def _fly(self, seconds: float) -> None:
        """Continue the current mission item for some simulated seconds."""
        state = self.state
        item = state.items[state.current]
        reached = True
        if item.command == mav.MAV_CMD_NAV_TAKEOFF:
            state.height = min(item.z, state.height + CLIMB_RATE * seconds)
            reached = state.height >= item.z
        elif item.command == mav.MAV_CMD_NAV_WAYPOINT:
            reached = self._approach(item.x / 1e7, item.y / 1e7, seconds)
        elif item.command == mav.MAV_CMD_NAV_RETURN_TO_LAUNCH:
            reached = self._approach(*self.home, seconds)
            state.height = 0.0 if reached else state.height
        elif item.command == mav.MAV_CMD_IMAGE_START_CAPTURE:
            self._take_photo()
        self._send_position()
        if reached:
            self.link.mav.mission_item_reached_send(item.seq)
            state.current = state.current + 1 if state.current + 1 < len(state.items) else None

    def _return(self, seconds: float) -> None:
        """Fly home, land and disarm."""
        if self._approach(*self.home, seconds):
            self.state.height, self.state.armed, self.state.returning = 0.0, False, False
        self._send_position()

    def _approach(self, lat: float, lon: float, seconds: float) -> bool:
        """Fly towards a position; return True when it is reached."""
        north = (lat - self.state.lat) * METRES_PER_DEGREE
        east = (lon - self.state.lon) * METRES_PER_DEGREE * math.cos(math.radians(lat))
        away = math.hypot(north, east)
        share = min(1.0, self.speed * seconds / away) if away else 1.0
        self.state.lat += share * (lat - self.state.lat)
        self.state.lon += share * (lon - self.state.lon)
        return share == 1.0

    def _send_heartbeat(self) -> None:
        mode = mav.MAV_MODE_FLAG_SAFETY_ARMED if self.state.armed else 0
        self.link.mav.heartbeat_send(mav.MAV_TYPE_QUADROTOR, mav.MAV_AUTOPILOT_GENERIC, mode, 0, mav.MAV_STATE_ACTIVE)
        self._send_position()

    def _send_position(self) -> None:
        lat, lon, height = self._position()
        self.link.mav.global_position_int_send(0, lat, lon, height, height, 0, 0, 0, 0)

    def _take_photo(self) -> None:
        lat, lon, height = self._position()
        level = [1.0, 0.0, 0.0, 0.0]
        self.link.mav.camera_image_captured_send(0, 0, 0, lat, lon, height, height, level, self.state.photos, 1, b"")
        self.state.photos += 1

    def _position(self) -> tuple[int, int, int]:
        """Return the position in the units of MAVLink: 1e-7 degrees and millimetres."""
        return round(self.state.lat * 1e7), round(self.state.lon * 1e7), round(self.state.height * 1000)
