"""All agents by name, one line each. Tests, tables and the command line follow this dict.

Agents of other packages are found by their entry points in the group `airloc.agents`: each names a function that takes
`AgentOptions` and gives an agent. They are looked for only where a name is none of ours, and stand in the same tables.
"""

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from airloc.agents.agent import Agent, AgentOptions
from airloc.agents.baselines import PlannedAgent, RandomAgent, lawnmower, spiral
from airloc.agents.blind import blind
from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.pretrained import (
    BELIEF_KIND,
    SEARCHERS,
    SHIPPED,
    Searcher,
    is_there,
    load_agent,
    make_searcher,
    shipped_agent,
    shipped_searcher,
)
from airloc.errors import AirlocError

__all__ = [
    "AGENTS",
    "CHECKPOINTS",
    "DEFAULT_AGENT",
    "GROUP",
    "AgentOptions",
    "available_agents",
    "make_agent",
    "plugged_agents",
]

GROUP = "airloc.agents"
DEFAULT_AGENT = "belief"
"""Who plays where nobody is named."""

AGENTS: dict[str, Callable[[AgentOptions], Agent]] = {
    "random": lambda options: RandomAgent("random"),
    "priv-random": lambda options: RandomAgent("priv-random", privileged=True),
    "lawnmower": lambda options: PlannedAgent("lawnmower", lawnmower),
    "spiral": lambda options: PlannedAgent("spiral", spiral),
    "blind": lambda options: blind(options.seed),
    **{name: partial(shipped_agent, name) for name in SHIPPED},
    **{name: partial(shipped_searcher, name) for name in SEARCHERS},
}

CHECKPOINTS: dict[str, str] = {
    **{name: agent.checkpoint for name, agent in SHIPPED.items()},
    **{name: agent.checkpoint for name, agent in SEARCHERS.items()},
}
"""The shipped checkpoint of every agent that has one."""


def available_agents() -> list[str]:
    """Names of the agents that need no weights, or whose weights are there, and of those that are plugged in."""
    return [*(name for name in AGENTS if name not in CHECKPOINTS or is_there(CHECKPOINTS[name])), *plugged_agents()]


def plugged_agents() -> dict[str, str]:
    """Names of the agents of other packages, each with the package and version it comes from."""
    found = {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in AGENTS}
    return {name: f"{entry.dist.name} {entry.dist.version}" if entry.dist else "" for name, entry in found.items()}


def make_agent(name: str, options: AgentOptions | None = None) -> Agent:
    """Make a registered agent by its name, or a trained one from its checkpoint folder."""
    options = options or AgentOptions()
    if name in AGENTS:
        return AGENTS[name](options)
    if "/" in name or Path(name).is_dir():
        return _trained(Path(name), options, name)
    for entry in entry_points(group=GROUP, name=name):
        return _plugged(entry, options)
    near = get_close_matches(name, available_agents(), n=1)
    hint = f"Did you mean {near[0]!r}? Agents" if near else "Agents"
    raise AirlocError(
        f"There is no agent {name!r}", f"{hint} are: {', '.join(available_agents())}, or a checkpoint folder"
    )


def _trained(folder: Path, options: AgentOptions, name: str) -> Agent:
    """Make the agent of a checkpoint folder, of whichever kind it is."""
    checkpoint = load_checkpoint(folder)
    if checkpoint.config.get("kind") == BELIEF_KIND:
        return make_searcher(checkpoint, Searcher(str(folder)), options, name)
    return load_agent(folder, options, name)


def _plugged(entry: EntryPoint, options: AgentOptions) -> Agent:
    """Make the agent of an entry point; what goes wrong in another package is told by its name."""
    whose = f"The agent {entry.name!r} of {entry.dist.name if entry.dist else 'another package'} ({entry.value})"
    try:
        agent: Agent = entry.load()(options)
    except AirlocError:
        raise
    except Exception as error:  # whatever another package does
        raise AirlocError(f"{whose} cannot be made: {error!r}", "Mend or remove that package") from error
    if missing := [verb for verb in ("name", "reset", "act") if not hasattr(agent, verb)]:
        raise AirlocError(f"{whose} has no {' and no '.join(missing)}", "See docs/your-agent.md for what an agent is")
    return agent
