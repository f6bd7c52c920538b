"""Checkpoints: a folder with `weights.safetensors`, `config.json` and `card.md`, replaced as a whole.

A new checkpoint is written to a hidden folder beside the old one. Then the old one is renamed to another hidden folder
and the new one to the final name. If the process is killed in between, readers use the old checkpoint in its hidden
folder. `load_checkpoint` therefore returns the old or the new checkpoint at any time, never a mixture. Only one process
may write to a checkpoint at a time.

Loading runs no code from the files: it reads tensors and JSON alone.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as format_tensors
from torch import Tensor

from airloc import __version__
from airloc.errors import AirlocError
from airloc.files import write_atomically

WEIGHTS, CONFIG, CARD = FILES = ("weights.safetensors", "config.json", "card.md")
_FORMAT = 1
_READS = 100  # attempts to read a checkpoint that is replaced again and again
FETCH_AGAIN = "Copy the whole checkpoint again from its source, or train it again"


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """Contents of a checkpoint folder."""

    folder: Path
    config: dict[str, Any]
    """The saved config, with `format`, `airloc` (the version that saved it) and `weights_sha256`."""
    tensors: dict[str, Tensor]
    """The weights by name, on the CPU."""
    card: str
    """Data, terms, command and scores, in Markdown."""


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], config: Mapping[str, Any], card: str) -> None:
    """Write a checkpoint. If this fails, an existing checkpoint stays as it is.

    Args:
        folder: Folder of the checkpoint. An existing checkpoint is replaced.
        tensors: The weights by name, finite, on any device.
        config: Settings of the network, as JSON values. `format`, `airloc` and `weights_sha256` are added.
        card: Data, terms, command and scores, in Markdown.

    Raises:
        AirlocError: If the folder holds other files, a value is not finite, or the files cannot be written.
    """
    real = folder.resolve()
    _refuse_other_files(real)
    for name, tensor in tensors.items():
        _refuse_broken_values(real / WEIGHTS, name, tensor, "Go back to the last checkpoint without such values")
    weights = format_tensors({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})
    stamp = {"format": _FORMAT, "airloc": __version__, "weights_sha256": hashlib.sha256(weights).hexdigest()}
    text = json.dumps({**config, **stamp}, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    contents: tuple[bytes | str, ...] = (weights, text, card)
    new = _beside(real, "new")
    with _kept_as_it_was(real):
        try:
            _remove(new)
            for name, content in zip(FILES, contents, strict=True):
                write_atomically(new / name, content)
            _flush_folder(new)
            _put_in_place(new, real)
        finally:
            with contextlib.suppress(OSError):
                _remove(new)


def model_card(title: str, about: Sequence[str], terms: str, command: str, result: str) -> str:
    """Return the model card of trained weights, in Markdown.

    Args:
        title: Name of the agent or the network.
        about: What the weights are and what they were trained on, one line each.
        terms: Terms of use other than the licence of the project; empty if there are none.
        command: The command line of the training.
        result: Scores of the weights, in one line.
    """
    terms = f"{terms}, not the licence of airloc" if terms else "those of the training data"
    lines = (*about, f"Terms: {terms}.", f"Command: `{command}`", result)
    return f"# {title}\n\n" + "".join(f"- {line}\n" for line in lines)


def stored_as(dtype: torch.dtype, module: torch.nn.Module) -> dict[str, Tensor]:
    """Return the weights of a network by name, floating-point tensors in another data type."""
    tensors: dict[str, Tensor] = module.state_dict()
    return {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read a complete checkpoint, even while another process replaces it.

    Raises:
        AirlocError: If a file is missing, damaged or of an unknown format.
    """
    weights, config_text, card = _read(folder)
    config = _parse_config(folder / CONFIG, config_text)
    if hashlib.sha256(weights).hexdigest() != config.get("weights_sha256"):
        problem = f"{str(folder / WEIGHTS)!r} is truncated, damaged or not the file that {CONFIG} describes"
        raise AirlocError(problem, FETCH_AGAIN)
    try:
        return Checkpoint(folder, config, parse_tensors(weights), card.decode())
    except SafetensorError as error:
        raise AirlocError(f"{str(folder / WEIGHTS)!r} holds no tensors: {error}", FETCH_AGAIN) from error
    except UnicodeDecodeError as error:
        raise AirlocError(f"{str(folder / CARD)!r} is not text in UTF-8", FETCH_AGAIN) from error


