"""The checkpoints that come with the package: where they are, whether they are there, and their terms."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from airloc.agents.agent import Agent, AgentOptions
from airloc.agents.airloc import AirlocAgent, LocalAgent
from airloc.agents.belief import BeliefAgent
from airloc.agents.checkpoint import CONFIG, Checkpoint, load_checkpoint, load_into, save_checkpoint, stored_as
from airloc.agents.freeze import freeze
from airloc.agents.planner import PLANNERS
from airloc.agents.policy import VARIANTS, Policy, Variant
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.vision.embedder import PatchEncoder
from airloc.vision.relation import RelationNetwork


def weights_root() -> Path:
    """The folder of all shipped checkpoints."""
    return Path(str(resources.files("airloc"))) / "weights"


def is_there(checkpoint: str) -> bool:
    """Whether a checkpoint is installed."""
    return (weights_root() / checkpoint / CONFIG).is_file()


def folder_of(checkpoint: str, agent: str, command: str) -> Path:
    """The folder of a checkpoint.

    Args:
        checkpoint: Its name.
        agent: Who asks for it, for the error.
        command: What trains such weights, for the error.

    Raises:
        AirlocError: When it is not installed.
    """
    folder = weights_root() / checkpoint
    if not is_there(checkpoint):
        raise AirlocError(
            f"The weights of the agent {agent!r} are not there: no checkpoint in {str(folder)!r}",
            f"Train them with '{command}' and give the checkpoint folder instead of the name",
        )
    return folder


def say_terms(name: str, config: Mapping[str, Any]) -> None:
    """Say on stderr which terms weights are under, where the project's licence does not cover them."""
    if terms := config.get("terms"):
        print(f"airloc: the weights of {name} are under {terms}, not under airloc's licence", file=sys.stderr)


# ---------- AiRLoc and its variants from checkpoint folders, and those whose weights are shipped with the package.
# ~
# ~ `config.json` of an agent's checkpoint holds, besides what every checkpoint has:
# ~
# ~ | key     | meaning                                                                       |
# ~ |---------|-------------------------------------------------------------------------------|
# ~ | kind    | "airloc"                                                                      |
# ~ | variant | which parts are used: residual, prior, sem_seg, priv, each true or false      |
# ~ | grid    | the grid it was trained on, "5x5" unless it is given; it plays on any         |
# ~ | terms   | only where the project's licence does not cover the weights: which terms do   |
# ~
# ~ Tensors are named `eyes.*` (segmentation unit and patch embedder) and `policy.*` (temporal and decision unit).

AIRLOC_KIND = "airloc"
LOAD_OTHER = "Give the checkpoint folder of an agent, such as one that 'airloc train airloc' saves"


class Shipped(NamedTuple):
    """Where a learned agent's weights come from, and which part of them plays."""

    checkpoint: str
    """Name of the shipped checkpoint."""
    variant: Variant
    """What the checkpoint is of."""
    local: bool = False
    """Follow the embedder alone, without the policy."""
    priv: bool = False
    """With the embedder alone: stay inside and avoid visited cells."""


_FULL, _NO_SEM_SEG = VARIANTS["airloc"], VARIANTS["airloc-no-sem-seg"]

SHIPPED: dict[str, Shipped] = {
    **{name: Shipped(name, variant) for name, variant in VARIANTS.items()},
    "local": Shipped("airloc", _FULL, local=True),
    "priv-local": Shipped("airloc", _FULL, local=True, priv=True),
    "local-no-sem-seg": Shipped("airloc-no-sem-seg", _NO_SEM_SEG, local=True),
    "priv-local-no-sem-seg": Shipped("airloc-no-sem-seg", _NO_SEM_SEG, local=True, priv=True),
    "airloc-xbd-research": Shipped("airloc-xbd-research", _FULL),
    "priv-local-xbd-research": Shipped("airloc-xbd-research", _FULL, local=True, priv=True),
}
"""AiRLoc, its variants and what its embedder does alone, by name."""


class Units(NamedTuple):
    """The trained networks of an agent, on the CPU as they were saved."""

    encoder: PatchEncoder
    policy: Policy
    trained: Grid
    """The grid that the policy was trained on."""
    config: Mapping[str, Any]


def save_agent(
    folder: Path,
    encoder: PatchEncoder,
    policy: Policy,
    config_extra: Mapping[str, Any],
    card: str,
    *,
    dtype: torch.dtype = torch.float16,
) -> None:
    """Write the checkpoint of an agent.

    Args:
        folder: Where; a checkpoint that is there is replaced.
        eyes: As trained, not frozen for play.
        policy: A single one (K = 1).
        config_extra: What else the config should say: `grid`, and `terms` where there are any.
        card: Data, terms, command and figures, in Markdown.
        dtype: What weights are stored as; loading gives float32 again.
    """
    if len(policy.bias) != 1:
        raise ValueError(f"a checkpoint holds one policy, not {len(policy.bias)}")
    config = {**config_extra, "kind": AIRLOC_KIND, "variant": asdict(policy.variant)}
    save_checkpoint(folder, stored_as(dtype, _together(encoder, policy)), config, card)


