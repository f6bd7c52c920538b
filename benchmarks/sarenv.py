"""Planned flights of several drones beside the planners of SAREnv, on its probability maps and by its metrics.

    python -m benchmarks.sarenv PATH

PATH is a folder with the Python package `sarenv` and its maps as `heatmaps/N.npz`; the package is imported from there.
All planners fly from the last known point in the middle of the map. The size medium searches 1.8 km around it, as the
published results of SAREnv do. Victims are sampled from the map, the same ones for all planners. Needs geopandas.

The time-discounted score of SAREnv sums the probability in view along the flight, discounted by 0.999 for each metre,
the metres of all earlier drones included, so that the first kilometre of the first drone decides it.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.ndimage import gaussian_filter
from scipy.spatial import KDTree
from shapely.geometry import LineString, Point

from airloc.missions.tours import parallel_tracks, plan_tours, soonest_leg

CELL_M = 30.0
FOV_DEGREES, HEIGHT_M = 45.0, 80.0
RADIUS_M = HEIGHT_M * float(np.tan(np.radians(FOV_DEGREES / 2)))
DISCOUNT = 0.999
"""Per metre."""
SIZES = {"medium": 1800.0, "large": 3200.0}
"""Radius around the last known point in metres, flat ground and temperate climate."""
FLIGHTS = {1: 100_000.0, 5: 300_000.0}
"""Metres of all drones together by their number."""
LEGS = {1: 40, 5: 100}
"""Cells of the first leg of each drone by the number of drones."""
PITCHES, TRACKS = (66.0,), (66.0, 60.0, 54.0)
"""Distances between the cells of tours and between parallel tracks that are tried, in metres; the footprint is 66 m."""
COMPLETE = 0.998
"""Fraction of the probability from which parallel tracks cover the whole map."""
SETTINGS = {"overlap": 0.0, "path_point_spacing_m": 10.0, "transition_distance_m": 50.0, "border_gap_m": 15.0}
"""Settings of the planners of SAREnv: its defaults."""


class ProbabilityMap:
    """The part of a map within some metres of its middle; positions are metres east and north of it."""

    def __init__(self, path: Path, radius: float) -> None:
        whole = np.load(path)["heatmap"].astype(np.float64)
        rows, cols = (np.flatnonzero(np.abs(_centres(side)) <= radius) for side in whole.shape)
        y, x = _centres(whole.shape[0])[rows], _centres(whole.shape[1])[cols]
        self.mass = np.where(np.hypot(y[:, None], x) <= radius, whole[np.ix_(rows, cols)], 0.0)
        half = CELL_M / 2
        self.bounds = (x[0] - half, y[0] - half, x[-1] + half, y[-1] + half)
        self.x, self.y = np.meshgrid(x, y)

    def victims(self, count: int, seed: int) -> list[Point]:
        """Sample positions of victims."""
        rng = np.random.default_rng(seed)
        chosen = rng.choice(self.mass.size, count, p=self.mass.ravel() / self.mass.sum())
        jitter = (rng.random((2, count)) - 0.5) * CELL_M
        return [
            Point(*place)
            for place in zip(*(np.stack([self.x, self.y]).reshape(2, -1)[:, chosen] + jitter), strict=True)
        ]

    def seen(self, lines: list[LineString]) -> float:
        """Return the probability that flights see."""
        points = np.concatenate([np.array(line.segmentize(CELL_M / 6).coords) for line in lines])
        offsets = CELL_M * (np.random.default_rng(0).random((2, 9, *self.mass.shape)) - 0.5)  # nine points of each cell
        places = np.stack([self.x + offsets[1], self.y + offsets[0]], axis=-1)
        away, _ = KDTree(points).query(places, distance_upper_bound=2 * RADIUS_M)
        return float((self.mass * (away <= RADIUS_M).mean(axis=0)).sum())


def airloc_flights(ground: ProbabilityMap, drones: int, metres: float) -> list[LineString]:
    """Plan the flights of all drones: the leg that finds soonest, then the tours or tracks that see most."""
    legs, left = [], ground.mass.copy()
    middle = tuple(int(number) for number in np.unravel_index(np.hypot(ground.x, ground.y).argmin(), left.shape))
    for _ in range(drones):
        leg = soonest_leg(left, middle, LEGS[drones], radius=RADIUS_M / CELL_M, discount=DISCOUNT**CELL_M)  # type: ignore[arg-type]
        legs.append([(float(ground.x[cell]), float(ground.y[cell])) for cell in leg])
        for x, y in legs[-1]:
            left[np.hypot(ground.x - x, ground.y - y) <= RADIUS_M] = 0
    tracks = [_tours(ground, left, legs, metres / drones, pitch, _tracks) for pitch in TRACKS]
    whole = float(ground.mass.sum())
    complete = [plan for plan in tracks if ground.seen(plan) > COMPLETE * whole]
    if complete:
        return complete[-1]  # the closest tracks
    plans = [_tours(ground, left, legs, metres / drones, pitch, plan) for pitch in PITCHES for plan in PLANS]
    around = LineString(_spiral(max(PITCHES), metres)).coords
    plans.append(
        [_cut(LineString([*leg, *around]), metres / drones) for leg in legs[:1]] + [LineString(leg) for leg in legs[1:]]
    )
    return max(plans, key=ground.seen)


def _spiral(pitch: float, metres: float) -> Any:
    """Return points of an Archimedean spiral around the middle."""
    turns = np.sqrt(metres / (np.pi * pitch))
    angle = 2 * np.pi * turns * np.sqrt(np.linspace(0, 1, int(metres / 10)))
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) * (pitch * angle / (2 * np.pi))[:, None]


def _tours(
    ground: ProbabilityMap,
    left: Any,
    legs: list[list[tuple[float, float]]],
    metres: float,
    pitch: float,
    plan: Callable[..., list[list[tuple[int, int]]]],
) -> list[LineString]:
    """Continue the legs over a coarser grid, one track wide."""
    side = 2 + int(np.ceil((ground.bounds[2] - ground.bounds[0]) / pitch))  # with a cell more at both ends
    row, col = (((part + side * pitch / 2) // pitch).astype(int) for part in (ground.y, ground.x))
    mass = np.zeros((side, side))
    np.add.at(mass, (row, col), left)
    starts = [(int((y + side * pitch / 2) // pitch), int((x + side * pitch / 2) // pitch)) for (*_, (x, y)) in legs]
    budgets = [(metres - LineString(leg).length) / pitch - 1 for leg in legs]
    lines = []
    for leg, cells in zip(legs, plan(mass, starts, budgets), strict=True):
        tour = [((col + 0.5 - side / 2) * pitch, (row + 0.5 - side / 2) * pitch) for row, col in cells[1:]]
        lines.append(_cut(LineString([*leg, *tour]), metres))
    return lines


def _insertion(mass: Any, starts: Any, budgets: Any) -> list[list[tuple[int, int]]]:
    return plan_tours(mass, starts, budgets)


def _region(mass: Any, starts: Any, budgets: Any, *, smoothing: float, turned: bool) -> list[list[tuple[int, int]]]:
    """Parallel tracks over the largest region of high smoothed probability that the budgets allow."""
    if turned:
        paths = _region(mass.T, [start[::-1] for start in starts], budgets, smoothing=smoothing, turned=False)
        return [[(row, col) for col, row in path] for path in paths]
    smooth = gaussian_filter(mass, smoothing)
    low, high, best = 0.0, float(smooth.max()), [[start] for start in starts]
    for _ in range(14):  # bisection of the threshold
        middle = (low + high) / 2
        paths = parallel_tracks(smooth * (smooth >= middle), starts)
        long = any(_length(path) > budget for path, budget in zip(paths, budgets, strict=True))
        low, high, best = (middle, high, best) if long else (low, middle, paths)
    return best


def _length(path: list[tuple[int, int]]) -> float:
    return float(np.linalg.norm(np.diff(np.array(path), axis=0), axis=1).sum())


PLANS: tuple[Callable[..., list[list[tuple[int, int]]]], ...] = (
    _insertion,
    *(partial(_region, smoothing=smoothing, turned=turned) for smoothing in (3.0,) for turned in (False, True)),
)


def _tracks(mass: Any, starts: Any, budgets: Any) -> list[list[tuple[int, int]]]:
    wider = mass + np.roll(mass, 1, axis=1) + np.roll(mass, -1, axis=1)  # tracks end outside, so that corners are seen
    del budgets
    return parallel_tracks(wider, starts)


def _cut(line: LineString, metres: float) -> LineString:
    from shapely.ops import substring

    return line if line.length <= metres else substring(line, 0, metres)


def _centres(count: int) -> Any:
    return (np.arange(count) + 0.5 - count / 2) * CELL_M


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--maps", type=int, nargs="*", default=list(range(1, 16)))
    parser.add_argument("--size", choices=SIZES, default="medium")
    parser.add_argument("--victims", type=int, default=200)
    parser.add_argument("--drones", type=int, choices=FLIGHTS, nargs="*", default=list(FLIGHTS))
    parser.add_argument("--planners", nargs="*", default=["Greedy", "Spiral", "Concentric", "Pizza"])
    options = parser.parse_args()
    sys.path.insert(0, str(options.path))
    import geopandas
    from sarenv.analytics import metrics, paths

    theirs = {
        "Greedy": paths.generate_greedy_path,
        "Spiral": paths.generate_spiral_path,
        "Concentric": paths.generate_concentric_circles_path,
        "Pizza": paths.generate_pizza_zigzag_path,
    }
    for drones in options.drones:
        metres = FLIGHTS[drones]
        rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in (*options.planners, "airloc")}
        for number in options.maps:
            ground = ProbabilityMap(options.path / "heatmaps" / f"{number}.npz", SIZES[options.size])
            victims = geopandas.GeoDataFrame(geometry=ground.victims(options.victims, number))
            judge = metrics.PathEvaluator(ground.mass, ground.bounds, victims, FOV_DEGREES, HEIGHT_M, int(CELL_M))
            for name in rows:
                began = time.perf_counter()
                if name == "airloc":
                    lines = airloc_flights(ground, drones, metres)
                else:
                    lines = theirs[name](
                        center_x=0.0,
                        center_y=0.0,
                        max_radius=SIZES[options.size],
                        probability_map=ground.mass,
                        bounds=ground.bounds,
                        num_drones=drones,
                        budget=metres,
                        fov_deg=FOV_DEGREES,
                        altitude=HEIGHT_M,
                        **SETTINGS,
                    )
                seconds = time.perf_counter() - began
                result = judge.calculate_all_metrics(lines, DISCOUNT)
                found = result["victim_detection_metrics"]["percentage_found"]
                discounted, length = result["total_time_discounted_score"], result["total_path_length"]
                rows[name].append((found, 1000 * discounted, length, seconds))
            print(
                number, {name: tuple(round(value, 2) for value in each[-1]) for name, each in rows.items()}, flush=True
            )
        _show(rows, f"{drones} drones, {metres / 1000:.0f} km, {len(options.maps)} maps, {options.size}")


def _show(rows: dict[str, list[tuple[float, ...]]], title: str) -> None:
    table = Table("planner", "victims found %", "time-discounted x 1000", "km", "s", "maps ahead", title=title)
    ours = np.array(rows["airloc"])
    for name, each in rows.items():
        values = np.array(each)
        ahead = (
            ""
            if name == "airloc"
            else f"{int((ours[:, 0] >= values[:, 0]).sum())}, {int((ours[:, 1] > values[:, 1]).sum())}"
        )
        table.add_row(name, *(f"{value:.2f}" for value in values.mean(axis=0)), ahead)
    Console().print(table)


if __name__ == "__main__":
    main()
