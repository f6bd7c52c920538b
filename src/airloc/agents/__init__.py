"""Agents: baselines, AiRLoc and its variants, and the belief agent. Each is one line in `AGENTS`."""

from airloc.agents.agent import Agent, AgentOptions, AgentState, EpisodeBatch
from airloc.agents.matching import MatchingAgent, with_match
from airloc.agents.registry import AGENTS, DEFAULT_AGENT, available_agents, load_agent, make_agent

__all__ = [
    "AGENTS",
    "DEFAULT_AGENT",
    "Agent",
    "AgentOptions",
    "AgentState",
    "EpisodeBatch",
    "MatchingAgent",
    "available_agents",
    "load_agent",
    "make_agent",
    "with_match",
]
