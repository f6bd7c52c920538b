"""Run folders: a training can be killed at any point, and resumes to end with the same weights.

    config.json      the settings, compared when the run is resumed
    metrics.jsonl    one line per logged step, in order, each step once
    events.out...    the same metrics for TensorBoard, if it is installed
    state.pt         the exact state at the last save
    lock             held while a process trains here

A loop saves its state after each validation, and at least every `SAVE_SECONDS`. It logs a step before it saves it. When
a run resumes, it drops the metrics that were logged after the last save, and logs them again. `airloc.training.loop`
is such a loop.

Loading a state runs no code from the file. A state therefore holds tensors, numbers, text, `None`, and lists, tuples
and dicts of them. The results of `Learner.state_dict` and `rng_state` are such values.
"""

import contextlib
import fcntl
import io
import json
import math
import os
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints

import torch

from airloc import __version__
from airloc.errors import AirlocError
from airloc.files import check_writable, write_atomically
from airloc.training.metrics_log import MetricsLog

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_ConfigT = TypeVar("_ConfigT", bound="DataclassInstance")

CONFIG, METRICS, STATE, LOCK = "config.json", "metrics.jsonl", "state.pt", "lock"
STATE_FORMAT = 1
SAVE_SECONDS = 30.0
"""A running training loses at most about this much work when it is killed."""
_RESTORE = "Restore it from a copy, or delete it to start the run over"


class Bounds(NamedTuple):
    """The values that a numeric setting may have."""

    low: float = -math.inf
    high: float = math.inf
    exclude_low: bool = False
    exclude_high: bool = False

    def __contains__(self, value: object) -> bool:
        assert isinstance(value, int | float)
        above = self.low < value or (self.low == value and not self.exclude_low)
        below = value < self.high or (self.high == value and not self.exclude_high)
        return math.isfinite(value) and above and below

    def __str__(self) -> str:
        low = f"above {self.low:g}" if self.exclude_low else f"{self.low:g} or more"
        high = f"below {self.high:g}" if self.exclude_high else f"at most {self.high:g}"
        return " and ".join(text for text, bound in ((low, self.low), (high, self.high)) if math.isfinite(bound))


NON_NEGATIVE = Bounds(low=0)
PositiveInt = Annotated[int, Bounds(low=1)]
PositiveFloat = Annotated[float, Bounds(low=0, exclude_low=True)]
NonNegativeInt = Annotated[int, NON_NEGATIVE]
NonNegativeFloat = Annotated[float, NON_NEGATIVE]
Probability = Annotated[float, Bounds(low=0, high=1)]
Share = Annotated[float, Bounds(low=0, high=1, exclude_high=True)]
"""A part of a whole that leaves something for the rest."""


def check_settings(config: "DataclassInstance") -> None:
    """Check the settings of fields whose type is annotated with `Bounds`.

    None is accepted, and tuples are checked by element.

    Raises:
        AirlocError: If a value is not a finite number, or out of bounds. The message names the field and the option.
    """
    for name, hint in get_type_hints(type(config), include_extras=True).items():
        setting = getattr(config, name)
        values = () if setting is None else setting if isinstance(setting, tuple) else (setting,)
        for bound in (each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Bounds)):
            for value in values:
                if value not in bound:
                    option = "--" + name.replace("_", "-")
                    raise AirlocError(f"The setting {name} = {value} is invalid", f"Give {option} a number, {bound}")


