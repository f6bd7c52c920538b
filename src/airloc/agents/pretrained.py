"""Agents from checkpoints: the weights in the package, and how networks are saved and loaded.

`config.json` of an agent's checkpoint has these keys besides those of every checkpoint:

| kind     | key     | meaning                                                                      |
|----------|---------|------------------------------------------------------------------------------|
| "airloc" | variant | the parts in use: residual, prior, sem_seg, priv, each true or false         |
|          | grid    | the grid of the training, "5x5" by default; the agent plays on any           |
|          | layers  | the fields of `airloc.vision.embedder.Layers` that differ from the default   |
|          | position | the fields of `airloc.vision.position.PositionEncoding` that differ         |
|          | vision  | `name` and `weights_sha256` of a shared vision checkpoint, if there is one   |
| "vision" | sem_seg | whether the patch encoder has a segmentation unit                            |
| "belief" | width   | width of the relation network                                                |
|          | blocks  | its residual blocks, 0 by default                                            |
|          | chroma_scale | pixels over which it averages the chroma of a patch, 1 by default       |
| "text"   | width   | width of the text network                                                    |
|          | features | numbers of its encodings                                                    |
| "locator" | width, channels, verifier | width, features and verifier of the locator's network |
| any      | terms   | terms of use, if the licence of the project does not cover the weights       |

The tensors of "airloc" are `eyes.*` (patch encoder) and `policy.*` (temporal and decision unit). Many policies can
share one patch encoder: a checkpoint with the key `vision` has the `policy.*` tensors alone, and its patch encoder is
the checkpoint of that name, in the folder beside it or in the package. `share_vision` converts a complete checkpoint.
The tensors of "vision", "belief", "text" and "locator" are those of `PatchEncoder`, `RelationNetwork`, `TextNetwork`
and `LocatorNetwork`.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import torch
from torch import nn

from airloc.agents.agent import AgentOptions
from airloc.agents.airloc import AirlocAgent, LocalAgent
from airloc.agents.any_day import AnyDayAgent
from airloc.agents.belief import BeliefAgent
from airloc.agents.checkpoint import (
    CONFIG,
    FETCH_AGAIN,
    Checkpoint,
    load_checkpoint,
    load_into,
    save_checkpoint,
    stored_as,
)
from airloc.agents.inference import optimize_for_inference
from airloc.agents.planner import PLANNERS
from airloc.agents.policy import Policy, Variant
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.vision.embedder import Layers, PatchEncoder
from airloc.vision.feature_map import FeatureMap
from airloc.vision.locator_network import VERIFIER, LocatorNetwork
from airloc.vision.position import PositionEncoding
from airloc.vision.relation import ChromaScale, RelationNetwork, upgrade_weights
from airloc.vision.text import TextNetwork

_ChoiceT = TypeVar("_ChoiceT", Layers, PositionEncoding)

AIRLOC_KIND, VISION_KIND, BELIEF_KIND, TEXT_KIND, LOCATOR_KIND = "airloc", "vision", "belief", "text", "locator"
DEFAULT_TEXT = "text"
"""Checkpoints of text networks in the package."""
_ENCODER_PREFIX = "eyes."
"""Prefix of the patch encoder's tensors in a complete checkpoint."""
MAX_WIDTH, MAX_BLOCKS = 128, 16
_LOAD_OTHER = "Use the checkpoint folder of an agent, such as one that 'airloc train airloc' saves"


def weights_root() -> Path:
    """Return the folder of the checkpoints in the package."""
    return Path(str(resources.files("airloc"))) / "weights"


def is_installed(checkpoint: str) -> bool:
    """Return True if the package has this checkpoint."""
    return (weights_root() / checkpoint / CONFIG).is_file()