def load_into(module: torch.nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Load all weights of a checkpoint into a network. If they do not fit, the network stays as it is.

    Args:
        module: The network, of the variant in the checkpoint's config.
        tensors: The weights by name.
        where: Folder of the checkpoint, for the error message.

    Raises:
        AirlocError: If a tensor is missing, unknown, of another shape or kind, or not finite.
    """
    path, cure = where / WEIGHTS, f"Load it as the agent and version in {str(where / CONFIG)!r}, or train it again"
    expected: dict[str, Tensor] = module.state_dict()
    if missing := sorted(expected.keys() - tensors.keys()):
        raise AirlocError(f"{str(path)!r} lacks the tensor {_first_of(missing)} of this network", cure)
    if unknown := sorted(tensors.keys() - expected.keys()):
        raise AirlocError(f"{str(path)!r} has the tensor {_first_of(unknown)}, which this network does not have", cure)
    for name, tensor in tensors.items():
        wanted = expected[name]
        if tensor.shape != wanted.shape or tensor.is_floating_point() != wanted.is_floating_point():
            problem = (
                f"{str(path)!r} has the tensor {name!r} as {_kind(tensor)}, where this network has {_kind(wanted)}"
            )
            raise AirlocError(problem, cure)
        _refuse_broken_values(path, name, tensor.to(wanted.dtype), FETCH_AGAIN)
    module.load_state_dict(dict(tensors))


def _read(folder: Path) -> tuple[bytes, bytes, bytes]:
    """Return the three files of one checkpoint, even while another one replaces it."""
    real = folder.resolve()
    for _ in range(_READS):
        for place in (real, _beside(real, "previous")):
            before = _identity(place)
            contents = [_read_file(place / name) for name in FILES]
            if before is None or _identity(place) != before:
                continue
            missing = [name for name, content in zip(FILES, contents, strict=True) if content is None]
            if not missing:
                weights, config, card = (content or b"" for content in contents)
                return weights, config, card
            if place == real:  # the previous one can lack files while it is removed
                raise AirlocError(f"The checkpoint {str(folder)!r} has no file {missing[0]!r}", FETCH_AGAIN)
    raise AirlocError(f"There is no checkpoint folder {str(folder)!r}", f"Use a folder that contains {WEIGHTS!r}")


def _read_file(path: Path) -> bytes | None:
    """Return the contents of a file, or None if there is no such file."""
    try:
        return path.read_bytes() if path.is_file() else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AirlocError(f"Cannot read {str(path)!r}: {error.strerror}", "Make it readable") from error


def _identity(folder: Path) -> tuple[int, ...] | None:
    """Return values that change if the folder is replaced or its list of files changes."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns) if folder.is_dir() else None


def _parse_config(path: Path, text: bytes) -> dict[str, Any]:
    """Parse a config and check its format."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AirlocError(f"{str(path)!r} is not JSON: {error}", FETCH_AGAIN) from error
    if not isinstance(config, dict) or "format" not in config:
        raise AirlocError(f"{str(path)!r} is not the config of a checkpoint: it has no 'format'", FETCH_AGAIN)
    if config["format"] != _FORMAT:
        problem = f"{str(path)!r} has the format {config['format']!r}, and airloc {__version__} reads format {_FORMAT}"
        raise AirlocError(problem, f"Install the airloc that saved it ({config.get('airloc', 'a newer one')})")
    return config


def _put_in_place(new: Path, folder: Path) -> None:
    """Rename the old checkpoint away and the new one to its name."""
    previous = _beside(folder, "previous")
    try:
        if folder.exists():
            _remove(previous)
            folder.rename(previous)
        new.rename(folder)
    except BaseException:
        if not folder.exists() and previous.exists():
            previous.rename(folder)
        raise
    with contextlib.suppress(OSError):  # the new one is in place, whatever happens to the old one
        try:
            _flush_folder(folder.parent)
        finally:
            _remove(previous)


@contextlib.contextmanager
def _kept_as_it_was(folder: Path) -> Iterator[None]:
    """Add to an error that the previous checkpoint is unchanged."""
    kept = f"the checkpoint {str(folder)!r} is unchanged"
    try:
        yield
    except AirlocError as error:
        raise AirlocError(f"{error.problem}; {kept}", error.cure) from error
    except OSError as error:
        problem = f"Cannot save to {str(folder)!r}: {error.strerror}; {kept}"
        raise AirlocError(problem, "Choose a folder that is writable") from error


def _refuse_other_files(folder: Path) -> None:
    """Refuse a folder with other files, because saving a checkpoint replaces the whole folder."""
    if folder.exists() and not folder.is_dir():
        raise AirlocError(f"{str(folder)!r} is a file, not a checkpoint folder", "Choose another folder")
    others = sorted({path.name for path in folder.iterdir()} - set(FILES)) if folder.exists() else []
    if others:
        problem = f"The folder {str(folder)!r} holds {_first_of(others)}, which is not part of a checkpoint"
        raise AirlocError(problem, "Move that away, or choose another folder")


def _refuse_broken_values(path: Path, name: str, tensor: Tensor, cure: str) -> None:
    if not bool(torch.isfinite(tensor).all()):
        raise AirlocError(f"{str(path)!r}: the tensor {name!r} holds NaN or infinite values", cure)


def _beside(folder: Path, role: str) -> Path:
    return folder.parent / f".airloc-{folder.name}.{role}"


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _flush_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _first_of(names: list[str]) -> str:
    return repr(names[0]) + (f" (and {len(names) - 1} more)" if len(names) > 1 else "")


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
