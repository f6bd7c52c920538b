"""Shared helpers of the search server's tests: a search area, photos of it, a server process and a server thread."""

import base64
import functools
import io
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import numpy as np
from PIL import Image

from airloc.areas.layout import Layout, lay_out_outline
from airloc.areas.outline import read_outline
from airloc.areas.raster import Raster
from airloc.missions.store import SearchStore
from browser_pages import OPEN_PAGES

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

TOKEN = "a-token-for-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def encode_png(image: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return buffer.getvalue()


class SearchGround:
    """A GeoTIFF, the layout that a server makes of its inner box, and photos cropped from it."""

    def __init__(self, path: Path, cell_m: float = 96.0, share: float = 0.5) -> None:
        self.raster = Raster(path)
        plane = self.raster.plane()
        assert plane is not None
        half = share * np.ptp(self.raster.border(plane), axis=0) / 2 * 0.98
        self.corners = plane.to_degrees([-half, half]).tolist()
        text = " ".join(f"{lat!r},{lon!r}" for lat, lon in self.corners)
        self.cell_m = cell_m
        self.layout: Layout = lay_out_outline(read_outline(text), cell_m)
        self.photo = functools.cache(self._photo)

    def _photo(self, cell, scale: float = 1.0) -> bytes:
        """A photo of a cell whose footprint is `scale` cells wide."""
        corners = self.layout.corners(cell)
        centre = corners.mean(axis=0)
        footprint = centre + (corners - centre) * scale
        return encode_png(
            self.raster.read_quad(self.layout.plane, footprint, (round(96 * scale), round(96 * scale))).pixels
        )

    def position(self, cell) -> dict[str, float]:
        lat, lon = self.layout.lat_lon(cell).tolist()
        return {"lat": lat, "lon": lon}

    def request(self, goal, **options) -> dict[str, object]:
        """The body that creates a search for a cell. A known heading saves much of the comparison with photos."""
        return {
            "goal": base64.b64encode(self.photo(goal)).decode(),
            "goal_heading": 0,
            "outline": [{"lat": lat, "lon": lon} for lat, lon in self.corners],
            "cell_m": self.cell_m,
            "agent": "spiral",
            "budget": 40,
            **options,
        }


def client_of(store: SearchStore, agent: str = "spiral", orthophoto: Path | None = None) -> "TestClient":
    """A client of a server with this store, in the process of the tests."""
    from fastapi.testclient import TestClient

    from airloc.missions.server import make_app
    from airloc.missions.service import SearchService

    return TestClient(make_app(SearchService(store, agent, orthophoto), TOKEN), headers=HEADERS)


def create(client, ground: SearchGround, goal, **options) -> dict:
    """Create a search and return its state."""
    response = client.post("/searches", json=ground.request(goal, **options))
    assert response.status_code == 201, response.text
    return response.json()


def post(client, ground: SearchGround, state: dict, cell=None, photo: bytes | None = None, **query):
    """Post a photo of a cell, the next one by default."""
    cell = cell or (state["next"]["row"], state["next"]["col"])
    content = ground.photo(cell) if photo is None else photo
    return client.post(f"/searches/{state['id']}/photos", params=ground.position(cell) | query, content=content)


def fly(client, ground: SearchGround, state: dict) -> list[tuple[int, int]]:
    """Post photos until the search ends; return the cells in order."""
    path = []
    while state["status"] == "searching":
        path.append((state["next"]["row"], state["next"]["col"]))
        response = post(client, ground, state)
        assert response.status_code == 200, response.text
        state = response.json()
        assert state["outcome"] == "used"
    return path


class ServerProcess:
    """`airloc serve` in its own process, with a token that it generates."""

    def __init__(self, store: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "AIRLOC_TOKEN"}
        command = [sys.executable, "-u", "-m", "airloc.cli.main", "serve", "--store", str(store), "--port", "0"]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        first, second = self.process.stdout.readline(), self.process.stdout.readline()
        url = re.search(r"http://\S+?:\d+", first)
        assert url, first
        self.url, self.token = url[0], second.split()[-1]
        self.client = httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=30)

    def kill(self) -> None:
        """Kill the process, as a power cut would."""
        self.client.close()
        self.process.kill()
        self.process.wait()


@contextmanager
def server_thread(
    store: Path, *, port: int = 0, ground: Raster | None = None, close_pages: bool = True, agent: str = "spiral"
) -> Iterator[str]:
    """Run a search server in a thread; yield its URL."""
    from airloc.missions.server import make_app
    from airloc.missions.service import SearchService
    from airloc.web import bind, make_server, url_of

    opened = SearchStore(store)
    app = make_app(SearchService(opened, agent), TOKEN, ground)
    server = make_server(app, max_connections=100, on_shutdown=app.state.feed.close)
    with bind("127.0.0.1", port) as bound:
        bound.listen()  # connections wait until the server accepts them
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        try:
            yield url_of(bound).rstrip("/")
        finally:
            if close_pages:
                OPEN_PAGES.close()
            server.should_exit = True
            thread.join(10)
            opened.close()
