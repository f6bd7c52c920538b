"""All agents by name, one line each. Tests, tables and the command line follow this dict."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from airloc.agents import searchers
from airloc.agents.agent import Agent, AgentOptions
from airloc.agents.blind import blind
from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.learned import SHIPPED, load_agent, shipped_agent
from airloc.agents.planned import PlannedAgent, lawnmower, spiral
from airloc.agents.random import RandomAgent
from airloc.agents.searchers import SEARCHERS, Searcher, make_searcher, shipped_searcher
from airloc.agents.shipped import is_there
from airloc.errors import AirlocError

__all__ = ["AGENTS", "AgentOptions", "available_agents", "make_agent"]

AGENTS: dict[str, Callable[[AgentOptions], Agent]] = {
    "random": lambda options: RandomAgent("random"),
    "priv-random": lambda options: RandomAgent("priv-random", privileged=True),
    "lawnmower": lambda options: PlannedAgent("lawnmower", lawnmower),
    "spiral": lambda options: PlannedAgent("spiral", spiral),
    "blind": lambda options: blind(options.seed),
    **{name: partial(shipped_agent, name) for name in SHIPPED},
    **{name: partial(shipped_searcher, name) for name in SEARCHERS},
}


def available_agents() -> list[str]:
    """Names of the agents that need no weights, or whose weights are there."""
    weights = {name: agent.checkpoint for name, agent in SHIPPED.items()}
    weights |= {name: agent.checkpoint for name, agent in SEARCHERS.items()}
    return [name for name in AGENTS if name not in weights or is_there(weights[name])]


def make_agent(name: str, options: AgentOptions | None = None) -> Agent:
    """Make a registered agent by its name, or a trained one from its checkpoint folder."""
    options = options or AgentOptions()
    if name in AGENTS:
        return AGENTS[name](options)
    if "/" in name or Path(name).is_dir():
        return _trained(Path(name), options, name)
    near = get_close_matches(name, AGENTS, n=1)
    hint = f"Did you mean {near[0]!r}? Agents" if near else "Agents"
    raise AirlocError(
        f"There is no agent {name!r}", f"{hint} are: {', '.join(available_agents())}, or a checkpoint folder"
    )


def _trained(folder: Path, options: AgentOptions, name: str) -> Agent:
    """Make the agent of a checkpoint folder, of whichever kind it is."""
    checkpoint = load_checkpoint(folder)
    if checkpoint.config.get("kind") == searchers.KIND:
        return make_searcher(checkpoint, Searcher(str(folder)), options, name)
    return load_agent(folder, options, name)
