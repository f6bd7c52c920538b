"""All agents by name, one line each. Tests, tables and the command line follow this dict."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from airloc.agents.agent import Agent
from airloc.agents.blind import blind
from airloc.agents.planned import PlannedAgent, lawnmower, spiral
from airloc.agents.random import RandomAgent
from airloc.errors import AirlocError


@dataclass(frozen=True)
class AgentOptions:
    """What an agent may be made with."""

    seed: int = 0
    """Decides choices that are made once per agent."""
    device: str = "cpu"
    """Where a learned agent computes."""
    sample: bool = False
    """Draw moves by their probability instead of taking the most probable one."""


AGENTS: dict[str, Callable[[AgentOptions], Agent]] = {
    "random": lambda options: RandomAgent("random"),
    "priv-random": lambda options: RandomAgent("priv-random", privileged=True),
    "lawnmower": lambda options: PlannedAgent("lawnmower", lawnmower),
    "spiral": lambda options: PlannedAgent("spiral", spiral),
    "blind": lambda options: blind(options.seed),
}


def make_agent(name: str, options: AgentOptions | None = None) -> Agent:
    """Make a registered agent."""
    if name not in AGENTS:
        near = get_close_matches(name, AGENTS, n=1)
        hint = f"Did you mean {near[0]!r}? Agents" if near else "Agents"
        raise AirlocError(f"There is no agent {name!r}", f"{hint} are: {', '.join(AGENTS)}")
    return AGENTS[name](options or AgentOptions())
