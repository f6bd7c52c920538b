"""Digests of what tasks read: datasets, weights and the installed package."""

import hashlib
import os
from functools import lru_cache
from importlib import resources
from pathlib import Path

from airloc.agents.checkpoint import CONFIG, WEIGHTS
from airloc.agents.pretrained import weights_root
from airloc.agents.registry import AGENTS, CHECKPOINTS, plugin_agents


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 of the names and content of all files under a folder."""
    digest = hashlib.sha256()
    for directory, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            path = Path(directory) / name
            digest.update(f"{path.relative_to(folder).as_posix()}\0".encode("utf-8", "surrogateescape"))
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def weights_digest(agent: str) -> str:
    """Return the SHA-256 of the installed weights of an agent.

    The model card is not part of the digest, because it may quote figures that are computed from these weights. For an
    agent of another package the result is the name and version of that package; for an agent without weights it is
    empty.
    """
    if agent not in AGENTS:
        return plugin_agents().get(agent, "")
    if agent not in CHECKPOINTS:
        return ""
    folder = weights_root() / CHECKPOINTS[agent]
    digest = hashlib.sha256()
    for path in filter(Path.is_file, (folder / CONFIG, folder / WEIGHTS)):  # loading the agent reports a missing file
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@lru_cache
def package_digest() -> str:
    """Return the SHA-256 of the sources of the installed airloc, by which machines of a cluster are compared."""
    root = Path(str(resources.files("airloc")))
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()