def checkpoint_folder(checkpoint: str, agent: str = "") -> Path:
    """Return the folder of a checkpoint in the package.

    Raises:
        AirlocError: If the package does not have the checkpoint. The message names the agent that needs it.
    """
    folder = weights_root() / checkpoint
    if not is_installed(checkpoint):
        raise AirlocError(
            f"The weights of the agent {agent or checkpoint!r} are missing: no checkpoint in {str(folder)!r}",
            "Install airloc again, or train weights with 'airloc train' and use their checkpoint folder",
        )
    return folder


def _print_terms(name: str, config: Mapping[str, Any]) -> None:
    """Print the terms of use to stderr if the licence of the project does not cover the weights."""
    if terms := config.get("terms"):
        print(f"airloc: the weights of {name} are under {terms}, not under airloc's licence", file=sys.stderr)


class Units(NamedTuple):
    """The networks of an AiRLoc checkpoint, on the CPU as they were saved."""

    encoder: PatchEncoder
    policy: Policy
    training_grid: Grid
    position_encoding: PositionEncoding
    config: Mapping[str, Any]


def load_airloc(checkpoint: Checkpoint, name: str, options: AgentOptions) -> AirlocAgent:
    """Create the AiRLoc agent of a checkpoint."""
    units = _make_units(checkpoint)
    _print_terms(name, units.config)
    policy = units.policy.requires_grad_(False).to(options.device)
    encoder = optimize_for_inference(units.encoder, options.device)
    return AirlocAgent(name, encoder, policy, units.training_grid, units.position_encoding, options.sample)


def load_local(checkpoint: Checkpoint, name: str, options: AgentOptions, *, privileged: bool = False) -> LocalAgent:
    """Create the agent that follows the patch embedder of an AiRLoc checkpoint."""
    units = _make_units(checkpoint)
    _print_terms(name, units.config)
    return LocalAgent(name, optimize_for_inference(units.encoder, options.device), privileged, options.sample)


def load_belief(
    checkpoint: Checkpoint,
    name: str,
    options: AgentOptions,
    *,
    planner: str = "lookahead",
    memory: bool = True,
    seams: bool = True,
    textures: bool = True,
    blurred: bool = False,
) -> BeliefAgent:
    """Create the belief agent of a checkpoint, with a planner of `PLANNERS`.

    Without `memory` only the last glimpse counts, without `seams` only the patches as a whole, and without `textures`
    only their sides and corners. With `blurred` the network compares blurred patches.
    """
    _print_terms(name, checkpoint.config)
    relation = load_relation(checkpoint)
    network = optimize_for_inference(relation, options.device, bfloat16=not options.full_precision)
    network.seams, network.textures, network.blurred = seams, textures, blurred
    return BeliefAgent(
        name,
        network,
        PLANNERS[planner],
        memory=memory,
        sample=options.sample,
        text_network=partial(load_text, DEFAULT_TEXT, options.device),
    )


def load_any_day(checkpoint: Checkpoint, name: str, options: AgentOptions) -> AnyDayAgent:
    """Create the belief agent of a checkpoint for goals of any day."""
    sharp, blurred = (load_belief(checkpoint, name, options, blurred=blurred) for blurred in (False, True))
    return AnyDayAgent(name, sharp, blurred)


@lru_cache(maxsize=4)
def load_text(name: str = DEFAULT_TEXT, device: str = "cpu") -> TextNetwork:
    """Load a text network: the name of a checkpoint in the package, or a checkpoint folder.

    Raises:
        AirlocError: If there is no such checkpoint, or it is of another kind or damaged.
    """
    shipped = "/" not in name and (is_installed(name) or not Path(name).is_dir())
    folder = checkpoint_folder(name) if shipped else Path(name)
    checkpoint = load_checkpoint(folder)
    config = checkpoint.config
    _check_kind(checkpoint, TEXT_KIND, "Use a checkpoint folder that 'airloc train text' saves")
    _print_terms(name, config)
    width, features = config.get("width"), config.get("features")
    if type(width) is not int or type(features) is not int or not (8 <= width <= 512 and 4 <= features <= 4096):
        raise AirlocError(f"{str(folder / CONFIG)!r} has no valid width and features", FETCH_AGAIN)
    network = TextNetwork(width, features)
    load_into(network, checkpoint.tensors, folder)
    return network.to(device).eval()


