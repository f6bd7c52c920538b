"""Several searches at once, each behind its own lock, each as it was before a restart.

Everything a client may do wrong ends in a `RefusedError` with the HTTP status that says so, and changes no search.
"""

import base64
import binascii
import secrets
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import numpy as np

from airloc.agents.agent import Agent
from airloc.agents.matching import declaration_threshold
from airloc.agents.registry import AGENTS, make_agent
from airloc.areas.area import Pixels
from airloc.areas.layout import SIDE, Layout, lay_out_outline
from airloc.areas.outline import read_outline
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.missions.flight import Camera
from airloc.missions.messages import BeliefMap, NewSearch, Observed, SearchState, Waypoint
from airloc.missions.photos import MIN_SEEN, Pose, centre_square, cut_to_cell, goal_patch, read_photo, shows_nothing
from airloc.missions.search import cell_of, nearest_searchable
from airloc.missions.searcher import Glimpse, Searcher
from airloc.missions.store import Store, StoredGlimpse, StoredSearch

MAX_CELLS = 20_000
LIVE = 64
"""Searches that are kept in memory; others are made again from their photos when they are asked for."""

Taken = Literal["used", "kept", "repeated"]


class RefusedError(AirlocError):
    """A request that is refused, with its HTTP status."""

    def __init__(self, status: int, problem: str, cure: str) -> None:
        super().__init__(problem, cure)
        self.status = status


class PhotoPlace(NamedTuple):
    """What a client says of a photo."""

    lat: float
    lon: float
    height_m: float | None = None
    """Above the ground; without it the photo's middle square is taken to be the cell."""
    heading: float | None = None
    """Compass direction of the photo's upper edge; the grid's unless given."""


class _Live(NamedTuple):
    """A search in memory."""

    stored: StoredSearch
    layout: Layout
    searcher: Searcher
    camera: Camera


class Searches:
    """All searches of a server.

    Args:
        store: Where they are kept.
        default_agent: Who leads where a client names nobody.
    """

    def __init__(self, store: Store, default_agent: str) -> None:
        self._store, self._default_agent = store, default_agent
        self._live: OrderedDict[str, _Live] = OrderedDict()
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()
        self._agents: dict[str, Agent] = {}

    def create(self, wanted: NewSearch) -> SearchState:
        """Begin a search."""
        config = wanted.model_dump(exclude={"goal"}) | {"agent": wanted.agent or self._default_agent}
        if config["agent"] not in AGENTS:  # never a folder: clients do not choose what the server loads
            raise RefusedError(422, f"There is no agent {config['agent']!r}", f"Use one of {', '.join(AGENTS)}")
        try:
            picture = read_photo(base64.b64decode(wanted.goal, validate=True), "goal's picture")
        except (binascii.Error, ValueError):
            raise RefusedError(
                422, "The goal is not written in base64", "Encode the picture's bytes in base64"
            ) from None
        goal = goal_patch(picture, wanted.cell_m, wanted.goal_width_m)
        if shows_nothing(goal):
            problem = "The goal's picture shows nothing that could be recognised: it is of one colour"
            raise RefusedError(422, problem, "Send a picture of the place")
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        stored = StoredSearch(secrets.token_urlsafe(9), begun, config, goal.tobytes(), False)
        live = self._make(stored)
        self._store.add(stored)
        self._keep(live)
        return _state(live, cancelled=False)

    def state(self, name: str) -> SearchState:
        """Say how a search stands."""
        with self._held(name) as live:
            return _state(live, self._is_cancelled(name))

    def belief(self, name: str) -> BeliefMap:
        """Give the belief of a search."""
        with self._held(name) as live:
            return BeliefMap(poa=live.searcher.belief().tolist(), pod=live.searcher.pod.tolist())

    def names(self) -> list[str]:
        """The ids of all searches, the newest first."""
        return self._store.names()

    def cancel(self, name: str) -> SearchState:
        """Cancel a search; cancelling it again changes nothing."""
        with self._held(name) as live:
            self._store.cancel(name)
            return _state(live, cancelled=True)

    def observe(self, name: str, data: bytes, where: PhotoPlace) -> Observed:
        """Take a photo into account, wherever it was taken; it is on the disk before it is answered."""
        photo = read_photo(data)
        with self._held(name) as live:
            if self._is_cancelled(name):
                raise RefusedError(409, "The search was cancelled", "Begin another one")
            cell = _cell_under(live.layout, where)
            taken = self._take(live, cell, photo, where)
            state = _state(live, cancelled=False)
            return Observed(**state.model_dump(), photo=_waypoint(live.layout, cell), taken=taken)

    def _take(self, live: _Live, cell: Cell, photo: Pixels, where: PhotoPlace) -> Taken:
        """Show a photo to its search, where it is new."""
        searcher = live.searcher
        if cell in searcher.glimpses:
            return "repeated"
        if searcher.status != "searching":
            raise RefusedError(409, "The search is over", "Begin another one")
        taken: Taken = "used" if cell == searcher.advice().cell else "kept"
        glimpse = _glimpse(live, cell, photo, where)
        kept = StoredGlimpse(*cell, glimpse.seen, glimpse.pixels.tobytes())
        self._store.append(live.stored.id, len(searcher.glimpses), kept)
        searcher.observe(cell, glimpse)
        return taken

    @contextmanager
    def _held(self, name: str) -> Iterator[_Live]:
        """Hold a search alone: from memory, or made again from its photos."""
        stored = self._store.find(name)
        if stored is None:
            raise RefusedError(404, f"There is no search {name[:40]!r}", "Begin one with POST /searches")
        with self._lock:
            lock = self._locks[name]
        with lock:
            live = self._live.get(name)
            if live is None:
                live = self._make(stored)
                for row, col, seen, pixels in self._store.glimpses(name):
                    picture = np.frombuffer(pixels, dtype=np.uint8).reshape(SIDE, SIDE, 3)
                    live.searcher.observe((row, col), Glimpse(picture, seen))
            self._keep(live)
            yield live

    def _is_cancelled(self, name: str) -> bool:
        stored = self._store.find(name)
        return stored is not None and stored.cancelled

    def _keep(self, live: _Live) -> None:
        with self._lock:
            self._live[live.stored.id] = live
            self._live.move_to_end(live.stored.id)
            while len(self._live) > LIVE:
                self._live.popitem(last=False)

    def _make(self, stored: StoredSearch) -> _Live:
        """Make a search from what it was begun with."""
        config = stored.config
        corners = " ".join(f"{corner['lat']!r},{corner['lon']!r}" for corner in config["outline"])
        layout = lay_out_outline(
            read_outline(corners), config["cell_m"], gap_m=config["gap_m"], heading=config["heading"]
        )
        if layout.grid.count > MAX_CELLS:
            raise RefusedError(422, f"A grid of {layout.grid} has more than {MAX_CELLS} cells", "Ask for larger cells")
        budget = min(config["budget"] or layout.grid.default_budget, 2048)
        searcher = Searcher(
            self._agent(config["agent"]),
            np.frombuffer(stored.goal, dtype=np.uint8).reshape(SIDE, SIDE, 3),
            layout.grid,
            start=_start(layout, config),
            budget=budget,
            searchable=layout.searchable,
            threshold=declaration_threshold(config["false_alarm_cost"]),
            detection=config["detection"],
            seed=config["seed"],
        )
        return _Live(stored, layout, searcher, Camera(config["fov"], config["aspect"]))

    def _agent(self, name: str) -> Agent:
        if name not in self._agents:
            self._agents[name] = make_agent(name)
        return self._agents[name]


