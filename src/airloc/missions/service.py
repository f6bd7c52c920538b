"""The search service: several searches at once, each behind its own lock, each rebuilt from the store after a restart.

Every error of a client is a `RequestError` with an HTTP status, and changes no search.
"""

import secrets
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from airloc.agents.agent import Agent
from airloc.agents.registry import AGENTS, DEFAULT_AGENT, make_agent
from airloc.areas.area import Pixels
from airloc.areas.layout import Layout
from airloc.areas.raster import Raster
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.missions.intake import (
    camera_position,
    cell_below,
    crop_photo,
    decode_goal,
    decode_map,
    prior_sources,
    road_features,
    stored_glimpse,
    stored_goal,
    stored_position,
)
from airloc.missions.messages import (
    BeliefMap,
    CandidateList,
    CandidatePhoto,
    NewVehicle,
    PhotoOutcome,
    PhotoPosition,
    PhotoQuery,
    PhotoResult,
    RequestError,
    SearchList,
    SearchState,
    SearchSummary,
)
from airloc.missions.orthophotos import check_orthophoto, match_map, open_tiff
from airloc.missions.photos import read_photo
from airloc.missions.plan import FieldSearch, lay_out_search, start_search
from airloc.missions.searcher import UnusablePhotoError
from airloc.missions.settings import NewSearch, StoredSettings
from airloc.missions.store import SearchStore, StoredGlimpse, StoredSearch, StoredVehicle, StoredVerdict, StoreError
from airloc.missions.team import FIRST
from airloc.missions.terrain import walking_ease
from airloc.missions.vehicles import (
    Replay,
    cell_location,
    change_team,
    check_number,
    check_vehicle,
    new_vehicle,
    outcome_of,
    search_state,
)

T = TypeVar("T")

MAX_CELLS = 20_000
MAP = "orthophoto (map_tif)"
"""Name of the orthophoto of a new search in errors."""
MAX_IN_MEMORY = 64
"""Searches kept in memory; others are rebuilt from their photos on request."""


class PhotoArrival(NamedTuple):
    """When a photo arrived and where it was taken; None where the store does not have it."""

    received: str | None
    """Time in UTC, ISO 8601."""
    position: PhotoPosition | None

    @property
    def vehicle(self) -> str:
        """Vehicle that took the photo; the first one if it is not known."""
        return FIRST if self.position is None else self.position.vehicle


class ActiveSearch(NamedTuple):
    """A search in memory."""

    stored: StoredSearch
    field: FieldSearch
    arrivals: list[PhotoArrival]
    """One for each photo, in their order."""

    def state(self, cancelled: bool, vehicle: str | None = None) -> SearchState:
        """Return the state of the search, with the next cell of a vehicle, by default of the next one to arrive."""
        return search_state(self.stored, self.field, cancelled, vehicle)


