"""All agents by name. Tests, tables and the command line follow `AGENTS`.

Agents of other packages are entry points in the group `airloc.agents`. Each names a function that takes `AgentOptions`
and returns an agent. They appear in the same tables as the agents of this package.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from airloc.agents.agent import Agent, AgentOptions, check_device
from airloc.agents.baselines import PlannedAgent, RandomAgent, lawnmower, spiral
from airloc.agents.blind import blind
from airloc.agents.checkpoint import CONFIG, Checkpoint, load_checkpoint
from airloc.agents.pretrained import (
    BELIEF_KIND,
    DEFAULT_TEXT,
    checkpoint_folder,
    is_installed,
    load_airloc,
    load_any_day,
    load_belief,
    load_local,
)
from airloc.errors import AirlocError, suggest

_ENTRY_POINT_GROUP = "airloc.agents"
DEFAULT_AGENT = "belief"
"""The agent that plays if none is named."""


@dataclass(frozen=True)
class Baseline:
    """An agent without weights."""

    create: Callable[[str, AgentOptions], Agent]
    """Returns the agent for a name and options."""


@dataclass(frozen=True)
class Pretrained:
    """An agent with a checkpoint in `airloc/weights`."""

    checkpoint: str
    """Name of the checkpoint folder."""
    load: Callable[..., Agent]
    """Returns the agent for a checkpoint, a name and options."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """More keyword arguments of `load`."""


AGENTS: dict[str, Baseline | Pretrained] = {
    "random": Baseline(lambda name, options: RandomAgent(name)),
    "priv-random": Baseline(lambda name, options: RandomAgent(name, privileged=True)),
    "lawnmower": Baseline(lambda name, options: PlannedAgent(name, lawnmower)),
    "spiral": Baseline(lambda name, options: PlannedAgent(name, spiral)),
    "blind": Baseline(lambda name, options: blind(options.seed)),
    "airloc": Pretrained("airloc", load_airloc),
    "airloc-no-residual": Pretrained("airloc-no-residual", load_airloc),
    "airloc-no-prior": Pretrained("airloc-no-prior", load_airloc),
    "airloc-no-sem-seg": Pretrained("airloc-no-sem-seg", load_airloc),
    "airloc-no-residual-no-sem-seg": Pretrained("airloc-no-residual-no-sem-seg", load_airloc),
    "airloc-no-prior-no-sem-seg": Pretrained("airloc-no-prior-no-sem-seg", load_airloc),
    "airloc-priv": Pretrained("airloc-priv", load_airloc),
    "airloc-no-residual-priv": Pretrained("airloc-no-residual-priv", load_airloc),
    "airloc-no-prior-priv": Pretrained("airloc-no-prior-priv", load_airloc),
    "airloc-no-sem-seg-priv": Pretrained("airloc-no-sem-seg-priv", load_airloc),
    "airloc-no-residual-no-sem-seg-priv": Pretrained("airloc-no-residual-no-sem-seg-priv", load_airloc),
    "airloc-no-prior-no-sem-seg-priv": Pretrained("airloc-no-prior-no-sem-seg-priv", load_airloc),
    "airloc-photos": Pretrained("airloc-photos", load_airloc),
    "local": Pretrained("airloc", load_local),
    "priv-local": Pretrained("airloc", load_local, {"privileged": True}),
    "local-no-sem-seg": Pretrained("airloc-no-sem-seg", load_local),
    "priv-local-no-sem-seg": Pretrained("airloc-no-sem-seg", load_local, {"privileged": True}),
    "airloc-xbd-research": Pretrained("airloc-xbd-research", load_airloc),
    "priv-local-xbd-research": Pretrained("airloc-xbd-research", load_local, {"privileged": True}),
    "belief": Pretrained("belief", load_belief),
    "belief-greedy": Pretrained("belief", load_belief, {"planner": "greedy"}),
    "belief-no-memory": Pretrained("belief", load_belief, {"memory": False}),
    "belief-seams": Pretrained("belief", load_belief, {"textures": False}),
    "belief-textures": Pretrained("belief", load_belief, {"seams": False}),
    "belief-blurred": Pretrained("belief", load_belief, {"blurred": True}),
    "belief-any-day": Pretrained("belief", load_any_day),
    "belief-research": Pretrained("belief-research", load_belief),
}

KINDS: dict[str, Callable[[Checkpoint, str, AgentOptions], Agent]] = {"airloc": load_airloc, "belief": load_belief}
"""How to load a checkpoint folder, by the `kind` in its config."""

CHECKPOINTS: dict[str, str] = {name: spec.checkpoint for name, spec in AGENTS.items() if isinstance(spec, Pretrained)}
"""The checkpoint in the package of every agent that has one."""

AIRLOC_AGENTS = tuple(name for name in CHECKPOINTS if CHECKPOINTS[name].startswith("airloc"))
"""AiRLoc, its variants, and the agents that follow its patch embedder alone."""
BELIEF_AGENTS = tuple(name for name in CHECKPOINTS if CHECKPOINTS[name].startswith("belief"))
"""The belief agent and its variants."""


def available_agents() -> list[str]:
    """Return the names of the agents that can play: without weights, with installed weights, and plugins."""
    ready = [name for name in AGENTS if name not in CHECKPOINTS or is_installed(CHECKPOINTS[name])]
    return [*ready, *plugin_agents()]


def plugin_agents() -> dict[str, str]:
    """Return the names of the agents of other packages, each with its package and version."""
    found = {entry.name: entry for entry in entry_points(group=_ENTRY_POINT_GROUP) if entry.name not in AGENTS}
    return {name: f"{entry.dist.name} {entry.dist.version}" if entry.dist else "" for name, entry in found.items()}


def make_agent(name: str, options: AgentOptions | None = None) -> Agent:
    """Create an agent.

    Args:
        name: A name in `AGENTS`, the name of a plugin, or a checkpoint folder.
        options: Options of the agent.

    Raises:
        AirlocError: If there is no such agent, or its weights are missing or damaged.
    """
    options = options or AgentOptions()
    spec = AGENTS.get(name)
    if isinstance(spec, Baseline):
        return spec.create(name, options)
    check_device(options.device)
    if isinstance(spec, Pretrained):
        checkpoint = load_checkpoint(checkpoint_folder(spec.checkpoint, name))
        return spec.load(checkpoint, name, options, **spec.settings)
    if name and ("/" in name or Path(name).is_dir()):
        return load_agent(Path(name), options)
    for entry in entry_points(group=_ENTRY_POINT_GROUP, name=name) if name else ():
        return _load_plugin(entry, options)
    cure = suggest(name, available_agents(), "Agents")
    raise AirlocError(f"There is no agent {name!r}", f"{cure}, or a checkpoint folder")


def load_agent(folder: Path, options: AgentOptions | None = None, name: str = "") -> Agent:
    """Create the agent of a checkpoint folder.

    Args:
        folder: The checkpoint folder.
        options: Options of the agent.
        name: Name of the agent; the folder by default.

    Raises:
        AirlocError: If the checkpoint is damaged or of an unknown kind.
    """
    checkpoint = load_checkpoint(folder)
    kind = checkpoint.config.get("kind")
    if kind not in KINDS:
        problem = f"{str(folder / CONFIG)!r} has the kind {kind!r}, not one of: {', '.join(KINDS)}"
        raise AirlocError(problem, "Use the checkpoint folder of an agent, such as one that 'airloc train' saves")
    return KINDS[kind](checkpoint, name or str(folder), options or AgentOptions())


def find_checkpoint(name: str) -> Path:
    """Return the checkpoint folder of a registered agent, or the folder of this name."""
    return checkpoint_folder(CHECKPOINTS[name], name) if name in CHECKPOINTS else Path(name)


def weight_hashes(name: str, *, texts: bool = False) -> dict[str, str]:
    """Return the SHA-256 of the weights that an agent uses, by the name of each checkpoint; empty without weights.

    Args:
        name: As for `make_agent`, of an agent that can be made.
        texts: Whether goals are described in words.
    """
    spec = AGENTS.get(name)
    if isinstance(spec, Baseline) or (spec is None and name in plugin_agents()):
        return {}
    folder = find_checkpoint(name)
    config = load_checkpoint(folder).config
    shared = config.get("vision")
    return {
        folder.resolve().name: config["weights_sha256"],
        **({shared["name"]: shared["weights_sha256"]} if shared else {}),
        **(weight_hashes(str(checkpoint_folder(DEFAULT_TEXT))) if texts and config.get("kind") == BELIEF_KIND else {}),
    }


def _load_plugin(entry: EntryPoint, options: AgentOptions) -> Agent:
    """Create the agent of an entry point. Errors name the package that they come from."""
    source = f"The agent {entry.name!r} of {entry.dist.name if entry.dist else 'another package'} ({entry.value})"
    try:
        agent: Agent = entry.load()(options)
    except AirlocError:
        raise
    except Exception as error:  # the code of another package can raise anything
        raise AirlocError(f"{source} cannot be created: {error!r}", "Repair or uninstall that package") from error
    if missing := [method for method in ("name", "reset", "act") if not hasattr(agent, method)]:
        problem = f"{source} has no {' and no '.join(missing)}"
        raise AirlocError(problem, "See docs/your-agent.md for the interface of agents")
    return agent
