"""States of a search and its vehicles on the server, requests to join and leave, and the replay of all events."""

from collections import deque
from contextlib import suppress

from airloc.areas.layout import Layout
from airloc.errors import AirlocError
from airloc.grid import Cell
from airloc.missions.messages import (
    CellLocation,
    NewVehicle,
    PhotoOutcome,
    Position,
    RequestError,
    SearchState,
    VehicleState,
)
from airloc.missions.photos import description_warnings
from airloc.missions.plan import FieldSearch, budget_of, far_ports, searchable_cell
from airloc.missions.searcher import Glimpse
from airloc.missions.store import StoredSearch, StoredVehicle, StoredVerdict
from airloc.missions.team import FIRST, TeamSearcher, Vehicle


def new_vehicle(search: FieldSearch, request: NewVehicle, verdicts: int) -> StoredVehicle:
    """Return the event that a vehicle joins.

    Args:
        search: The search.
        request: The request.
        verdicts: Number of verdicts so far.

    Raises:
        AirlocError: If the start is outside the search area.
    """
    searcher, start = search.searcher, request.start
    cell = searcher.sortie_start(searcher.vehicles[request.id if request.id in searcher.vehicles else FIRST].start)
    if start is not None:
        cell = searchable_cell(search.layout, (start.lat, start.lon), "start of the vehicle")
    budget = budget_of(search.plan, search.layout, cell) if request.budget is None else request.budget
    return StoredVehicle(request.id, *cell, budget, len(searcher.photos), verdicts)


def change_team(searcher: TeamSearcher, event: StoredVehicle) -> None:
    """Let a vehicle join, or leave if its budget is zero."""
    if event.budget:
        searcher.join(event.vehicle, (event.row, event.col), event.budget)
    else:
        searcher.leave(event.vehicle)


def vehicle_states(search: FieldSearch, *, ended: bool) -> list[VehicleState]:
    """Return the states of all vehicles; after the end of the search they have no next cell."""
    states = []
    for vehicle in search.searcher.vehicles.values():
        next_cell = None if ended or vehicle.next is None else waypoint_location(search, vehicle.next)
        states.append(
            VehicleState(
                id=vehicle.name,
                next=next_cell,
                route=[] if next_cell is None else _bends(search, vehicle),
                position=cell_location(search.layout, vehicle.position),
                moves_left=max(0, vehicle.moves_left),
                photos=len(vehicle.flown),
                active=vehicle.active,
            )
        )
    return states


def _bends(search: FieldSearch, vehicle: Vehicle) -> list[Position]:
    """Return the positions at which the way of a vehicle to its next cell bends around corners of the fence."""
    if vehicle.next is None:
        return []
    bends = search.bends(vehicle.position, vehicle.next)
    degrees = search.layout.require_plane().to_degrees(bends).tolist() if len(bends) else []
    return [Position(lat=lat, lon=lon) for lat, lon in degrees]


def cell_location(layout: Layout, cell: Cell, place: tuple[float, float] | None = None) -> CellLocation:
    """Return a cell with the position of a fractional row and column, by default its own centre."""
    lat, lon = layout.lat_lon(cell if place is None else place).tolist()
    return CellLocation(row=cell[0], col=cell[1], lat=lat, lon=lon)


def waypoint_location(search: FieldSearch, cell: Cell) -> CellLocation:
    """Return a cell with the position from which it is photographed."""
    return cell_location(search.layout, cell, search.place(cell))


def outcome_of(searcher: TeamSearcher, cell: Cell, vehicle: str) -> PhotoOutcome:
    """Return the outcome of a new photo of a cell by a vehicle."""
    if cell == searcher.vehicle(vehicle).next:
        return "used"
    return "added" if cell in searcher.glimpses else "kept"