class Run:
    """A run folder, locked by this process until it is closed. Create it with `Run.open`.

    As a context manager, a run that fails before it logs anything removes the files and folders that it created, so
    that the same folder can be used with other settings.

    Attributes:
        folder: The run folder.
        state: The state that `save_state` saved last, now or before the run was resumed; `None` if there is none.
        step: The step of that state; -1 if there is none.
    """

    def __init__(self, folder: Path, lock: int, created: list[Path]) -> None:
        self.folder = folder
        self.step = -1
        self.state: dict[str, Any] | None = None
        if saved := read_state(folder / STATE):
            self.step, self.state = saved
        self._lock = lock
        self._created = created
        self._saved_at = time.monotonic()
        with _translate_write_errors(folder / METRICS, self.step):
            self._metrics = MetricsLog(folder / METRICS, self.step)

    @classmethod
    def open(cls, folder: Path, config: "DataclassInstance") -> "Run":
        """Start a run in a new folder, or resume the run in an existing one, with the same settings only.

        Raises:
            AirlocError: If another process trains there, the settings differ, a file is damaged, or the folder is not
                writable.
        """
        created = [path for path in (folder, *folder.parents) if not path.exists()]  # the innermost first
        check_writable(folder / CONFIG)
        lock = _take_lock(folder / LOCK)
        try:
            for remains in folder.glob(".airloc-*.tmp"):  # of a process that was killed while writing
                remains.unlink(missing_ok=True)
            _write_or_compare_config(folder / CONFIG, config)
            return cls(folder, lock, created)
        except BaseException:
            os.close(lock)
            raise

    def log(self, step: int, **values: float) -> None:
        """Log the metrics of a step after the last one that was logged. Values that are not finite become `null`.

        Raises:
            AirlocError: If the metrics cannot be written.
            ValueError: If the step was logged before.
        """
        with _translate_write_errors(self._metrics.path, self.step):
            self._metrics.write(step, values)

    def is_due(self) -> bool:
        """Return True if the last save, or the start, is `SAVE_SECONDS` or more ago."""
        return time.monotonic() - self._saved_at >= SAVE_SECONDS

    def save_state(self, step: int, state: Mapping[str, Any]) -> None:
        """Save the state from which the loop continues after `step`, the last completed step.

        A state holds tensors, numbers, text, `None`, and lists, tuples and dicts of them.

        Raises:
            AirlocError: If the state cannot be written; the previous state is kept.
            TypeError: If the file could not be read back because of the type of a value.
        """
        with _translate_write_errors(self._metrics.path, self.step):
            self._metrics.sync()
        with _translate_write_errors(self.folder / STATE, self.step):
            self.state = write_state(self.folder / STATE, step, state)
        self.step, self._saved_at = step, time.monotonic()

    def close(self) -> None:
        """Release the folder."""
        if self._metrics.closed:
            return
        self._metrics.close()
        os.close(self._lock)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self.close()
        if error is not None and self.folder in self._created and self.step < 0 and self._metrics.last < 0:
            self._remove()

    def _remove(self) -> None:
        """Remove the files of the run and the folders that it created."""
        names = (CONFIG, METRICS, LOCK, "events.out.*")
        with contextlib.suppress(OSError):  # a file of another program keeps its folder
            for path in (path for name in names for path in self.folder.glob(name)):
                path.unlink()
            for path in self._created:
                path.rmdir()


def check_finite(loss: float, step: int, run: Run) -> None:
    """Raise an error that names the last good checkpoint if the loss is not finite, before anything is saved."""
    if math.isfinite(loss):
        return
    saved = [path for path in run.folder.rglob("weights.safetensors") if not path.parent.name.startswith(".")]
    last = max(saved, key=lambda path: path.stat().st_mtime_ns, default=None)
    state = f"{STATE} holds the state of step {run.step}" if run.step >= 0 else "nothing was saved yet"
    kept = f"the last good checkpoint is {str(last.parent)!r}" if last else state
    became = "NaN" if math.isnan(loss) else "infinite"
    raise AirlocError(
        f"The loss became {became} at step {step} of the run {str(run.folder)!r}; {kept}",
        "Lower the learning rate or check the input, and train again in another folder",
    )


def write_state(path: Path, step: int, state: Mapping[str, Any]) -> dict[str, Any]:
    """Write a state file atomically, and return the state as `read_state` will return it.

    Raises:
        AirlocError: If the file cannot be written; the previous file is kept.
        TypeError: If the file could not be read back because of the type of a value.
    """
    plain = {key: _to_plain(value, str(key)) for key, value in state.items()}
    buffer = io.BytesIO()
    torch.save({"format": STATE_FORMAT, "step": step, "state": plain}, buffer)
    write_atomically(path, buffer.getvalue())
    return plain


def read_state(path: Path) -> tuple[int, dict[str, Any]] | None:
    """Read a state file: the step and the state, on the CPU. Return None if there is no file.

    Raises:
        AirlocError: If the file is damaged, or its format is unknown.
    """
    try:
        data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            damaged = archive.testzip()  # torch does not verify the checksums
        content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AirlocError(f"Cannot read {str(path)!r}: {error.strerror}", "Make it readable") from error
    except Exception as error:  # zipfile, pickle and torch do not document what a damaged archive raises
        raise AirlocError(f"The state {str(path)!r} is truncated or damaged", _RESTORE) from error
    if damaged is not None:
        raise AirlocError(f"The state {str(path)!r} is damaged: a checksum differs", _RESTORE)
    if not isinstance(content, dict) or content.get("format") != STATE_FORMAT:
        raise AirlocError(f"{str(path)!r} is not a run state that this version of airloc can read", _RESTORE)
    return content["step"], content["state"]


def rng_state(device: torch.device | str) -> dict[str, Any]:
    """Return the state of torch's generators, on the CPU and on the device."""
    state: dict[str, Any] = {"torch": torch.get_rng_state()}
    if torch.device(device).type == "cuda":
        state |= {"device": str(device), "cuda": torch.cuda.get_rng_state(device)}
    return state


def restore_rng(state: Mapping[str, Any]) -> None:
    """Restore the generators that `rng_state` saved."""
    if "cuda" in state:
        if not torch.cuda.is_available():
            problem = f"The run was saved on the device {state['device']!r}, and this machine has none"
            raise AirlocError(problem, "Resume it on a machine with a GPU, or start a new run")
        torch.cuda.set_rng_state(state["cuda"], state["device"])
    torch.set_rng_state(state["torch"])