def load_units(folder: Path) -> Units:
    """Load the networks of an AiRLoc checkpoint folder, with its own or with a shared patch encoder.

    Raises:
        AirlocError: If the checkpoint is damaged or of another kind, or its weights do not fit its config.
    """
    return _make_units(load_checkpoint(folder))


def _make_units(checkpoint: Checkpoint) -> Units:
    variant = _variant(checkpoint)
    layers, position = _choice(checkpoint, "layers", Layers), _choice(checkpoint, "position", PositionEncoding)
    encoder, policy = PatchEncoder(variant.sem_seg, layers), Policy(variant)
    tensors = checkpoint.tensors
    if "vision" in checkpoint.config:
        shared = _shared_vision(checkpoint)
        tensors = {**tensors, **{_ENCODER_PREFIX + key: tensor for key, tensor in shared.tensors.items()}}
    load_into(_networks(encoder, policy), tensors, checkpoint.folder)
    return Units(encoder.eval(), policy.eval(), _training_grid(checkpoint), position, checkpoint.config)


def load_relation(checkpoint: Checkpoint) -> RelationNetwork:
    """Create the relation network of a checkpoint.

    Raises:
        AirlocError: If the checkpoint is of another kind, or its weights do not fit its config.
    """
    path, width = checkpoint.folder / CONFIG, checkpoint.config.get("width")
    _check_kind(checkpoint, BELIEF_KIND, "Use the checkpoint folder of a belief agent")
    if type(width) is not int or not 1 <= width <= MAX_WIDTH:
        problem = f"{str(path)!r} has the network width {width!r}, not a number from 1 to {MAX_WIDTH}"
        raise AirlocError(problem, FETCH_AGAIN)
    blocks = checkpoint.config.get("blocks", 0)
    if type(blocks) is not int or not 0 <= blocks <= MAX_BLOCKS:
        problem = f"{str(path)!r} has {blocks!r} residual blocks, not a number from 0 to {MAX_BLOCKS}"
        raise AirlocError(problem, FETCH_AGAIN)
    chroma_scale, scales = checkpoint.config.get("chroma_scale", 1), get_args(ChromaScale)
    if type(chroma_scale) is not int or chroma_scale not in scales:
        problem = f"{str(path)!r} has the chroma_scale {chroma_scale!r}, not one of {scales}"
        raise AirlocError(problem, FETCH_AGAIN)
    network = RelationNetwork(width, blocks, chroma_scale)
    load_into(network, upgrade_weights(checkpoint.tensors), checkpoint.folder)
    return network.eval()


def load_locator(checkpoint: Checkpoint) -> FeatureMap:
    """Create the feature map of a locator's checkpoint.

    Raises:
        AirlocError: If the checkpoint is of another kind, or its weights do not fit its config.
    """
    path, config = checkpoint.folder / CONFIG, checkpoint.config
    _check_kind(checkpoint, LOCATOR_KIND, "Use the checkpoint folder of a locator")
    verifier = config.get("verifier", VERIFIER)
    sizes = [config.get("width"), config.get("channels"), *(verifier if isinstance(verifier, Sequence) else ())]
    known = [size for size in sizes if type(size) is int and 1 <= size <= MAX_WIDTH]
    if known != sizes or len(sizes) != 4:
        problem = f"{str(path)!r} has width, channels and verifier {sizes}, not four numbers from 1 to {MAX_WIDTH}"
        raise AirlocError(problem, FETCH_AGAIN)
    network = LocatorNetwork(known[0], known[1], (known[2], known[3]))
    load_into(network, checkpoint.tensors, checkpoint.folder)
    return FeatureMap({name: tensor.numpy() for name, tensor in network.state_dict().items()})


