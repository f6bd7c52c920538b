"""What the export of one kind of agent consists of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airloc.agents.likeness import BLUR, DARK, FAINT, SHIFT
from airloc.export.graphs import Graph

LIKENESS = {"shift": SHIFT, "blur": BLUR, "dark": DARK, "faint": FAINT}
"""How runners compare a glimpse with the goal."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How an agent is exported."""

    graphs: Mapping[str, Graph]
    """The graphs by name."""
    config: Mapping[str, Any]
    """What the runner needs to know, as plain JSON values."""
    runner: str
    """The file in `airloc.export.runners` that runs them."""
