"""Run folders: what a training writes, so that it can be killed at any point and ends with the same weights.

    config.json      the settings, checked when the run is resumed
    metrics.jsonl    one line a logged step, in order, each step once
    events.out...    the same for TensorBoard, where it is installed
    state.pt         the exact state of the last save
    checkpoints/     what the loop saves with `save_checkpoint`
    lock             held while a process trains here

A loop logs a step before it saves its state; on resuming, what was logged after the last save is dropped and comes
again:

    with Run.open(folder, config) as run:
        if run.state:
            model.load_state_dict(run.state["model"])
            optimizer.load_state_dict(run.state["optimizer"])
            restore_rng(run.state["rng"])
        for step in range(run.step + 1, config.steps):
            loss = ...
            check_finite(loss, step, run)
            run.log(step, loss=loss)
            if step % config.save_every == 0:
                run.save_state(step, {"model": model.state_dict(), ..., "rng": rng_state(device)})
"""

import contextlib
import fcntl
import json
import math
import os
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloc.drawing.files import check_writable
from airloc.errors import AirlocError
from airloc.training.settings import settle_config
from airloc.training.state import read_state, write_state

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from torch.utils.tensorboard import SummaryWriter

CONFIG, METRICS, STATE, CHECKPOINTS, LOCK = "config.json", "metrics.jsonl", "state.pt", "checkpoints", "lock"


class Run:
    """A run folder, held by this process until it is closed; made by `Run.open`.

    Attributes:
        folder: Where the run is.
        state: What `save_state` last saved, here or before the run was resumed; `None` when nothing was.
        step: The step of that state; -1 when nothing was saved.
    """

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self.step = -1
        self.state: dict[str, Any] | None = None
        if saved := read_state(folder / STATE):
            self.step, self.state = saved
        self._lock = lock
        with _explained(folder / METRICS, self.step):
            self._logged = _drop_beyond(folder / METRICS, self.step)
            self._metrics = (folder / METRICS).open("ab", buffering=0)
            self._board = _tensorboard(folder, self.step + 1)

    @classmethod
    def open(cls, folder: Path, config: "DataclassInstance") -> "Run":
        """Begin a run in a new folder, or resume the one that is there.

        Args:
            folder: Where; created where there is none.
            config: The settings; to resume, the same as before.

        Raises:
            AirlocError: When another process trains there, the settings differ, a file is damaged, or the folder cannot
                be written to.
        """
        check_writable(folder / CONFIG)
        lock = _take_lock(folder / LOCK)
        try:
            for remains in folder.glob(".airloc-*.tmp"):  # of a process that was killed while writing
                remains.unlink(missing_ok=True)
            settle_config(folder / CONFIG, config, (METRICS, STATE))
            return cls(folder, lock)
        except BaseException:
            os.close(lock)
            raise

    @property
    def checkpoints(self) -> Path:
        """The folder for the run's checkpoints."""
        return self.folder / CHECKPOINTS

    def log(self, step: int, **values: float) -> None:
        """Write one line of figures; what is not finite becomes `null`.

        Args:
            step: Beyond the last one logged.
            values: The figures.

        Raises:
            AirlocError: When it cannot be written.
            ValueError: When the step was logged before.
        """
        if step <= self._logged:
            raise ValueError(f"Step {step} comes after step {self._logged} was logged; log every step once, in order")
        numbers = {name: value if isinstance(value, int) else float(value) for name, value in values.items()}
        finite = {name: number if math.isfinite(number) else None for name, number in numbers.items()}
        line = json.dumps({"step": step, **finite}, allow_nan=False).encode() + b"\n"
        with _explained(self.folder / METRICS, self.step):
            while line:
                line = line[self._metrics.write(line) :]
            if self._board:
                for name, number in numbers.items():
                    self._board.add_scalar(name, number, step)
        self._logged = step

    def save_state(self, step: int, state: Mapping[str, Any]) -> None:
        """Save what the loop needs to go on exactly from after `step`.

        Args:
            step: The last step that is done.
            state: Tensors, numbers, text, `None`, and lists, tuples and dicts of them.

        Raises:
            AirlocError: When it cannot be written; the previous state is kept.
            TypeError: When a value could not be read back.
        """
        with _explained(self.folder / METRICS, self.step):
            os.fsync(self._metrics.fileno())
            if self._board:
                self._board.flush()
        with _explained(self.folder / STATE, self.step):
            self.state = write_state(self.folder / STATE, step, state)
        self.step = step

    def close(self) -> None:
        """Let go of the folder."""
        if self._metrics.closed:
            return
        self._metrics.close()
        if self._board:
            with contextlib.suppress(OSError):  # all figures are in the JSON lines
                self._board.close()
        os.close(self._lock)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_finite(loss: float, step: int, run: Run) -> None:
    """Stop a training whose loss is no number any more, before it saves anything.

    Raises:
        AirlocError: When the loss is NaN or infinite; says where the last good checkpoint is.
    """
    if math.isfinite(loss):
        return
    saved = [path for path in run.folder.rglob("weights.safetensors") if not path.parent.name.startswith(".")]
    last = max(saved, key=lambda path: path.stat().st_mtime_ns, default=None)
    state = f"the state of step {run.step} is kept in {STATE}" if run.step >= 0 else "no checkpoint had been saved yet"
    kept = f"the last good checkpoint is {str(last.parent)!r}" if last else state
    became = "NaN" if math.isnan(loss) else "infinite"
    raise AirlocError(
        f"The loss became {became} at step {step} of the run {str(run.folder)!r}; {kept}",
        "Lower the learning rate or look for broken input, and train again in another folder",
    )


def _take_lock(path: Path) -> int:
    """Hold a file that only one process can hold; the system lets go of it when the process ends, however it does."""
    descriptor = -1
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 32).decode(errors="replace").strip()
        os.close(descriptor)
        problem = f"Another process ({holder or 'unknown'}) trains in {str(path.parent)!r}"
        raise AirlocError(problem, "Wait until it ends, or choose another folder") from error
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        raise AirlocError(f"Cannot lock {str(path)!r}: {error.strerror}", "Choose a folder on a local disk") from error
    with contextlib.suppress(OSError):  # only for the message above
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
    return descriptor


def _drop_beyond(path: Path, step: int) -> int:
    """Cut off what was logged after a step, and half a line; give the last step kept, or -1."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    kept = list(takewhile(lambda line: 0 <= _step_of(line) <= step, lines))
    if kept != lines:
        os.truncate(path, sum(map(len, kept)))  # in place: works on a full disk, and at any point of a kill
    return _step_of(kept[-1]) if kept else -1


def _step_of(line: bytes) -> int:
    """The step of a line of metrics; -1 for half a line."""
    try:
        return int(json.loads(line)["step"]) if line.endswith(b"\n") else -1
    except (ValueError, LookupError, TypeError):
        return -1


def _tensorboard(folder: Path, first: int) -> "SummaryWriter | None":
    """A writer for TensorBoard that takes back what it was told from step `first` on; none where not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=first)


@contextlib.contextmanager
def _explained(path: Path, step: int) -> Iterator[None]:
    """Say of a failed write from where the run can go on."""
    kept = f"the run can be resumed from step {step}" if step >= 0 else "nothing had been saved yet"
    try:
        yield
    except AirlocError as error:
        raise AirlocError(f"{error.problem}; {kept}", error.cure) from error
    except OSError as error:
        problem = f"Cannot write {str(path)!r}: {error.strerror or error}; {kept}"
        raise AirlocError(problem, "Free some space, or mend the folder, and start the same command again") from error
