"""Which agents can be exported. A new kind is a file beside this with its plan, its runner, and a line here."""

from collections.abc import Callable
from typing import Any

from airloc.agents.agent import Agent
from airloc.agents.airloc import AirlocAgent
from airloc.agents.belief import BeliefAgent
from airloc.agents.local import LocalAgent
from airloc.errors import AirlocError
from airloc.export.airloc import plan_airloc, plan_local
from airloc.export.belief import plan_belief
from airloc.export.plan import Plan

PLANS: dict[type, Callable[[Any], Plan]] = {
    AirlocAgent: plan_airloc,
    LocalAgent: plan_local,
    BeliefAgent: plan_belief,
}
"""How agents are exported, by their class."""


def plan_export(agent: Agent) -> Plan:
    """Give the plan for an agent.

    Raises:
        AirlocError: When its kind cannot be exported.
    """
    make = PLANS.get(type(agent))
    if make is None:
        raise AirlocError(f"The agent {agent.name!r} has no network to export", "Export one that looks, such as belief")
    return make(agent)
