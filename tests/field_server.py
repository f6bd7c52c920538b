"""What tests of the search server share: a search over synthetic ground, photos of it, a real server process."""

import base64
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
from PIL import Image

from airloc.areas.geotiff import Raster
from airloc.areas.layout import Layout, lay_out_outline
from airloc.areas.outline import read_outline

TOKEN = "a-token-for-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def encoded(image: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return buffer.getvalue()


class Ground:
    """A GeoTIFF, the layout that a server makes of its inner box, and photos cut from it."""

    def __init__(self, path: Path, cell_m: float = 96.0, share: float = 0.5) -> None:
        self.raster = Raster(path)
        plane = self.raster.plane()
        assert plane is not None
        border = self.raster.border(plane)
        half = share * np.ptp(border, axis=0) / 2 * 0.98
        self.corners = plane.to_degrees([-half, half]).tolist()
        text = " ".join(f"{lat!r},{lon!r}" for lat, lon in self.corners)
        self.cell_m = cell_m
        self.layout: Layout = lay_out_outline(read_outline(text), cell_m)

    def photo(self, cell, wider: float = 1.0) -> bytes:
        """A photo of a cell and, where `wider`, of the ground around it."""
        corners = self.layout.corners(cell)
        middle = corners.mean(axis=0)
        around = middle + (corners - middle) * wider
        return encoded(self.raster.view(self.layout.plane, around, (round(96 * wider), round(96 * wider))).pixels)

    def place(self, cell) -> dict[str, float]:
        lat, lon = self.layout.degrees(cell).tolist()
        return {"lat": lat, "lon": lon}

    def request(self, goal, **options) -> dict[str, object]:
        """The body that begins a search for a cell."""
        return {
            "goal": base64.b64encode(self.photo(goal)).decode(),
            "outline": [{"lat": lat, "lon": lon} for lat, lon in self.corners],
            "cell_m": self.cell_m,
            "agent": "spiral",
            "budget": 40,
            **options,
        }


class Server:
    """`airloc serve` in a process of its own."""

    def __init__(self, store: Path) -> None:
        environment = {**os.environ, "AIRLOC_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "airloc.cli.main", "serve", "--store", str(store), "--port", "0"]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+?:\d+", line)
        assert found, line
        self.url = found[0]
        self.client = httpx.Client(base_url=self.url, headers=HEADERS, timeout=30)
        self._wait()

    def _wait(self) -> None:
        for _ in range(100):
            try:
                self.client.get("/health")
            except httpx.ConnectError:
                continue
            else:
                return

    def kill(self) -> None:
        """As a power cut would."""
        self.client.close()
        self.process.kill()
        self.process.wait()
