"""The searcher of several vehicles and of targets that move: one belief, a next cell for every vehicle.

A search begins with one vehicle and is then exactly that of `Searcher`. Further vehicles may join and leave at any
time, each with its own start and budget. Every photo of every vehicle updates the one belief. A vehicle that has taken
its photo is sent where it finds soonest, given where the others are heading: a cell counts little for a vehicle if
another one is nearer, and no two vehicles are sent to the same cell.

If the target moves, the goal image shows where it was at the beginning of the search. Photos tell where that place is
and where the target was not at that time; between photos the belief diffuses. A photo of the place is no find then:
only a person can confirm the target. Cells are photographed again once the target may have walked into them. Time is
counted in rounds, the moves of the vehicle that has flown most.

The state of a search depends only on its photos, verdicts, arrivals and departures, and their order.

Legend: a belief is (rows, cols).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from airloc.agents.agent import Agent
from airloc.agents.belief import BeliefAgent
from airloc.agents.planner import PLANNERS
from airloc.areas.area import Mask, Pixels
from airloc.errors import AirlocError
from airloc.grid import Cell, Grid, distance
from airloc.missions.photos import Goal
from airloc.missions.searcher import Advice, Find, Glimpse, Searcher, Status
from airloc.missions.session import Belief
from airloc.missions.sweep import next_cell, path_length
from airloc.task.motion import STILL, Motion, diffuse
from airloc.task.rules import check_budget

FIRST = "1"
"""Name of the vehicle that a search begins with."""
MAX_VEHICLES = 16


@dataclass
class Vehicle:
    """A vehicle of a search."""

    name: str
    start: Cell
    """Cell in which it was launched."""
    budget: int
    """Moves that it may fly."""
    flown: list[Cell] = field(default_factory=list)
    """Cells that it was sent to and photographed, in order."""
    next: Cell | None = None
    """Cell that it is to photograph next."""
    active: bool = True
    """False after it has left the search."""

    @property
    def position(self) -> Cell:
        """Last cell that it photographed, or the one it was launched in."""
        return self.flown[-1] if self.flown else self.start

    @property
    def moves_flown(self) -> int:
        """Moves flown so far."""
        return path_length([self.start, *self.flown])

    @property
    def moves_left(self) -> int:
        """Moves left in the budget."""
        return self.budget - self.moves_flown

    @property
    def arrival(self) -> int:
        """Moves flown when it has reached its next cell."""
        return self.moves_flown + (0 if self.next is None else distance(self.position, self.next))


class TeamSearcher(Searcher):
    """One search with one or several vehicles, for a target that may move.

    Args:
        agent: Agent that guides the search.
        goal: Image of the goal, (48, 48, 3).
        grid: The grid of cells.
        start: First cell of the first vehicle.
        motion: How the target moves in one round.
        ease: How easily the target walks in each cell, (rows, cols); all cells alike if None.
        parts: Number of the part of the search area in which each cell lies, (rows, cols). A vehicle stays in the part
            in which it is launched. One part if None.
        **options: Further arguments of `Searcher`; the budget is that of the first vehicle.
    """

    def __init__(
        self,
        agent: Agent,
        goal: Pixels | Goal,
        grid: Grid,
        *,
        start: Cell,
        motion: Motion = STILL,
        ease: Belief | None = None,
        parts: npt.NDArray[np.int64] | None = None,
        **options: Any,
    ) -> None:
        self.motion, self._ease = motion, 1.0 if ease is None else ease
        self._sorties = 0  # of vehicles that have flown before
        self._parts = np.zeros(grid.shape, dtype=np.int64) if parts is None else parts
        self._rounds: list[int] = []  # round of every photo
        self.vehicles: dict[str, Vehicle] = {}
        """All vehicles by name, in the order in which they joined."""
        super().__init__(agent, goal, grid, start=start, **options)
        self._planner = agent.planner if isinstance(agent, BeliefAgent) else PLANNERS["lookahead"]
        self._parts = np.where(self.searchable, self._parts, -1)
        self.vehicles[FIRST] = Vehicle(FIRST, start, self.budget, self.flown, start)

    @property
    def _alone(self) -> bool:
        """True while one vehicle searches one part for a goal that does not move, as in `Searcher`."""
        return len(self.vehicles) <= 1 and not self.motion and not self._sorties and self.part_count == 1

    @property
    def part_count(self) -> int:
        """Number of unconnected parts of the search area."""
        return int(self._parts.max()) + 1

    def parts_left(self) -> list[int]:
        """Return the parts of the search area that may have the goal and that no vehicle was launched in."""
        flown = {int(self._parts[vehicle.start]) for vehicle in self.vehicles.values()}
        return [part for part in range(self.part_count) if part not in flown and self._chance_left(part) > 0]

    def sortie_start(self, start: Cell, parts: Sequence[int] | None = None) -> Cell:
        """Return where a vehicle launched in a cell begins its next sortie.

        That is the same cell if its part of the search area is the most probable one, counting cells without a photo;
        else the nearest cell of that part. Parts that vehicles are flying in come last.

        Args:
            start: The cell.
            parts: Parts to choose from; all by default.
        """
        flying = {int(self._parts[vehicle.position]) for vehicle in self._flying()}
        choice = range(self.part_count) if parts is None else parts
        best = max(choice, key=lambda part: (part not in flying, self._chance_left(part), part == self._parts[start]))
        cells = np.argwhere(self._open() & (self._parts == best))
        if best == self._parts[start] or not len(cells):
            return start
        row, col = cells[np.abs(cells - start).max(axis=1).argmin()].tolist()
        return row, col

    def _chance_left(self, part: int) -> float:
        """Return the probability of the cells of a part that may need a photo."""
        return float((self.belief() * self._open())[self._parts == part].sum())

    def _open(self) -> Mask:
        """Return the cells that may have the goal and may need a photo, (rows, cols)."""
        return self._weight > 0 if self.motion else self._left()

    @property
    def status(self) -> Status:
        """Status of the search."""
        if self._alone:
            return super().status
        if self._declared is not None:
            return "found"
        return "searching" if self._flying() else "spent"

    @property
    def team_size(self) -> int:
        """Number of vehicles that have taken part."""
        return len(self.vehicles)

    @property
    def most_photos(self) -> int:
        """Largest number of photos that the budgets allow."""
        photos = sum(vehicle.budget + 1 for vehicle in self.vehicles.values())
        return photos if self.motion else min(photos, int(self.searchable.sum()))

    def vehicle(self, name: str) -> Vehicle:
        """Return a vehicle that takes part in the search.

        Raises:
            AirlocError: If there is no such vehicle, or it has left.
        """
        vehicle = self.vehicles.get(name)
        if vehicle is None or not vehicle.active:
            problem = f"The search has no vehicle {name[:40]!r}" if vehicle is None else f"Vehicle {name} has left"
            raise AirlocError(problem, f"Let it join, or use one of {', '.join(self._active())}")
        return vehicle

    def join(self, name: str, start: Cell, budget: int) -> Vehicle:
        """Let a vehicle take part, or fly another sortie with a new budget when its own is spent or it has left.

        Args:
            name: Name of the vehicle.
            start: Cell in which it is launched.
            budget: Moves that it may fly from now on.

        Raises:
            AirlocError: For the reasons of `check_join`.
        """
        self.check_join(name, start, budget)
        self._catch_up()
        self._sorties += name in self.vehicles
        vehicle = self.vehicles[name] = Vehicle(name, start, budget)
        self._plan([vehicle])
        return vehicle

    def check_join(self, name: str, start: Cell, budget: int) -> None:
        """Check that a vehicle can join.

        Raises:
            AirlocError: If the vehicle takes part already, there are too many, or start or budget are not valid.
        """
        if name in self._active() and self.vehicles[name].next is not None:
            raise AirlocError(f"Vehicle {name} takes part already", "Use another name, or let it leave first")
        if len(self._active()) >= MAX_VEHICLES or len(self.vehicles) >= 16 * MAX_VEHICLES:
            raise AirlocError(f"The search has {len(self.vehicles)} vehicles", f"Use at most {MAX_VEHICLES} at a time")
        self._check_start(start)
        check_budget(budget)

    def leave(self, name: str) -> None:
        """Let a vehicle leave. Its next cell is free for the others.

        Raises:
            AirlocError: For the reasons of `check_leave`.
        """
        self.check_leave(name)
        vehicle = self.vehicles[name]
        vehicle.active, vehicle.next = False, None
        self._plan([])

    def check_leave(self, name: str) -> None:
        """Check that a vehicle can leave.

        Raises:
            AirlocError: If there is no such vehicle, it has left, or it is the only one.
        """
        self.vehicle(name)
        if len(self._active()) == 1:
            raise AirlocError(f"Vehicle {name} is the only one", "Let another one join first, or cancel the search")

    def observe(self, cell: Cell, glimpse: Glimpse, *, check: bool = True, vehicle: str = FIRST) -> Advice:
        """Update the search with a photo of a cell by a vehicle; see `Searcher.observe`.

        Raises:
            UnusablePhotoError: If the photo is black, blurred or misexposed. The search is as before.
            AirlocError: If there is no such vehicle, or for the reasons of `Searcher.observe`.
        """
        flyer = self.vehicle(vehicle)
        self._next = flyer.next
        known = len(self.photos)
        if self._alone:
            super().observe(cell, glimpse, check=check)
            flyer.next = self._next
        else:
            self._catch_up()
            self._check(cell, glimpse)
            if check:
                self.check_use(cell, glimpse)
            self._add(cell, glimpse, again=bool(self.motion) and cell == flyer.next)
            self._session.watch(cell, self._glimpses[cell].pixels)
            if cell == flyer.next:
                flyer.flown.append(cell)
        if len(self.photos) > known:
            self._rounds.append(max([flyer.moves_flown, *self._rounds[-1:]]))
        if not self._alone:
            self._update(cell)
        return self.advice(vehicle)

    def judge(self, number: int, goal: bool) -> Advice:
        """Update the search with the verdict of a person on a photo; see `Searcher.judge`."""
        advice = super().judge(number, goal)
        if self._alone:
            self.vehicles[FIRST].next = self._next
        return advice

    def advice(self, vehicle: str | None = None) -> Advice:
        """Return the state of the search and the next waypoint of a vehicle; by default of the next one to arrive."""
        advice = super().advice()
        if not self.vehicles or self._alone:
            return advice
        flyer = self.next_to_arrive() if vehicle is None else self.vehicles[vehicle]
        if flyer is None:
            return advice._replace(next_cell=None, moves_left=0)
        next_cell = None if self._declared is not None else flyer.next
        return advice._replace(next_cell=next_cell, moves_left=flyer.moves_left)

    def next_to_arrive(self) -> Vehicle | None:
        """Return the vehicle that reaches its next cell first; None if none is under way."""
        return min(self._flying(), key=lambda vehicle: vehicle.arrival, default=None)

    def _flying(self) -> list[Vehicle]:
        """Return the vehicles that have a next cell."""
        return [vehicle for vehicle in self.vehicles.values() if vehicle.next is not None]

    def belief(self) -> Belief:
        """Return the probability of area (POA) of every cell, (rows, cols)."""
        return self._track()[0] if self.motion else super().belief()

    @property
    def pos(self) -> float:
        """Probability of success (POS): that a photo so far shows the target and that it is recognised."""
        return 1 - self._track(self.prior)[1] if self.motion else super().pos

    def _track(self, place: Belief | None = None) -> tuple[Belief, float]:
        """Return the belief of a moving target, and the probability that no photo has shown it.

        All rounds are repeated from where the target is now believed to have been at first, or from `place`.
        """
        if place is None:
            place = self._session.place()
        belief = self._weight if place is None else place * (self._weight > 0)
        belief, missed, now = belief / belief.sum(), 1.0, 0
        for photo, at in zip(self.photos, self._rounds, strict=True):
            for _ in range(now, at):
                belief = diffuse(belief, self.transition)
            now = at
            belief[photo.find.cell] *= 1 - self._pod(photo)
            left = float(belief.sum())
            missed, belief = missed * left, belief / max(left, 1e-300)
        return self._with_declared(belief), missed

    @cached_property
    def transition(self) -> sparse.csr_array:
        """Probability of each step of the target in one round; it stays in the search area."""
        return self.motion.transition(self.grid.shape, np.asarray(self.searchable * self._ease, dtype=np.float64))

    def _best_find(self) -> Find | None:
        """Return the find to declare: if the target moves, only one that a person has confirmed."""
        find = super()._best_find()
        confirmed = any(photo.verdict for photo in self.photos)
        return find if confirmed or not self.motion else None

    def _replan(self) -> None:
        """Choose the next cells of the vehicles that have photographed theirs."""
        if self._alone:
            super()._replan()
        else:
            self._plan([])

    def _plan(self, also: Sequence[Vehicle]) -> None:
        """Choose next cells for vehicles whose next cell is photographed or missing, and for others."""
        taken = self._taken()
        for vehicle in self.vehicles.values():
            arrived = vehicle.next is None or (vehicle.next == vehicle.position if self.motion else taken[vehicle.next])
            if vehicle.active and (arrived or vehicle in also):
                vehicle.next = None
                vehicle.next = self._choose(vehicle, taken)

    def _choose(self, vehicle: Vehicle, taken: Mask) -> Cell | None:
        """Return the cell that a vehicle is sent to, none of those that are taken."""
        if not (self.motion or self._left().any()):
            return None
        others = [other for other in self.vehicles.values() if other.active and other is not vehicle]
        heading = [other.next or other.position for other in others]
        free = self.searchable & ~taken & (self._parts == self._parts[vehicle.position])
        belief = self.belief()
        for other in others:
            if other.next is not None:
                free[other.next] = False
        if not vehicle.flown and free[vehicle.start]:
            return vehicle.start
        if self.motion:
            free[vehicle.position] = False
        return next_cell(self._planner, belief, free, vehicle.position, vehicle.moves_left, heading)

    def _taken(self) -> Mask:
        """Return the cells that need no further photo."""
        return np.zeros(self.grid.shape, dtype=np.bool_) if self.motion else self._photographed()

    def _catch_up(self) -> None:
        """Let the agent observe the photos that it has not moved over yet."""
        for cell, glimpse in self._glimpses.items():
            if cell not in self._session.observed:
                self._session.watch(cell, glimpse.pixels)

    def _active(self) -> list[str]:
        return [name for name, vehicle in self.vehicles.items() if vehicle.active]