@lru_cache(maxsize=1)
def pretrained_locator() -> FeatureMap:
    """Return the feature map of the locator in the package."""
    return load_locator(load_checkpoint(checkpoint_folder(LOCATOR_KIND)))


def save_airloc(
    folder: Path,
    encoder: PatchEncoder,
    policy: Policy,
    config_extra: Mapping[str, Any],
    card: str,
    *,
    position: PositionEncoding | None = None,
    dtype: torch.dtype = torch.float16,
) -> None:
    """Save a complete AiRLoc checkpoint.

    Args:
        folder: Folder of the checkpoint. An existing checkpoint is replaced.
        encoder: As trained, not optimised for inference.
        policy: A single policy (K = 1).
        config_extra: More entries of the config: `grid`, and `terms` if there are any.
        card: Data, terms, command and scores, in Markdown.
        position: How positions were encoded in the training.
        dtype: Data type of the stored weights. Loading returns float32.
    """
    if len(policy.bias) != 1:
        raise ValueError(f"a checkpoint holds one policy, not {len(policy.bias)}")
    config = {**config_extra, "kind": AIRLOC_KIND, "variant": asdict(policy.variant)}
    config |= {"layers": _differences(encoder.layers), "position": _differences(position or PositionEncoding())}
    save_checkpoint(folder, stored_as(dtype, _networks(encoder, policy)), config, card)