def check_vehicle(searcher: TeamSearcher, name: str) -> None:
    """Raise an error if a vehicle does not take part in a search."""
    vehicle = searcher.vehicles.get(name)
    if vehicle is None or not vehicle.active:
        problem = f"The search has no vehicle {name[:32]!r}" if vehicle is None else f"Vehicle {name} has left"
        raise RequestError(404, problem, "Let it join with POST /searches/ID/vehicles")


def check_number(searcher: TeamSearcher, number: int) -> None:
    """Raise an error if a search has no photo of a number."""
    if not 1 <= number <= len(searcher.photos):
        cure = f"Photos have the numbers 1 to {len(searcher.photos)}" if searcher.photos else "Post a photo first"
        raise RequestError(404, f"The search has no photo {str(number)[:20]}", cure)


def _position(degrees: tuple[float, float] | None) -> Position | None:
    return None if degrees is None else Position(lat=degrees[0], lon=degrees[1])


def search_state(stored: StoredSearch, search: FieldSearch, cancelled: bool, vehicle: str | None = None) -> SearchState:
    """Return the state of a search, with the next cell of a vehicle, by default of the next one to arrive."""
    advice, layout = search.searcher.advice(vehicle), search.layout
    return SearchState(
        id=stored.id,
        status="cancelled" if cancelled else advice.status,
        next=None if cancelled or advice.next_cell is None else waypoint_location(search, advice.next_cell),
        declared=None if advice.declared is None else cell_location(layout, *advice.declared[:2]),
        match_probability=advice.match_probability,
        best=cell_location(layout, advice.best),
        best_probability=advice.best_probability,
        probability_of_success=search.searcher.pos,
        moves_left=advice.moves_left,
        photos=len(search.searcher.glimpses),
        rows=layout.grid.rows,
        cols=layout.grid.cols,
        height_m=search.height_m,
        home=_position(search.plan.flight.home),
        landing=_position(search.plan.flight.landing),
        vehicles=vehicle_states(search, ended=cancelled or advice.status != "searching"),
        created=stored.created,
        warnings=_warnings(stored, search),
    )


def _warnings(stored: StoredSearch, search: FieldSearch) -> list[str]:
    """Return warnings about the description of the goal, if there is one, and about a far home or landing."""
    far = [warning[0].upper() + warning[1:] for warning in far_ports(search.plan, search.layout).values()]
    text = stored.settings.get("goal_text")
    return far if text is None else far + description_warnings(text, stored.settings.get("heading", 0.0))


class Replay:
    """Repeats the events of a stored search in their order.

    Args:
        searcher: The searcher before its first photo.
        verdicts: The verdicts in order.
        vehicles: The arrivals and departures of vehicles in order.
    """

    def __init__(self, searcher: TeamSearcher, verdicts: list[StoredVerdict], vehicles: list[StoredVehicle]) -> None:
        self._searcher, self._verdicts, self._vehicles = searcher, deque(verdicts), deque(vehicles)
        self._judged = 0

    def photo(self, cell: Cell, glimpse: Glimpse, vehicle: str) -> None:
        """Repeat the events before a photo, and the photo."""
        self.events()
        flying = [name for name, each in self._searcher.vehicles.items() if each.active]
        name = vehicle if vehicle in flying else flying[0]  # its arrival was lost with a damaged page
        self._searcher.observe(cell, glimpse, check=False, vehicle=name)

    def events(self) -> None:
        """Repeat the verdicts, arrivals and departures that came before the next photo."""
        while True:
            photos = len(self._searcher.photos)
            if self._vehicles and self._vehicles[0].photos <= photos and self._vehicles[0].verdicts <= self._judged:
                with suppress(AirlocError):  # an event before it was lost with a damaged page
                    change_team(self._searcher, self._vehicles.popleft())
            elif self._verdicts and self._verdicts[0].photos <= photos:
                verdict = self._verdicts.popleft()
                self._judged += 1
                if verdict.photo <= photos:
                    self._searcher.judge(verdict.photo, verdict.goal)
            else:
                return