class SearchService:
    """All searches of a server.

    Args:
        store: The store of the searches.
        default_agent: Agent of searches whose request does not name one.
        orthophoto: An orthophoto that searches may match their goal against.
    """

    def __init__(self, store: SearchStore, default_agent: str, orthophoto: Path | None = None) -> None:
        self._store, self._default_agent, self._orthophoto = store, default_agent, orthophoto
        self._active: OrderedDict[str, ActiveSearch] = OrderedDict()
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()
        self._agents: dict[str, Agent] = {}
        self.on_change: Callable[[str], None] = lambda search: None
        """Called with the id of a search after it may have changed, from any thread."""

    def create(self, request: NewSearch) -> SearchState:
        """Create a search."""
        agent = request.agent or self._default_agent
        if agent not in AGENTS:  # never a folder: clients do not choose which files the server loads
            raise RequestError(422, f"There is no agent {agent!r}", f"Use one of {', '.join(AGENTS)}")
        settings = request.model_dump(exclude={"goal", "map_tif"}) | {"agent": agent}
        created = datetime.now(UTC).isoformat(timespec="seconds")
        stored = StoredSearch(secrets.token_urlsafe(9), created, settings, b"", False, decode_goal(request))
        ground = decode_map(request)
        active = self._build(stored)
        if ground is not None:
            check_orthophoto(ground, active.field.layout, MAP)
        if request.match_map:
            settings["map_weights"] = self._match_map(active, ground)
            active = self._build(stored)
        active = active._replace(stored=stored._replace(goal=active.field.goal.patch.tobytes()))
        self._store.add(active.stored, ground)
        self._remember(active)
        return active.state(cancelled=False)

    def _match_map(self, active: ActiveSearch, ground: bytes | None) -> str:
        """Match the goal of a search against its own orthophoto, or that of the server; return the weights of cells."""
        search, agent = active.field, self._agent(active.field.plan.agent)
        if ground is not None:
            with open_tiff(ground, MAP) as raster:
                return match_map(raster, search.goal, agent, search.layout)
        if self._orthophoto is None:
            raise RequestError(
                422, "There is no orthophoto to match the goal with", f"Send an {MAP}, or use serve --map"
            )
        with Raster(self._orthophoto) as raster:
            return match_map(raster, search.goal, agent, search.layout)

    def set_orthophoto(self, search: str, content: bytes) -> SearchState:
        """Show an orthophoto below the grid of a search."""
        with self._locked(search) as active:
            self._store.set_orthophoto(search, check_orthophoto(content, active.field.layout, "orthophoto"))
            return active.state(self._store.is_cancelled(search))

    def orthophoto(self, search: str) -> bytes | None:
        """Return the orthophoto that was sent for a search, if there is one."""
        return self._store.orthophoto(search)

    def state(self, search: str) -> SearchState:
        """Return the state of a search."""
        with self._locked(search) as active:
            return active.state(self._store.is_cancelled(search))

    def belief(self, search: str) -> BeliefMap:
        """Return the probabilities of all cells."""
        with self._locked(search) as active:
            searcher = active.field.searcher
            return BeliefMap(poa=searcher.belief().tolist(), pod=searcher.pod.tolist())

    def list_searches(self) -> SearchList:
        """Return all searches, newest first."""
        summaries = [SearchSummary(**summary._asdict()) for summary in self._store.summaries()]
        return SearchList(searches=[summary.id for summary in summaries], summaries=summaries)

    def inspect(self, search: str, reader: Callable[[ActiveSearch, SearchState], T]) -> T:
        """Return what a function reads from a search, which does not change meanwhile."""
        with self._locked(search) as active:
            return reader(active, active.state(self._store.is_cancelled(search)))

    def cancel(self, search: str) -> SearchState:
        """Cancel a search; cancelling it again changes nothing."""
        with self._locked(search) as active:
            self._store.cancel(search)
            return active.state(cancelled=True)

    def observe(self, search: str, data: bytes, query: PhotoQuery) -> PhotoResult:
        """Update a search with a photo; the photo is on the disk before the call returns."""
        photo, position = read_photo(data), camera_position(query, data)
        with self._locked(search) as active:
            if self._store.is_cancelled(search):
                raise RequestError(409, "The search is cancelled", "Create another search")
            layout = active.field.layout
            cell = cell_below(layout, position)
            number, reason = None, None
            try:
                outcome, number = self._observe_cell(active, cell, data, photo, position)
            except UnusablePhotoError as error:
                outcome, reason = "unusable", str(error)
            state = active.state(cancelled=False, vehicle=position.vehicle).model_dump()
            return PhotoResult(
                **state, photo=cell_location(layout, cell), outcome=outcome, number=number, reason=reason
            )

    def _observe_cell(
        self, active: ActiveSearch, cell: Cell, data: bytes, photo: Pixels, position: PhotoPosition
    ) -> tuple[PhotoOutcome, int]:
        """Store and observe a photo; return its outcome and its number."""
        searcher = active.field.searcher
        check_vehicle(searcher, position.vehicle)
        glimpse = crop_photo(active.field, cell, photo, position)
        if (same := searcher.find_photo(cell, glimpse)) is not None:
            return "repeated", same.number
        if searcher.status != "searching":
            raise RequestError(409, "The search has ended", "Create another search")
        if not position.accept:
            searcher.check_use(cell, glimpse)
        outcome = outcome_of(searcher, cell, position.vehicle)
        pixels, received = glimpse.pixels.tobytes(), datetime.now(UTC).isoformat(timespec="seconds")
        stored = StoredGlimpse(*cell, glimpse.coverage, pixels, data, position.model_dump_json(), received)
        self._store.append(active.stored.id, len(searcher.photos), stored)
        searcher.observe(cell, glimpse, check=False, vehicle=position.vehicle)
        active.arrivals.append(PhotoArrival(received, position))
        return outcome, len(searcher.photos)

    def candidates(self, search: str) -> CandidateList:
        """Return all photos of a search, ranked."""
        with self._locked(search) as active:
            layout = active.field.layout
            photos = [
                CandidatePhoto(
                    **cell_location(layout, *photo.find[:2]).model_dump(),
                    number=photo.number,
                    match_probability=photo.find.probability,
                    verdict=photo.verdict,
                )
                for photo in active.field.searcher.candidates()
            ]
            return CandidateList(candidates=photos)

    def photo(self, search: str, number: int) -> bytes:
        """Return the file of a photo as it was sent."""
        with self._locked(search) as active:
            check_number(active.field.searcher, number)
            file = self._store.photo(search, number)
            if file is None:
                problem = f"The file of photo {number} is not in the store"
                raise RequestError(404, problem, "Earlier versions did not keep the files of photos")
            return file

    def glimpse(self, search: str, number: int) -> Pixels:
        """Return the part of a photo that shows its cell."""
        with self._locked(search) as active:
            check_number(active.field.searcher, number)
            return active.field.searcher.photos[number - 1].glimpse.pixels

    def judge(self, search: str, number: int, goal: bool) -> SearchState:
        """Update a search with the verdict of a person; the verdict is on the disk before the call returns."""
        with self._locked(search) as active:
            if self._store.is_cancelled(search):
                raise RequestError(409, "The search is cancelled", "Create another search")
            searcher = active.field.searcher
            check_number(searcher, number)
            if searcher.photos[number - 1].verdict is not goal:
                self._store.append_verdict(search, StoredVerdict(number, goal, len(searcher.photos)))
                searcher.judge(number, goal)
            return active.state(cancelled=False)

    def join(self, search: str, request: NewVehicle) -> SearchState:
        """Let a vehicle take part in a search; its arrival is on the disk before the call returns."""
        with self._locked(search) as active:
            searcher = active.field.searcher
            if self._store.is_cancelled(search) or searcher.status == "found":
                raise RequestError(409, "The search has ended", "Create another search")
            known = searcher.vehicles.get(request.id)
            if known is not None and known.active and known.next is not None:
                raise RequestError(409, f"Vehicle {request.id} takes part already", "Use another name")
            event = new_vehicle(active.field, request, len(self._store.verdicts(search)))
            searcher.check_join(event.vehicle, (event.row, event.col), event.budget)
            self._store.append_vehicle(search, event)
            change_team(searcher, event)
            return active.state(cancelled=False, vehicle=request.id)

    def leave(self, search: str, vehicle: str) -> SearchState:
        """Let a vehicle leave a search; its departure is on the disk before the call returns."""
        with self._locked(search) as active:
            searcher = active.field.searcher
            check_vehicle(searcher, vehicle)
            searcher.check_leave(vehicle)
            event = StoredVehicle(vehicle, 0, 0, 0, len(searcher.photos), len(self._store.verdicts(search)))
            self._store.append_vehicle(search, event)
            change_team(searcher, event)
            return active.state(self._store.is_cancelled(search))

    def require(self, search: str) -> StoredSearch:
        """Return the stored beginning of a search, or raise an error if there is none."""
        stored = self._store.find(search)
        if stored is None:
            raise RequestError(404, f"There is no search {search[:40]!r}", "Create one with POST /searches")
        return stored

    @contextmanager
    def _locked(self, search: str) -> Iterator[ActiveSearch]:
        """Lock a search; take it from memory, or rebuild it from its photos."""
        stored = self.require(search)
        with self._lock:
            lock = self._locks[search]
        with lock:
            active = self._active.get(search)
            if active is None:
                active = self._rebuild(stored)
            self._remember(active)
            writes = self._store.writes
            yield active
        if self._store.writes != writes:  # perhaps of another search, which costs its watchers nothing
            self.on_change(search)

    def check_store(self) -> None:
        """Check that every stored search can be rebuilt, without its photos.

        Raises:
            StoreError: If the settings of a search are not valid, or a photo lies outside its grid.
        """
        for search in self._store.list_ids():
            stored = self._store.find(search)
            assert stored is not None
            with self._damage_named(search):
                grid = _layout(StoredSettings.model_validate(stored.settings), self._default_agent).grid
                if not all(grid.contains(cell) for cell in self._store.cells(search)):
                    raise AirlocError("a photo lies outside its grid", "Restore a backup")

    def _rebuild(self, stored: StoredSearch) -> ActiveSearch:
        """Build a search and let it observe its stored photos."""
        with self._damage_named(stored.id):
            active = self._build(stored)
            self._replay(active)
        return active

    @contextmanager
    def _damage_named(self, search: str) -> Iterator[None]:
        """Raise StoreError if the stored values of a search are not valid."""
        try:
            yield
        except StoreError:
            raise
        except (AirlocError, ValidationError, ValueError, TypeError, IndexError) as error:
            reason = error.problem if isinstance(error, AirlocError) else type(error).__name__
            raise self._store.damaged(f"the search {search} has invalid values ({reason})") from error

    def _replay(self, active: ActiveSearch) -> None:
        """Repeat the stored photos, verdicts and changes of the team, in their order."""
        name = active.stored.id
        replay = Replay(active.field.searcher, self._store.verdicts(name), self._store.vehicles(name))
        for stored in self._store.glimpses(name):
            arrival = PhotoArrival(stored.received, stored_position(stored))
            replay.photo((stored.row, stored.col), stored_glimpse(active.field, stored), arrival.vehicle)
            active.arrivals.append(arrival)
        replay.events()

    def _remember(self, active: ActiveSearch) -> None:
        with self._lock:
            self._active[active.stored.id] = active
            self._active.move_to_end(active.stored.id)
            while len(self._active) > MAX_IN_MEMORY:
                self._active.popitem(last=False)

    def _build(self, stored: StoredSearch) -> ActiveSearch:
        """Build a search before its first photo."""
        settings = StoredSettings.model_validate(stored.settings)
        plan = settings.plan(self._default_agent)
        layout = _layout(settings, self._default_agent)
        goal = stored_goal(settings, stored, layout)
        ease = walking_ease(layout, road_features(settings))
        search = start_search(plan, layout, goal, self._agent(plan.agent), prior_sources(settings), ease)
        return ActiveSearch(stored, search, [])

    def _agent(self, name: str) -> Agent:
        if name not in self._agents:
            self._agents[name] = make_agent(name)
        return self._agents[name]


def valid_settings(settings: dict[str, Any]) -> bool:
    """Return whether stored settings make a search."""
    try:
        _layout(StoredSettings.model_validate(settings), DEFAULT_AGENT)
    except (AirlocError, ValidationError):
        return False
    return True


def _layout(settings: StoredSettings, default_agent: str) -> Layout:
    """Lay out the grid of a search."""
    layout = lay_out_search(settings.plan(default_agent), settings.shape())
    if layout.grid.count > MAX_CELLS:
        problem = f"The grid has {layout.grid} cells, more than {MAX_CELLS}"
        raise RequestError(422, problem, "Choose larger cells or a smaller outline")
    return layout
