"""AiRLoc from pictures: segmentation unit, embedder and policy, one after the other, in one folder.

    FOLDER/segmenter    the run of the segmentation unit (not for variants without it)
    FOLDER/embedder     the run of the patch embedder
    FOLDER/policy       the run of the policies
    FOLDER/agent        the checkpoint of the agent: the policy with the median validation success

A segmentation unit that is taken from another agent stays as it is. Run again, it goes on where it stopped; what is
done is not done again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import torch

from airloc.agents.policy import Policy, Variant
from airloc.agents.pretrained import load_units, save_airloc
from airloc.agents.registry import find_checkpoint
from airloc.errors import AirlocError
from airloc.training.data import Data, terms
from airloc.training.embedder import EmbedderConfig, train_embedder
from airloc.training.reinforce import (
    PolicyConfig,
    Trained,
    ended,
    larger_features,
    train_policy,
    training_features,
    validation_features,
)
from airloc.training.segmenter import SegmenterConfig, train_segmenter
from airloc.vision.embedder import PatchEncoder, Segmenter

Stage = Literal["segmenter", "embedder", "policy", "airloc"]
OnStep = Callable[[str, int, dict[str, float]], None]
"""Told the stage, how far it is (updates, or episodes of the policy) and its figures."""


@dataclass(frozen=True)
class AirlocConfig:
    """Settings of the whole training."""

    data: Data = field(default_factory=Data)
    """What is trained on."""
    variant: Variant = field(default_factory=Variant)
    """Which parts of AiRLoc are kept."""
    segmenter: str = ""
    """Take the segmentation unit of this agent, a name or a checkpoint folder, as it is, instead of training one."""
    segmenter_steps: int = 20_000
    """Updates of the segmentation unit."""
    embedder_steps: int = 30_000
    """Updates of the embedder."""
    embedder_blocks: int = 28
    """Blocks of 3 x 3 patches in an update of the embedder."""
    areas: int = 3000
    """Areas that policies are trained on."""
    episodes: int = 3_200_000
    """Episodes a policy is trained on, at most."""
    batch: int = 64
    """Episodes in an update."""
    learning_rate: float = 1e-4
    """Adam's learning rate for the policies."""
    anneal: bool = False
    """Let that rate fall along a line to a fiftieth."""
    validate_every: int = 1000
    """Updates of the policies between validations."""
    select: Literal["own", "both"] = "own"
    """Keep the best policies by success on 5 x 5, or by its mean with that on 7 x 7."""
    table_bytes: int | None = None
    """Memory that a table for the policies may take; a larger one is mapped from a file. By default half of what a GPU
    has free, or the machine has."""
    seeds: int = 5
    """Policies trained at once; the one with the median validation success is kept."""
    seed: int = 0
    """Decides weights and draws."""


PRESETS: dict[str, AirlocConfig] = {
    "paper": AirlocConfig(),
    "large": AirlocConfig(
        episodes=10_240_000,
        batch=256,
        learning_rate=3e-4,
        anneal=True,
        seeds=3,
        data=Data(weights=(6.0, 2.0, 1.0)),
    ),
    "fast": AirlocConfig(
        segmenter_steps=300,
        embedder_steps=1000,
        embedder_blocks=14,
        areas=80,
        episodes=320_000,
        batch=256,
        learning_rate=5e-4,
        validate_every=100,
        seeds=1,
        data=Data(synthetic=300),
    ),
}
"""`paper`: the paper's numbers. `large`: larger batches and more episodes, like the shipped weights. `fast`: minutes on
two CPU cores."""