def load_units(folder: Path) -> Units:
    """Read the networks of an agent's checkpoint.

    Raises:
        AirlocError: When the checkpoint is damaged, of another kind or version, or its weights do not fit its config.
    """
    checkpoint = load_checkpoint(folder)
    variant = _variant(checkpoint)
    encoder, policy = PatchEncoder(variant.sem_seg), Policy(variant)
    load_into(_together(encoder, policy), checkpoint.tensors, folder)
    return Units(encoder.eval(), policy.eval(), _trained(checkpoint), checkpoint.config)


def load_agent(folder: Path, options: AgentOptions | None = None, name: str | None = None) -> Agent:
    """Make the agent of a checkpoint folder, called by its variant unless `name` says otherwise."""
    options = options or AgentOptions()
    units = load_units(folder)
    say_terms(name or str(folder), units.config)
    return _airloc(name or units.policy.variant.name, units, options)


def shipped_agent(name: str, options: AgentOptions) -> Agent:
    """Make an agent of `SHIPPED` from the package's own weights."""
    shipped = SHIPPED[name]
    folder = folder_of(shipped.checkpoint, name, "airloc train airloc")
    units = load_units(folder)
    if units.policy.variant != shipped.variant:
        found, wanted = units.policy.variant.name, shipped.variant.name
        problem = f"{str(folder / CONFIG)!r} is of the variant {found!r}, not {wanted!r}"
        raise AirlocError(problem, "Put the checkpoint of that variant there, or install airloc again")
    say_terms(name, units.config)
    if shipped.local:
        encoder = freeze(units.encoder, options.device)
        return LocalAgent(name, encoder, privileged=shipped.priv, sample=options.sample)
    return _airloc(name, units, options)


def _airloc(name: str, units: Units, options: AgentOptions) -> AirlocAgent:
    policy = units.policy.requires_grad_(False).to(options.device)
    return AirlocAgent(name, freeze(units.encoder, options.device), policy, units.trained, options.sample)


def _together(encoder: PatchEncoder, policy: Policy) -> nn.ModuleDict:
    return nn.ModuleDict({"eyes": encoder, "policy": policy})


def _trained(checkpoint: Checkpoint) -> Grid:
    """Read which grid the policy was trained on."""
    grid = checkpoint.config.get("grid", str(Grid()))
    try:
        return Grid.parse(str(grid))
    except AirlocError as error:
        problem = f"{str(checkpoint.folder / CONFIG)!r} gives the grid that it was trained on as {grid!r}"
        raise AirlocError(problem, LOAD_OTHER) from error


def _variant(checkpoint: Checkpoint) -> Variant:
    """Read which variant a config is of."""
    path, config = checkpoint.folder / CONFIG, checkpoint.config
    if config.get("kind") != AIRLOC_KIND:
        problem = f"{str(path)!r} is of the kind {config.get('kind')!r}, and agents are of the kind {AIRLOC_KIND!r}"
        raise AirlocError(problem, LOAD_OTHER)
    parts, names = config.get("variant"), [field.name for field in fields(Variant)]
    if not isinstance(parts, dict) or set(parts) != set(names) or not all(type(v) is bool for v in parts.values()):
        problem = f"{str(path)!r} does not say of each of {', '.join(names)} under 'variant' whether it is used"
        raise AirlocError(problem, LOAD_OTHER)
    try:
        return Variant(**parts)
    except AirlocError as error:
        raise AirlocError(f"{str(path)!r} names no variant: {error.problem}", LOAD_OTHER) from error


# ---------- Belief searchers from checkpoint folders, and those whose weights are shipped with the package.
# ~
# ~ `config.json` of a belief searcher's checkpoint holds, besides what every checkpoint has:
# ~
# ~ | key   | meaning                                                                       |
# ~ |-------|-------------------------------------------------------------------------------|
# ~ | kind  | "belief"                                                                      |
# ~ | width | width of the relation network                                                 |
# ~ | terms | only where the project's licence does not cover the weights: which terms do   |
# ~
# ~ Tensors are those of the relation network.

BELIEF_KIND = "belief"
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
    save_checkpoint(
        folder, stored_as(dtype, network), {**config_extra, "kind": BELIEF_KIND, "width": network.width}, card
    )


def load_relation(checkpoint: Checkpoint) -> RelationNetwork:
    """Make the relation network of a checkpoint.

    Raises:
        AirlocError: When the checkpoint is of another kind, or its weights do not fit its config.
    """
    path, width = checkpoint.folder / CONFIG, checkpoint.config.get("width")
    if checkpoint.config.get("kind") != BELIEF_KIND:
        problem = f"{str(path)!r} is of the kind {checkpoint.config.get('kind')!r}, not {BELIEF_KIND!r}"
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
