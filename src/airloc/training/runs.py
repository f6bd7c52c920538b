"""The settings of a run: what they must be, and their file, written when it begins and compared when it is resumed."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from airloc import __version__
from airloc.errors import AirlocError
from airloc.files import write_atomically

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

import contextlib
import fcntl
import io
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np
import torch

from airloc.files import check_writable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from torch.utils.tensorboard import SummaryWriter


def settle_config(path: Path, config: "DataclassInstance", belongings: Iterable[str]) -> None:
    """Write the settings of a new run, or find those of the old one to be the same.

    Args:
        path: The run's config file.
        config: The settings asked for.
        belongings: Names of files that a folder without a config must not hold.

    Raises:
        AirlocError: When the settings differ, the file is damaged, or the folder is not free.
    """
    folder, kind = path.parent, type(config).__name__
    asked = json.loads(json.dumps(asdict(config), default=_setting))
    if not path.exists():
        if taken := [name for name in belongings if (folder / name).exists()]:
            raise AirlocError(f"{str(folder)!r} holds {taken[0]!r} but no {path.name!r}", "Choose another folder")
        write_atomically(path, json.dumps({"airloc": __version__, "kind": kind, "settings": asked}, indent=2) + "\n")
        return
    try:
        content = json.loads(path.read_bytes())
        saved = {"kind": content["kind"], **content["settings"]}
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        cure = "Restore it from a copy, or choose another folder"
        raise AirlocError(f"{str(path)!r} is damaged or not the config of a run", cure) from error
    if different := _first_difference(saved, {"kind": kind, **asked}):
        problem = f"The run in {str(folder)!r} was begun with {different}"
        raise AirlocError(problem, "Give the same settings to resume it, or another folder for a new run")


def refuse_below_one(what: str, config: object, names: Iterable[str]) -> None:
    """Refuse settings that count something and say less than one."""
    for name in names:
        if (value := getattr(config, name)) < 1:
            raise AirlocError(f"{what} cannot be trained with {name} = {value}", "Give 1 or more")


def _setting(value: object) -> str:
    """A setting that JSON does not know."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"A setting of type {type(value).__name__} cannot be saved")


def _first_difference(saved: Any, asked: Any, name: str = "") -> str | None:
    """Say in what two settings differ first: `optimizer.rate = 0.1, and not with 0.2`."""
    if isinstance(saved, dict) and isinstance(asked, dict):
        for key in {**asked, **saved}:
            place = f"{name}.{key}" if name else key
            if found := _first_difference(saved.get(key, "nothing"), asked.get(key, "nothing"), place):
                return found
        return None
    before, now = json.dumps(saved), json.dumps(asked)
    return None if before == now else f"{name} = {before}, and not with {now}"


# ---------- The state of a run as a file: plain values and tensors, from which training goes on exactly.
# ~
# ~ Loading runs no code from the file, so that only what can come back that way may go in: tensors, numbers, text, `None`,
# ~ and lists, tuples and dicts of them. Optimizers' state dicts are such values; random generators become such values here.

FORMAT = 1
CURE = "Restore it from a copy, or delete it to start the run over"


def write_state(path: Path, step: int, state: Mapping[str, Any]) -> dict[str, Any]:
    """Write a state whole or not at all, and give it as it will be read.

    Raises:
        AirlocError: When the file cannot be written; the previous one is kept.
        TypeError: When a value could not be read back.
    """
    plain = {key: _plain(value, str(key)) for key, value in state.items()}
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, "step": step, "state": plain}, buffer)
    write_atomically(path, buffer.getvalue())
    return plain


def read_state(path: Path) -> tuple[int, dict[str, Any]] | None:
    """Give the step and the state of a file, on the CPU; nothing where there is no file.

    Raises:
        AirlocError: When the file is damaged or of a format that this version does not know.
    """
    try:
        data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            damaged = archive.testzip()  # torch itself does not look at the checksums
        content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AirlocError(f"Cannot read {str(path)!r}: {error.strerror}", "Make it readable") from error
    except Exception as error:  # what a damaged archive makes zipfile, pickle and torch raise is not documented
        raise AirlocError(f"The state {str(path)!r} is truncated or damaged", CURE) from error
    if damaged is not None:
        raise AirlocError(f"The state {str(path)!r} is damaged: a checksum differs", CURE)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise AirlocError(f"{str(path)!r} is no state of a run that this version of airloc can read", CURE)
    return content["step"], content["state"]


def rng_state(device: torch.device | str, **streams: np.random.Generator) -> dict[str, Any]:
    """Where chance stands: torch's generator, the device's own, and NumPy's by name, as values for a state.

    Args:
        device: Where training runs.
        streams: NumPy generators.
    """
    state: dict[str, Any] = {"torch": torch.get_rng_state(), "streams": {}}
    if torch.device(device).type == "cuda":
        state |= {"device": str(device), "cuda": torch.cuda.get_rng_state(device)}
    for name, generator in streams.items():
        state["streams"][name] = json.dumps(generator.bit_generator.state, default=np.ndarray.tolist)
    return state


def restore_rng(state: Mapping[str, Any], **streams: np.random.Generator) -> None:
    """Put chance back to where `rng_state` found it; NumPy's generators by the same names.

    Raises:
        AirlocError: When the state is of a CUDA device and there is none.
    """
    if streams.keys() != state["streams"].keys():
        raise ValueError(f"The state has the streams {sorted(state['streams'])}, not {sorted(streams)}")
    if "cuda" in state:
        if not torch.cuda.is_available():
            problem = f"The run was saved on the device {state['device']!r}, which is not there"
            raise AirlocError(problem, "Resume it on a machine with a GPU, or begin a new run")
        torch.cuda.set_rng_state(state["cuda"], state["device"])
    torch.set_rng_state(state["torch"])
    for name, generator in streams.items():
        generator.bit_generator.state = json.loads(state["streams"][name])


def _plain(value: Any, where: str) -> Any:
    """A copy that shares nothing with the original, on the CPU, of types that can be read back without running code."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, Mapping):
        return {
            _plain(key, f"the key {key!r} of {where}"): _plain(item, f"{where}.{key}") for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(_plain(item, f"{where}[{n}]") for n, item in enumerate(value))
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)  # NumPy's float64 is a float too, and would not be read back
    if value is None:
        return None
    raise TypeError(f"A state cannot hold {where}, which is of type {type(value).__name__}: make it a plain value")


# ---------- Run folders: what a training writes, so that it can be killed at any point and ends with the same weights.
# ~
# ~     config.json      the settings, checked when the run is resumed
# ~     metrics.jsonl    one line a logged step, in order, each step once
# ~     events.out...    the same for TensorBoard, where it is installed
# ~     state.pt         the exact state of the last save
# ~     checkpoints/     what the loop saves with `save_checkpoint`
# ~     lock             held while a process trains here
# ~
# ~ A loop logs a step before it saves its state; on resuming, what was logged after the last save is dropped and comes
# ~ again:
# ~
# ~     with Run.open(folder, config) as run:
# ~         if run.state:
# ~             model.load_state_dict(run.state["model"])
# ~             optimizer.load_state_dict(run.state["optimizer"])
# ~             restore_rng(run.state["rng"])
# ~         for step in range(run.step + 1, config.steps):
# ~             loss = ...
# ~             check_finite(loss, step, run)
# ~             run.log(step, loss=loss)
# ~             if step % config.save_every == 0:
# ~                 run.save_state(step, {"model": model.state_dict(), ..., "rng": rng_state(device)})

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