def _start(layout: Layout, config: dict[str, object]) -> Cell:
    start = config["start"]
    if not isinstance(start, dict):
        return nearest_searchable(layout, layout.place([(side - 1) / 2 for side in layout.grid.shape]))
    return cell_of(layout, layout.flat_map().from_degrees((start["lat"], start["lon"])), "start")


def _cell_under(layout: Layout, where: PhotoPlace) -> Cell:
    """The cell that a photo was taken over."""
    point = layout.flat_map().from_degrees((where.lat, where.lon))
    cell = layout.cell_at(point) if np.isfinite(point).all() else None
    if cell is None:
        near = nearest_searchable(layout, np.nan_to_num(point))
        away = float(np.linalg.norm(layout.place(near) - point))
        lat, lon = layout.degrees(near)
        problem = f"The photo was taken {away:.0f} m from the nearest cell"
        raise RefusedError(422, problem, f"Photograph the search area; the nearest cell is at {lat:.6f},{lon:.6f}")
    return cell


def _glimpse(live: _Live, cell: Cell, photo: Pixels, where: PhotoPlace) -> Glimpse:
    """Cut a photo to its cell."""
    if where.height_m is None:
        return Glimpse(centre_square(photo))
    layout = live.layout
    longer, _ = live.camera.footprint(where.height_m)
    height, width = photo.shape[:2]
    row, col = layout.within(layout.flat_map().from_degrees((where.lat, where.lon)))
    pose = Pose(
        width_m=longer * width / max(height, width),
        right_m=(col - cell[1]) * layout.pitch_m,
        up_m=(cell[0] - row) * layout.pitch_m,
        turn=0.0 if where.heading is None else where.heading - layout.heading,
    )
    pixels, seen = cut_to_cell(photo, layout.cell_m, pose)
    if seen < MIN_SEEN:
        problem = f"The photo shows only {100 * seen:.0f} % of the cell below"
        raise RefusedError(422, problem, "Fly higher, or nearer to the middle of the cell")
    return Glimpse(pixels, seen)


def _waypoint(layout: Layout, cell: Cell) -> Waypoint:
    lat, lon = layout.degrees(cell).tolist()
    return Waypoint(row=cell[0], col=cell[1], lat=lat, lon=lon)


def _state(live: _Live, cancelled: bool) -> SearchState:
    advice, layout = live.searcher.advice(), live.layout
    return SearchState(
        id=live.stored.id,
        status="cancelled" if cancelled else advice.status,
        next=None if cancelled or advice.cell is None else _waypoint(layout, advice.cell),
        declared=None if advice.declared is None else _waypoint(layout, advice.declared),
        here=advice.here,
        best=_waypoint(layout, advice.best),
        best_probability=advice.best_probability,
        probability_of_success=live.searcher.pos,
        moves_left=advice.moves_left,
        photos=len(live.searcher.glimpses),
        rows=layout.grid.rows,
        cols=layout.grid.cols,
        height_m=live.camera.height_for(layout.cell_m),
        begun=live.stored.begun,
    )
