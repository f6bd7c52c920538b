"""What the weights of agents are, so that results follow them."""

import hashlib
from pathlib import Path

from airloc.agents.checkpoint import CONFIG, WEIGHTS
from airloc.agents.registry import CHECKPOINTS, plugged_agents
from airloc.agents.shipped import weights_root


def weights_digest(name: str) -> str:
    """SHA-256 of the installed weights of an agent, or the package it is of; empty where it has neither.

    A card does not count: it may tell the very figures that are computed.
    """
    if name in plugged_agents():
        return plugged_agents()[name]
    folder = weights_root() / CHECKPOINTS.get(name, name)
    if not folder.is_dir():
        return ""
    digest = hashlib.sha256()
    for path in filter(Path.is_file, (folder / CONFIG, folder / WEIGHTS)):  # who plays tells what is missing
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
