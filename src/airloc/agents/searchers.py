"""Belief searchers from checkpoint folders, and those whose weights are shipped with the package.

`config.json` of a belief searcher's checkpoint holds, besides what every checkpoint has:

| key   | meaning                                                                       |
|-------|-------------------------------------------------------------------------------|
| kind  | "belief"                                                                      |
| width | width of the relation network                                                 |
| terms | only where the project's licence does not cover the weights: which terms do   |

Tensors are those of the relation network.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from airloc.agents.agent import Agent, AgentOptions
from airloc.agents.belief import BeliefAgent
from airloc.agents.checkpoint import CONFIG, Checkpoint, load_checkpoint, load_into, save_checkpoint, stored_as
from airloc.agents.freeze import freeze
from airloc.agents.planner import PLANNERS
from airloc.agents.shipped import folder_of, say_terms
from airloc.errors import AirlocError
from airloc.vision.relation import RelationNetwork

KIND = "belief"
WIDEST = 128


@dataclass(frozen=True)
class Searcher:
    """A belief searcher: whose weights it has, and which of its parts play."""

    checkpoint: str
    """Name of the shipped checkpoint."""
    planner: str = "lookahead"
    """A name of `PLANNERS`."""
    memory: bool = True
    """Keep what earlier glimpses said."""
    seams: bool = True
    """Look at how sides and corners join."""
    textures: bool = True
    """Look at what the patches show as a whole."""


SEARCHERS: dict[str, Searcher] = {
    "belief": Searcher("belief"),
    "belief-greedy": Searcher("belief", planner="greedy"),
    "belief-no-memory": Searcher("belief", memory=False),
    "belief-seams": Searcher("belief", textures=False),
    "belief-textures": Searcher("belief", seams=False),
    "belief-research": Searcher("belief-research"),
}
"""The belief searcher, what is left of it without one of its parts, and its sister for research alone, by name."""


def save_searcher(
    folder: Path,
    network: RelationNetwork,
    config_extra: Mapping[str, Any],
    card: str,
    *,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write the checkpoint of a belief searcher.

    Args:
        folder: Where; a checkpoint that is there is replaced.
        network: As trained, not frozen for play.
        config_extra: What else the config should say, such as `terms`.
        card: Data, terms, command and figures, in Markdown.
        dtype: What weights are stored as; float16 halves the file, and loading gives float32 again.
    """
    save_checkpoint(folder, stored_as(dtype, network), {**config_extra, "kind": KIND, "width": network.width}, card)


def load_relation(checkpoint: Checkpoint) -> RelationNetwork:
    """Make the relation network of a checkpoint.

    Raises:
        AirlocError: When the checkpoint is of another kind, or its weights do not fit its config.
    """
    path, width = checkpoint.folder / CONFIG, checkpoint.config.get("width")
    if checkpoint.config.get("kind") != KIND:
        problem = f"{str(path)!r} is of the kind {checkpoint.config.get('kind')!r}, not {KIND!r}"
        raise AirlocError(problem, "Give the checkpoint folder of a belief searcher")
    if type(width) is not int or not 1 <= width <= WIDEST:
        problem = f"{str(path)!r} gives the width of the network as {width!r}, not as a number from 1 to {WIDEST}"
        raise AirlocError(problem, "Copy the whole checkpoint again from where it came, or train it anew")
    network = RelationNetwork(width)
    load_into(network, checkpoint.tensors, checkpoint.folder)
    return network.eval()


def make_searcher(checkpoint: Checkpoint, parts: Searcher, options: AgentOptions, name: str) -> BeliefAgent:
    """Make the belief searcher of a checkpoint."""
    say_terms(name, checkpoint.config)
    network = freeze(load_relation(checkpoint), options.device, half=not options.exact)
    network.seams, network.textures = parts.seams, parts.textures
    return BeliefAgent(name, network, PLANNERS[parts.planner], memory=parts.memory, sample=options.sample)


def shipped_searcher(name: str, options: AgentOptions) -> Agent:
    """Make an agent of `SEARCHERS` from the package's own weights."""
    parts = SEARCHERS[name]
    folder = folder_of(parts.checkpoint, name, "airloc train belief")
    return make_searcher(load_checkpoint(folder), parts, options, name)
