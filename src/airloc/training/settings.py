"""The settings of a run: what they must be, and their file, written when it begins and compared when it is resumed."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from airloc import __version__
from airloc.drawing.files import write_atomically
from airloc.errors import AirlocError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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