def save_belief(
    folder: Path,
    network: RelationNetwork,
    config_extra: Mapping[str, Any],
    card: str,
    *,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Save the checkpoint of a belief agent.

    Args:
        folder: Folder of the checkpoint. An existing checkpoint is replaced.
        network: As trained, not optimised for inference.
        config_extra: More entries of the config, such as `terms`.
        card: Data, terms, command and scores, in Markdown.
        dtype: Data type of the stored weights; float16 halves the file. Loading returns float32.
    """
    sizes = {"width": network.width, "blocks": network.blocks, "chroma_scale": network.chroma_scale}
    config = {**config_extra, "kind": BELIEF_KIND, **sizes}
    save_checkpoint(folder, stored_as(dtype, network), config, card)


def save_locator(folder: Path, network: LocatorNetwork, config_extra: Mapping[str, Any], card: str) -> None:
    """Save the checkpoint of a locator's network in float16, with more entries of the config, such as `terms`."""
    sizes = {"width": network.width, "channels": network.channels, "verifier": list(network.verifier_size)}
    config = {**config_extra, "kind": LOCATOR_KIND, **sizes}
    save_checkpoint(folder, stored_as(torch.float16, network), config, card)


def share_vision(folder: Path, vision: Path, card: str = "") -> None:
    """Convert a complete AiRLoc checkpoint to one that shares its patch encoder with others.

    Args:
        folder: The checkpoint. It keeps the policy and refers to the vision checkpoint by name and content.
        vision: Folder of the vision checkpoint beside it. It is created if it does not exist.
        card: Card of the vision checkpoint, if it is created.

    Raises:
        AirlocError: If the vision checkpoint exists and has other weights.
    """
    checkpoint = load_checkpoint(folder)
    encoder = {
        key.removeprefix(_ENCODER_PREFIX): tensor
        for key, tensor in checkpoint.tensors.items()
        if key.startswith(_ENCODER_PREFIX)
    }
    if not vision.exists():
        config = {"kind": VISION_KIND, "sem_seg": _variant(checkpoint).sem_seg}
        save_checkpoint(vision, encoder, config, card)
    shared = load_checkpoint(vision)
    same = encoder.keys() == shared.tensors.keys() and all(
        torch.equal(encoder[key], shared.tensors[key]) for key in encoder
    )
    if not same:
        problem = f"The patch encoder of {str(folder)!r} differs from that of {str(vision)!r}"
        raise AirlocError(problem, "Keep the checkpoint complete, or use another folder for its vision checkpoint")
    reference = {"name": vision.name, "weights_sha256": shared.config["weights_sha256"]}
    policy = {key: tensor for key, tensor in checkpoint.tensors.items() if not key.startswith(_ENCODER_PREFIX)}
    save_checkpoint(folder, policy, {**checkpoint.config, "vision": reference}, checkpoint.card)


def _check_kind(checkpoint: Checkpoint, kind: str, cure: str) -> None:
    """Raise an error for a checkpoint of another kind."""
    found = checkpoint.config.get("kind")
    if found != kind:
        raise AirlocError(f"{str(checkpoint.folder / CONFIG)!r} has the kind {found!r}, not {kind!r}", cure)


def _shared_vision(checkpoint: Checkpoint) -> Checkpoint:
    """Load the vision checkpoint that a config refers to, and check that it is the one the policy was saved with."""
    path, reference = checkpoint.folder / CONFIG, checkpoint.config["vision"]
    if not isinstance(reference, dict) or not isinstance(reference.get("name"), str) or "/" in reference["name"]:
        raise AirlocError(f"{str(path)!r} does not name a vision checkpoint", FETCH_AGAIN)
    name = reference["name"]
    beside = checkpoint.folder.resolve().parent / name
    shared = load_checkpoint(beside if beside.is_dir() else weights_root() / name)
    _check_kind(shared, VISION_KIND, FETCH_AGAIN)
    if shared.config["weights_sha256"] != reference.get("weights_sha256"):
        problem = f"The vision checkpoint {str(shared.folder)!r} is not the one that {str(path)!r} was saved with"
        raise AirlocError(problem, f"Copy the folder {name!r} from the source of the checkpoint, beside it")
    return shared


def _differences(choice: Layers | PositionEncoding) -> dict[str, Any]:
    """Return the fields that differ from their default."""
    return {each.name: value for each in fields(choice) if (value := getattr(choice, each.name)) != each.default}


def _choice(checkpoint: Checkpoint, key: str, kind: type[_ChoiceT]) -> _ChoiceT:
    """Read the layers or the position encoding of a checkpoint."""
    hints, saved = get_type_hints(kind), checkpoint.config.get(key, {})
    known = {name: get_args(hint) or (True, False) for name, hint in hints.items()}
    if not isinstance(saved, dict) or any(value not in known.get(name, ()) for name, value in saved.items()):
        problem = f"{key!r} in {str(checkpoint.folder / CONFIG)!r} is {saved!r}, which this version does not know"
        raise AirlocError(problem, _LOAD_OTHER)
    return kind(**saved)


def _networks(encoder: PatchEncoder, policy: Policy) -> nn.ModuleDict:
    return nn.ModuleDict({_ENCODER_PREFIX.rstrip("."): encoder, "policy": policy})


def _training_grid(checkpoint: Checkpoint) -> Grid:
    """Read the grid that a policy was trained on."""
    grid = checkpoint.config.get("grid", str(Grid()))
    try:
        return Grid.parse(str(grid))
    except AirlocError as error:
        problem = f"{str(checkpoint.folder / CONFIG)!r} has the training grid {grid!r}, which is not a grid"
        raise AirlocError(problem, _LOAD_OTHER) from error


def _variant(checkpoint: Checkpoint) -> Variant:
    """Read the variant of an AiRLoc checkpoint."""
    path, config = checkpoint.folder / CONFIG, checkpoint.config
    _check_kind(checkpoint, AIRLOC_KIND, _LOAD_OTHER)
    parts, names = config.get("variant"), [field.name for field in fields(Variant)]
    if not isinstance(parts, dict) or set(parts) != set(names) or not all(type(v) is bool for v in parts.values()):
        problem = f"'variant' in {str(path)!r} does not have each of {', '.join(names)} as true or false"
        raise AirlocError(problem, _LOAD_OTHER)
    try:
        return Variant(**parts)
    except AirlocError as error:
        raise AirlocError(f"'variant' in {str(path)!r} is not valid: {error.problem}", _LOAD_OTHER) from error
