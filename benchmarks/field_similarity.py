"""Calibration of the similarity of glimpse and goal: `python -m benchmarks.field_similarity [FOLDER]`.

Compares pairs of cells of one area, each in different light and the goal up to three pixels off; one pair in ten shows
the same cell. Areas are procedural, or the images of a folder. Prints predicted and observed frequencies, and the
logistic curve that fits these pairs best.
"""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import minimize

from airloc.agents.matching import MIDPOINT, SLOPE, similarity
from airloc.areas.folder import Folder
from airloc.areas.synthetic import Synthetic
from airloc.grid import Grid
from airloc.task.cells import CellTable

GRID = Grid(5, 5)
LIGHTS = (0.0, 0.3, 0.6)
SHIFTS = ((0, 0), (2, -2), (-3, 1))
BINS = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0001)


def main() -> None:
    source = Folder(Path(sys.argv[1])) if len(sys.argv) > 1 else Synthetic(count=60, seed=9)
    areas = [area for _, area in zip(range(120), source.areas(GRID), strict=False)]
    score, same, weight = pairs(torch.from_numpy(CellTable.from_areas(areas, GRID).array[:-1]))
    predicted = 1 / (1 + np.exp(-SLOPE * (score - MIDPOINT)))
    print(f"{len(areas)} areas, {len(score):,} pairs\n{'predicted':>12}  {'mean':>9}  {'observed':>8}  {'pairs':>6}")
    for low, high in pairwise(BINS):
        chosen = (predicted >= low) & (predicted < high)
        if chosen.any():
            mean, observed = (np.average(values[chosen], weights=weight[chosen]) for values in (predicted, same))
            print(f"{low:5.2f} - {min(high, 1):4.2f}  {mean:9.3f}  {observed:8.3f}  {chosen.sum():6d}")
    best = minimize(lambda curve: loss(curve, score, same, weight), [SLOPE, MIDPOINT], method="Nelder-Mead").x
    print(f"best curve for these pairs: slope {best[0]:.1f}, midpoint {best[1]:.2f}; in use: {SLOPE}, {MIDPOINT}")


def pairs(patches: torch.Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return similarities, labels (1 for the same cell) and weights that make one pair in ten the same cell."""
    generator = torch.Generator().manual_seed(1)
    count, cells = len(patches), GRID.count
    parts = []
    for light in LIGHTS:
        for shift in SHIFTS:
            goal = torch.roll(relight(patches, light, generator), shift, (1, 2))
            parts.append((similarity(relight(patches, light, generator), goal), 1.0, 1.0))
            away = torch.randint(1, cells, (count,), generator=generator)
            other = torch.arange(count) // cells * cells + (torch.arange(count) % cells + away) % cells
            parts.append(
                (similarity(relight(patches, light, generator), relight(patches[other], light, generator)), 0.0, 9.0)
            )
    score = np.concatenate([part[0].numpy() for part in parts])
    same, weight = (np.concatenate([np.full(count, part[which]) for part in parts]) for which in (1, 2))
    return score, same, weight


def relight(patches: torch.Tensor, light: float, generator: torch.Generator) -> torch.Tensor:
    """Change gain and offset per colour, gamma and noise of patches."""
    gain, offset = (light * (2 * torch.rand(len(patches), 1, 1, 3, generator=generator) - 1) for _ in range(2))
    gamma = torch.exp(light * (2 * torch.rand(len(patches), 1, 1, 1, generator=generator) - 1))
    noise = 0.03 * light * torch.randn(patches.shape, generator=generator)
    changed = (patches.float() / 255) ** gamma * (1 + gain) + offset / 2 + noise
    return (changed.clamp(0, 1) * 255).to(torch.uint8)


def loss(curve: np.ndarray, score: np.ndarray, same: np.ndarray, weight: np.ndarray) -> float:
    odds = curve[0] * (score - curve[1])
    return float(np.average(np.logaddexp(0, odds) - same * odds, weights=weight))


if __name__ == "__main__":
    main()
