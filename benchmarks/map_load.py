"""200 people watch one search on the live map: the delay of every view, and whether the flight is slowed down.

`airloc serve` runs in a process of its own. One vehicle flies a search of 8 x 8 cells and posts a photo every half a
second. The watchers are loopback connections that read the server-sent events as the page does, and load the photo of
every new cell. The delay of a view is the time from the response to the vehicle to the arrival of the view. The
reference is the latency of a photo without watchers.
"""

import asyncio
import base64
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from airloc.areas.synthetic import Synthetic
from airloc.grid import Grid
from airloc.task.cells import cut_patches
from airloc.web import bind
from benchmarks.game_load import percentile

WATCHERS, PHOTOS = 200, 20
PAUSE = 0.5
"""Seconds between two photos."""
TOKEN = "a token for benchmarks"
GRID = Grid(8, 8)
HEAD = f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"


@dataclass
class Load:
    """Measurements of one run."""

    delays: list[float] = field(default_factory=list)
    """Delay of every view of every watcher in seconds."""
    photos: list[float] = field(default_factory=list)
    """Latency of every photo in seconds."""
    alone: list[float] = field(default_factory=list)
    """Latency of every photo without watchers in seconds."""
    images: list[float] = field(default_factory=list)
    """Latency of every image that a watcher loads in seconds."""
    missed: int = 0
    """Watchers that did not receive the last view."""
    errors: list[str] = field(default_factory=list)


class Connection:
    """A connection to the server."""

    async def open(self, port: int) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)

    async def ask(self, method: str, path: str, content: bytes = b"") -> tuple[int, bytes]:
        """Send a request; return status and body."""
        kind = f"Content-Type: application/json\r\nContent-Length: {len(content)}"
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{HEAD}{kind}\r\n\r\n".encode() + content)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        length = next(int(line.split()[1]) for line in lines if line.startswith("content-length:"))
        return int(lines[0].split()[1]), await self._reader.readexactly(length)

    async def follow(self, path: str) -> None:
        """Begin to read server-sent events."""
        self._writer.write(f"GET {path} HTTP/1.1\r\n{HEAD}\r\n".encode())
        await self._reader.readuntil(b"\r\n\r\n")

    async def next_view(self) -> dict[str, Any]:
        """Return the next view."""
        while True:
            line = await self._reader.readline()
            if not line:
                raise ConnectionResetError
            if line.startswith(b"data: "):
                return dict(json.loads(line.removeprefix(b"data: ")))


def jpeg(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((640, 640)).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def new_search() -> dict[str, Any]:
    """Return a request for a goal that is not in the area, so that the vehicle flies all its moves."""
    rng = np.random.default_rng(1)
    goal = base64.b64encode(jpeg(rng.integers(0, 256, (48, 48, 3), dtype=np.uint8))).decode()
    corners = [{"lat": 59.35, "lon": 15.0}, {"lat": 59.35 + 850 / 111_400, "lon": 15.0 + 850 / 56_800}]
    return {
        "goal": goal,
        "outline": corners,
        "cell_m": 100,
        "gap_m": 8,
        "budget": 90,
        "agent": "belief",
        "goal_heading": 0,
    }


async def fly(
    port: int, search: str, photos: list[bytes], count: int, latencies: list[float], sent: list[float]
) -> None:
    """Post photos of the next cells; `sent` receives the time of every response."""
    vehicle = Connection()
    await vehicle.open(port)
    _, body = await vehicle.ask("GET", f"/searches/{search}")
    place = json.loads(body)["next"]
    for _ in range(count):
        content = photos[place["row"] % 8 * 8 + place["col"] % 8]
        began = time.perf_counter()
        status, body = await vehicle.ask(
            "POST", f"/searches/{search}/photos?lat={place['lat']}&lon={place['lon']}", content
        )
        latencies.append(time.perf_counter() - began)
        assert status == 200, body
        sent.append(time.perf_counter())
        place = json.loads(body)["next"]
        await asyncio.sleep(PAUSE)


async def watch(port: int, search: str, load: Load, sent: list[float], last: int) -> None:
    """Follow a search to its last photo, and load the picture of every new cell."""
    stream, images, seen = Connection(), Connection(), 0
    try:
        await stream.open(port)
        await images.open(port)
        await stream.follow(f"/searches/{search}/events")
        while seen < last:
            view = await stream.next_view()
            arrived = time.perf_counter()
            photos = view["photos"]
            if not photos:
                continue
            seen = len(photos)
            # A view may arrive before the response to the vehicle.
            load.delays.append(max(0.0, arrived - sent[seen - 1]) if len(sent) >= seen else 0.0)
            began = time.perf_counter()
            status, _ = await images.ask("GET", f"/searches/{search}/photos/{seen}/cell")
            load.images.append(time.perf_counter() - began)
            if status != 200:
                load.errors.append(f"photo: {status}")
    except (OSError, asyncio.IncompleteReadError) as error:
        load.errors.append(repr(error))
    load.missed += seen < last


async def _run(port: int, load: Load, watchers: int, count: int) -> None:
    area = next(iter(Synthetic(count=1, seed=3).areas(GRID)))
    photos = [jpeg(patch) for patch in cut_patches(area.image, GRID)]
    client = Connection()
    while True:
        try:
            await client.open(port)
            break
        except OSError:
            await asyncio.sleep(0.1)
    searches = []
    for _ in range(2):
        status, body = await client.ask("POST", "/searches", json.dumps(new_search()).encode())
        assert status == 201, body
        searches.append(json.loads(body)["id"])
    await fly(port, searches[0], photos, count, load.alone, [])
    sent: list[float] = []
    crowd = [asyncio.create_task(watch(port, searches[1], load, sent, count)) for _ in range(watchers)]
    await asyncio.sleep(2)
    await fly(port, searches[1], photos, count, load.photos, sent)
    await asyncio.wait_for(asyncio.gather(*crowd), 30)


def measure(watchers: int = WATCHERS, photos: int = PHOTOS) -> Load:
    """Serve, watch and fly."""
    load = Load()
    with tempfile.TemporaryDirectory() as folder:
        with bind("127.0.0.1", 0) as bound:
            port = bound.getsockname()[1]
        store = str(Path(folder) / "searches.sqlite")
        command = [sys.executable, "-m", "airloc.cli.main", "serve", "--store", store, "--port", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "AIRLOC_TOKEN": TOKEN})
        try:
            asyncio.run(_run(port, load, watchers, photos))
        finally:
            server.kill()
            server.wait()
    return load


def run() -> list[tuple[str, str, str, str]]:
    load = measure()
    ratio = statistics.median(load.photos) / statistics.median(load.alone)
    views = f"{len(load.delays)} views, {load.missed} watchers without the last, {len(load.errors)} errors"
    return [
        (f"delay of a view with {WATCHERS} watchers, ms, median", f"{percentile(load.delays, 50):.0f}", "", views),
        (
            f"delay of a view with {WATCHERS} watchers, ms, 99th percentile",
            f"{percentile(load.delays, 99):.0f}",
            "500",
            "",
        ),
        (
            f"latency of a photo with {WATCHERS} watchers, ms, median",
            f"{percentile(load.photos, 50):.0f}",
            "",
            f"{ratio:.1f} x without watchers",
        ),
    ]


if __name__ == "__main__":
    for row in run():
        print(*filter(None, row), sep="; ")
