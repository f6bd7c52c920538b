"""Planned flights of several drones beside the planners of SAREnv, on its probability maps and by its metrics.

    python -m benchmarks.sarenv PATH

PATH is a folder with the Python package `sarenv` and its maps as `heatmaps/N.npz`; the package is imported from there.
All planners fly from the last known point in the middle of the map. The size medium searches 1.8 km around it, as the
published results of SAREnv do. Victims are sampled from the map, the same ones for all planners. Needs geopandas.

The settings of `airloc.missions.filmed` and `airloc.missions.tours` were chosen on the maps 1 to 5, so the tables show
the other maps by default.

The time-discounted score of SAREnv sums the probability in view along the flight, discounted by 0.999 for each metre,
the metres of all earlier drones included, so that the first kilometres of the first drone decide it.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from shapely.geometry import LineString, Point

from airloc.missions.filmed import plan_filmed_flights

CELL_M = 30.0
FOV_DEGREES, HEIGHT_M = 45.0, 80.0
WIDTH_M = 2 * HEIGHT_M * float(np.tan(np.radians(FOV_DEGREES / 2)))
DISCOUNT = 0.999
"""Per metre."""
SIZES = {"medium": 1800.0, "large": 3200.0}
"""Radius around the last known point in metres, flat ground and temperate climate."""
FLIGHTS = {1: 100_000.0, 5: 300_000.0}
"""Metres of all drones together by their number."""
SETTINGS = {"overlap": 0.0, "path_point_spacing_m": 10.0, "transition_distance_m": 50.0, "border_gap_m": 15.0}
"""Settings of the planners of SAREnv: its defaults."""
TUNED_ON = range(1, 6)
DRAWS = 2000
"""Bootstrap samples of an interval."""
METRICS = ("victims found %", "probability seen %", "time-discounted x 1000")


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


def airloc_flights(ground: ProbabilityMap, drones: int, metres: float) -> list[LineString]:
    """Plan the flights of all drones, from the middle of the map on."""
    row, col = np.unravel_index(np.hypot(ground.x, ground.y).argmin(), ground.mass.shape)
    paths = plan_filmed_flights(
        ground.mass,
        [(int(row), int(col))] * drones,
        [metres / drones / CELL_M] * drones,
        width=WIDTH_M / CELL_M,
        discount=DISCOUNT**CELL_M,
    )
    return [LineString(path[:, ::-1] * CELL_M + (ground.x[0, 0], ground.y[0, 0])) for path in paths]


def _centres(count: int) -> Any:
    return (np.arange(count) + 0.5 - count / 2) * CELL_M


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--maps", type=int, nargs="*", default=[map_ for map_ in range(1, 16) if map_ not in TUNED_ON])
    parser.add_argument("--size", choices=SIZES, default="medium")
    parser.add_argument("--victims", type=int, default=1000)
    parser.add_argument("--drones", type=int, choices=FLIGHTS, nargs="*", default=list(FLIGHTS))
    parser.add_argument("--planners", nargs="*", default=["Greedy", "Spiral", "Concentric", "Pizza"])
    options = parser.parse_args()
    sys.path.insert(0, str(options.path))
    for drones in options.drones:
        rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in (*options.planners, "airloc")}
        for number in options.maps:
            for name, row in _compare(options, number, drones).items():
                rows[name].append(row)
            print(number, {name: tuple(round(value, 2) for value in each[-1]) for name, each in rows.items()})
            sys.stdout.flush()
        title = f"{drones} drones, {FLIGHTS[drones] / 1000:.0f} km, maps {', '.join(map(str, options.maps))}"
        _show(rows, f"{title}, {options.size}, {options.victims} victims a map")


def _compare(options: argparse.Namespace, number: int, drones: int) -> dict[str, tuple[float, ...]]:
    """Return found, seen, score, kilometres and seconds of every planner on one map."""
    import geopandas
    from sarenv.analytics import metrics, paths

    theirs: dict[str, Callable[..., list[LineString]]] = {
        "Greedy": paths.generate_greedy_path,
        "Spiral": paths.generate_spiral_path,
        "Concentric": paths.generate_concentric_circles_path,
        "Pizza": paths.generate_pizza_zigzag_path,
    }
    radius, metres = SIZES[options.size], FLIGHTS[drones]
    ground = ProbabilityMap(options.path / "heatmaps" / f"{number}.npz", radius)
    victims = geopandas.GeoDataFrame(geometry=ground.victims(options.victims, number))
    judge = metrics.PathEvaluator(ground.mass, ground.bounds, victims, FOV_DEGREES, HEIGHT_M, int(CELL_M))
    rows = {}
    for name in (*options.planners, "airloc"):
        began = time.perf_counter()
        if name == "airloc":
            lines = airloc_flights(ground, drones, metres)
        else:
            lines = theirs[name](
                center_x=0.0,
                center_y=0.0,
                max_radius=radius,
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
        seen = 100 * result["total_likelihood_score"] / float(ground.mass.sum())
        score = 1000 * result["total_time_discounted_score"]
        rows[name] = (found, seen, score, result["total_path_length"], seconds)
    return rows


def _show(rows: dict[str, list[tuple[float, ...]]], title: str) -> None:
    """Print the means over the maps, and the lead of airloc with its 95 % interval over the maps."""
    table = Table("planner", *METRICS, "km", "s", *(f"airloc ahead: {name}" for name in METRICS), title=title)
    ours = np.array(rows["airloc"])
    drawn = np.random.default_rng(0).integers(len(ours), size=(DRAWS, len(ours)))
    for name, each in rows.items():
        values, leads = np.array(each), []
        for metric in range(len(METRICS)) if name != "airloc" else ():
            lead = ours[:, metric] - values[:, metric]
            low, high = np.percentile(lead[drawn].mean(axis=1), [2.5, 97.5])
            ahead = f"{int((lead > 0).sum())} of {len(lead)} maps"
            leads.append(f"{lead.mean():+.1f} [{low:+.1f}, {high:+.1f}], {ahead}")
        table.add_row(name, *(f"{value:.2f}" for value in values.mean(axis=0)), *leads)
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
