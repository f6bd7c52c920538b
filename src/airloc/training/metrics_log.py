"""The metrics of a run: JSON lines, each step once and in order, and the same for TensorBoard if it is installed."""

import contextlib
import json
import logging
import math
import os
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

log = logging.getLogger(__name__)


class MetricsLog:
    """The open files of the metrics. Metrics after the last saved step are dropped when a run resumes.

    Args:
        path: The file of JSON lines. The files of TensorBoard lie beside it.
        step: The last saved step; -1 if there is none.

    Attributes:
        path: The file of JSON lines.
        last: The last step that was logged, or -1.
    """

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        self.last = _truncate(path, step)
        self._file = path.open("ab", buffering=0)
        self._board = _tensorboard(path.parent, step + 1)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the metrics of a step after the last one. Values that are not finite become `null`.

        Raises:
            ValueError: If the step was logged before.
        """
        if step <= self.last:
            raise ValueError(f"Step {step} follows step {self.last}; log every step once, in order")
        numbers = {name: value if isinstance(value, int) else float(value) for name, value in values.items()}
        finite = {name: number if math.isfinite(number) else None for name, number in numbers.items()}
        line = json.dumps({"step": step, **finite}, allow_nan=False).encode() + b"\n"
        while line:
            line = line[self._file.write(line) :]
        if self._board:
            for name, number in numbers.items():
                self._board.add_scalar(name, number, step)
        self.last = step

    def sync(self) -> None:
        """Write what the system still holds back to the disk."""
        os.fsync(self._file.fileno())
        if self._board:
            self._board.flush()

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._file.closed

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._board:
            with contextlib.suppress(OSError):  # the JSON lines hold all metrics
                self._board.close()


def _truncate(path: Path, step: int) -> int:
    """Truncate the metrics after a step, and an incomplete line. Return the last step that is kept, or -1."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    kept = list(takewhile(lambda line: 0 <= _step_of(line) <= step, lines))
    if kept != lines:
        os.truncate(path, sum(map(len, kept)))  # in place: works on a full disk, and at any point of a kill
    return _step_of(kept[-1]) if kept else -1


def _step_of(line: bytes) -> int:
    """Return the step of a line of metrics; -1 for an incomplete line."""
    try:
        return int(json.loads(line)["step"]) if line.endswith(b"\n") else -1
    except (ValueError, LookupError, TypeError):
        return -1


def _tensorboard(folder: Path, first: int) -> "SummaryWriter | None":
    """Return a TensorBoard writer that purges the steps from `first` on; None if TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        log.info("No TensorBoard log is written to %s: TensorBoard is not installed (airloc[train])", folder)
        return None
    return SummaryWriter(str(folder), purge_step=first)