def _to_plain(value: Any, where: str) -> Any:
    """Copy a value to the CPU, with types that `torch.load(weights_only=True)` accepts."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, Mapping):
        return {
            _to_plain(key, f"the key {key!r} of {where}"): _to_plain(item, f"{where}.{key}")
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(_to_plain(item, f"{where}[{n}]") for n, item in enumerate(value))
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)  # np.float64 is a float too, and could not be read back
    if value is None:
        return None
    raise TypeError(f"A state cannot hold {where} of type {type(value).__name__}; convert it to a plain value")


def write_settings(path: Path, config: "DataclassInstance") -> None:
    """Write the settings of a training, so that `read_settings` can read them."""
    content = {"airloc": __version__, "kind": type(config).__name__, "settings": plain_settings(config)}
    write_atomically(path, json.dumps(content, indent=2) + "\n")


def read_settings(path: Path, kind: type[_ConfigT]) -> _ConfigT:
    """Read the settings that a training of this kind has saved.

    Raises:
        AirlocError: If there is no such file, or it does not hold exactly the settings of this kind.
    """
    saved, cure = _read_config(path, "Give the config.json of a run folder"), "Give the options on the command line"
    if saved["kind"] != kind.__name__:
        problem = f"{str(path)!r} has the settings of {saved['kind']}, not of {kind.__name__}"
        raise AirlocError(problem, "Give the config.json that the same command has written")
    try:
        config = build_settings(kind, {name: value for name, value in saved.items() if name != "kind"})
    except (TypeError, ValueError) as error:
        problem = f"The settings in {str(path)!r} are not those of this version of airloc: {error}"
        raise AirlocError(problem, cure) from error
    return config


def build_settings(kind: type[_ConfigT], values: Mapping[str, Any]) -> _ConfigT:
    """Build a dataclass of settings from JSON values, with exactly its fields: the inverse of `plain_settings`."""
    hints = get_type_hints(kind)
    names = {each.name for each in fields(kind)}
    if odd := sorted(names ^ set(values)):
        raise ValueError(f"{odd[0]} is {'unknown' if odd[0] in values else 'missing'}")
    return kind(**{name: _build_setting(hints[name], value) for name, value in values.items()})


def _build_setting(hint: Any, value: Any) -> Any:
    """Convert a JSON value back to the type of a setting."""
    if is_dataclass(hint) and isinstance(hint, type):
        return build_settings(hint, value)
    kinds = get_args(hint) or (hint,)
    if Path in kinds and isinstance(value, str):
        return Path(value)
    if isinstance(value, list):
        return tuple(value)
    return value


def plain_settings(config: "DataclassInstance") -> dict[str, Any]:
    """Return settings as JSON values."""
    settings: dict[str, Any] = json.loads(json.dumps(asdict(config), default=_json_setting))
    return settings


def _read_config(path: Path, cure: str) -> dict[str, Any]:
    """Read the kind and the settings in a config file."""
    try:
        content = json.loads(path.read_bytes())
        return {"kind": content["kind"], **content["settings"]}
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise AirlocError(f"{str(path)!r} is damaged or not the config of a run", cure) from error


def _write_or_compare_config(path: Path, config: "DataclassInstance") -> None:
    """Write the settings of a new run, or check that an existing run has the same settings."""
    folder, kind = path.parent, type(config).__name__
    if not path.exists():
        if taken := [name for name in (METRICS, STATE) if (folder / name).exists()]:
            raise AirlocError(f"{str(folder)!r} holds {taken[0]!r} but no {path.name!r}", "Choose another folder")
        write_settings(path, config)
        return
    saved = _read_config(path, "Restore it from a copy, or choose another folder")
    if different := _first_difference(saved, {"kind": kind, **plain_settings(config)}):
        problem = f"The run in {str(folder)!r} has other settings: {different}"
        raise AirlocError(problem, "Give the same settings to resume it, or another folder for a new run")


def _json_setting(value: object) -> str:
    """Convert a setting that JSON does not support."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"A setting of type {type(value).__name__} cannot be saved")


def _first_difference(saved: Any, wanted: Any, name: str = "") -> str | None:
    """Describe the first setting that differs: `optimizer.momentum = 0.1 there, 0.2 here`."""
    if isinstance(saved, dict) and isinstance(wanted, dict):
        for key in {**wanted, **saved}:
            path = f"{name}.{key}" if name else key
            if found := _first_difference(saved.get(key, "nothing"), wanted.get(key, "nothing"), path):
                return found
        return None
    before, now = json.dumps(saved), json.dumps(wanted)
    return None if before == now else f"{name} = {before} there, {now} here"


def _take_lock(path: Path) -> int:
    """Lock a file for this process. The system releases the lock when the process ends for any reason."""
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


@contextlib.contextmanager
def _translate_write_errors(path: Path, step: int) -> Iterator[None]:
    """Add to the error of a failed write from which step the run can resume."""
    kept = f"the run can be resumed from step {step}" if step >= 0 else "nothing was saved yet"
    try:
        yield
    except AirlocError as error:
        raise AirlocError(f"{error.problem}; {kept}", error.cure) from error
    except OSError as error:
        problem = f"Cannot write {str(path)!r}: {error.strerror or error}; {kept}"
        raise AirlocError(problem, "Free some space or repair the folder, and run the same command again") from error
