"""Aerial view goal localization: the task, the agents, the training and the evaluation.

`import airloc` registers the Gymnasium environments `airloc/Search-5x5-v0`, `airloc/Search-7x7-v0` and
`airloc/Search-v0` (any grid). The names below are loaded on first use, so that the import stays fast:

>>> import airloc
>>> grid = airloc.Grid(5, 5)
>>> grid.count
25
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gymnasium.envs.registration import register

if TYPE_CHECKING:
    from airloc.agents.registry import make_agent
    from airloc.areas.registry import load_dataset
    from airloc.evaluation.scores import evaluate
    from airloc.grid import Grid
    from airloc.rollout import rollout
    from airloc.task.suites import Suite, per_distance

__version__ = "0.1.0"

__all__ = ["Grid", "Suite", "__version__", "evaluate", "load_dataset", "make_agent", "per_distance", "rollout"]

_MODULES = {
    "Grid": "airloc.grid",
    "Suite": "airloc.task.suites",
    "evaluate": "airloc.evaluation.scores",
    "load_dataset": "airloc.areas.registry",
    "make_agent": "airloc.agents.registry",
    "per_distance": "airloc.task.suites",
    "rollout": "airloc.rollout",
}
"""The module that defines each public name."""

for _name, _grid in (("Search-5x5", "5x5"), ("Search-7x7", "7x7"), ("Search", "5x5")):
    register(
        f"airloc/{_name}-v0",
        entry_point="airloc.task.env:SearchEnv",
        vector_entry_point="airloc.task.vector_env:SearchVectorEnv",
        kwargs={"grid": _grid},
    )


class _Package(ModuleType):
    """This package. Importing the module `airloc.rollout` does not replace the function `airloc.rollout`."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'airloc' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
