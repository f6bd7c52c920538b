"""`airloc folds`: the segmentation unit's figures, pooled over the folds of a cross-validation."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from airloc.cli.console import promised
from airloc.evaluation.evaluate import to_json
from airloc.evaluation.metrics import Overlap, pooled
from airloc.files import write_atomically
from airloc.training.segmenter import fold_overlaps


@dataclass(frozen=True)
class Folds:
    """Pool IoU and F1 of the building class over the folds: 'airloc train segmenter --fold N --out DIR' for each N."""

    runs: Positional[tuple[Path, ...]]
    """The folders given as --out, one for each fold."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write the figures here."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc folds`."""
    run(tyro.cli(Folds, args=arguments, prog="airloc folds"))


def run(options: Folds) -> None:
    """Read the counts of every fold, add them up and show them."""
    with promised([options.json] if options.json else []):
        counts = fold_overlaps([folder / "segmenter" for folder in options.runs])
        rows = {**{str(fold): count for fold, count in counts.items()}, "pooled": pooled(counts.values())}
        if options.json is not None:
            write_atomically(options.json, to_json({name: _record(count) for name, count in rows.items()}))
    table = Table("fold", "IoU", "F1", "building pixels")
    for name, count in rows.items():
        table.add_row(name, f"{count.iou:.3f}", f"{count.f1:.3f}", f"{count.tp + count.fn:,}")
    Console().print(table)


def _record(count: Overlap) -> dict[str, float]:
    return {**count._asdict(), "iou": count.iou, "f1": count.f1}
