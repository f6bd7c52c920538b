"""The state of a run as a file: plain values and tensors, from which training goes on exactly.

Loading runs no code from the file, so that only what can come back that way may go in: tensors, numbers, text, `None`,
and lists, tuples and dicts of them. Optimizers' state dicts are such values; random generators become such values here.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from airloc.drawing.files import write_atomically
from airloc.errors import AirlocError

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