def train_stages(
    folder: Path, config: AirlocConfig, until: Stage, *, device: torch.device, command: str, on_step: OnStep
) -> None:
    """Train everything up to a stage; the last one, `airloc`, also writes the agent's checkpoint."""
    # What cannot be trained is refused before anything is.
    segmenter, embedder, policy = _segmenter(config), _embedder(config), _policy(config)
    given = _given(config, until)
    torch.manual_seed(config.seed)
    encoder = PatchEncoder(config.variant.sem_seg).to(device)
    if given is not None:
        encoder.segmenter = given.segmenter.to(device)
    elif encoder.segmenter is not None:
        train_segmenter(folder / "segmenter", segmenter, encoder.segmenter, on_step=_named("segmenter", on_step))
    if until == "segmenter":
        return
    train_embedder(folder / "embedder", embedder, encoder, on_step=_named("embedder", on_step))
    if until == "embedder":
        return
    trained = ended(folder / "policy", policy)
    if trained is None:
        place = folder / "policy"
        features = training_features(encoder, policy, device, place)
        checked = validation_features(encoder, policy, device, place)
        larger = larger_features(encoder, policy, device, place)
        trained = train_policy(place, policy, features, checked, larger, on_step=_named("policy", on_step))
    if until == "airloc":
        chosen = Policy(config.variant)
        chosen.load_state_dict({name: tensor[[trained.median]].cpu() for name, tensor in trained.policies.items()})
        under = _terms(config, given)
        about = {"grid": policy.grid, **({"terms": under} if under else {})}
        save_airloc(folder / "agent", encoder.cpu(), chosen, about, card(config, trained, command, under))


class Given(NamedTuple):
    """A segmentation unit that is taken as it is, and the terms it is under."""

    segmenter: Segmenter
    terms: str


def _given(config: AirlocConfig, until: Stage) -> Given | None:
    """Take the segmentation unit of the agent that is named, if any."""
    if not config.segmenter:
        return None
    if until == "segmenter" or not config.variant.sem_seg:
        problem = f"No segmentation unit is to be trained or used, and one to be taken from {config.segmenter!r}"
        raise AirlocError(problem, "Leave --segmenter out, or train a later stage of a variant with sem-seg")
    units = load_units(find_checkpoint(config.segmenter))
    if units.encoder.segmenter is None:
        problem = f"The agent {config.segmenter!r} has no segmentation unit"
        raise AirlocError(problem, "Give --segmenter an agent that has one, such as airloc")
    return Given(units.encoder.segmenter, units.config.get("terms", ""))


def _terms(config: AirlocConfig, given: Given | None) -> str:
    """Terms of the data and of a segmentation unit that was taken."""
    parts = (terms(config.data), given.terms if given else "")
    return " and ".join(dict.fromkeys(filter(None, parts)))


def _segmenter(config: AirlocConfig) -> SegmenterConfig:
    return SegmenterConfig(data=config.data, steps=config.segmenter_steps, seed=config.seed)


def _embedder(config: AirlocConfig) -> EmbedderConfig:
    return EmbedderConfig(
        data=config.data,
        sem_seg=config.variant.sem_seg,
        segmenter=config.segmenter,
        steps=config.embedder_steps,
        blocks=config.embedder_blocks,
        validate_every=max(1, min(2000, config.embedder_steps // 5)),
        seed=config.seed,
    )


def _policy(config: AirlocConfig) -> PolicyConfig:
    return PolicyConfig(
        data=config.data,
        variant=config.variant,
        areas=config.areas,
        episodes=config.episodes,
        batch=config.batch,
        learning_rate=config.learning_rate,
        anneal=config.anneal,
        validate_every=config.validate_every,
        select=config.select,
        table_bytes=config.table_bytes,
        seeds=config.seeds,
        seed=config.seed,
    )


def _named(stage: str, on_step: OnStep) -> Callable[[int, dict[str, float]], None]:
    return lambda step, figures: on_step(stage, step, figures)


def card(config: AirlocConfig, trained: Trained, command: str, under: str = "") -> str:
    """What the weights are, in Markdown; `under` names terms other than the project's licence."""
    data = config.data
    sets = ", ".join(data.sets) if data.root else "none"
    named = "" if data.only == "*" else f" (files called `{data.only}`)"
    left_out = "" if data.fold is None else f"; fold {data.fold} of {data.folds} was left out and checked on"
    taken = f"- Segmentation unit: that of `{config.segmenter}`, as it is.\n" if config.segmenter else ""
    means = "; mean of 5 x 5 and 7 x 7" if config.select == "both" else ""
    successes = ", ".join(f"{100 * success:.1f} %" for success in trained.success)
    return (
        f"# {config.variant.name}\n\n"
        f"- Data: sets {sets}{named}; {data.synthetic} procedural areas{left_out}.\n{taken}"
        f"- Terms: {under + ', not the licence of airloc' if under else 'those of the data it was trained on'}.\n"
        f"- Made by: `{command}`\n"
        f"- Validation success of the {config.seeds} policies trained (all pairs, equal distances{means}): "
        f"{successes}; this is the median one, {100 * trained.success[trained.median]:.1f} %.\n"
    )
