"""Training of AiRLoc from images: segmentation unit, embedder and policy, one after the other, in one folder.

    FOLDER/segmenter    the run of the segmentation unit (not for variants without it)
    FOLDER/embedder     the run of the patch embedder
    FOLDER/policy       the run of the policies
    FOLDER/agent        the checkpoint of the agent: the policy with the median validation success
    FOLDER/config.json  the settings, for `airloc train --config`

A stopped training resumes, and finished stages are not repeated. A segmentation unit, or a whole encoder, that is taken
from another agent stays frozen.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import torch

from airloc.agents.checkpoint import model_card
from airloc.agents.policy import Policy, Variant
from airloc.agents.pretrained import Units, load_units, save_airloc
from airloc.agents.registry import find_checkpoint
from airloc.errors import AirlocError
from airloc.task.rules import load_reward
from airloc.training.augment import Augmentation
from airloc.training.data import Crops, DataConfig, dataset_names, join_terms, terms
from airloc.training.embedder import EmbedderConfig, train_embedder
from airloc.training.loop import Keep, OnStage, Schedule
from airloc.training.reinforce import PolicyConfig, PolicyResult, finished_result, tabulate_features, train_policy
from airloc.training.runs import (
    CONFIG,
    NON_NEGATIVE,
    PositiveFloat,
    PositiveInt,
    Probability,
    check_settings,
    write_settings,
)
from airloc.training.segmenter import SegmenterConfig, train_segmenter
from airloc.vision.embedder import PAPER_LAYERS, Layers, PatchEncoder
from airloc.vision.position import PositionEncoding

Stage = Literal["segmenter", "embedder", "policy", "airloc"]


@dataclass(frozen=True)
class AirlocConfig:
    """Settings of the training of AiRLoc. The defaults are the paper's, or a choice where its text is silent."""

    data: DataConfig = field(default_factory=lambda: DataConfig(datasets=("masa",), weights=(1.0,), synthetic=0))
    """Training and validation images."""
    variant: Variant = field(default_factory=Variant)
    """Parts of AiRLoc in use."""
    layers: Layers = field(default_factory=lambda: PAPER_LAYERS)
    """Layers of the segmentation unit and the embedder."""
    position: PositionEncoding = field(default_factory=lambda: PositionEncoding(positions="raw"))
    """How positions are encoded."""
    crops: Crops = "grid"
    """Patches, pairs and areas come from one search area in each image, or from any offset and scale."""
    augmentation: Augmentation = "flips"
    """Augmentation for the segmentation unit and the embedder: flips, or all symmetries and colour jitter."""
    schedule: Schedule = "constant"
    """Learning rate of the segmentation unit and the embedder: constant, or falling along a cosine."""
    keep: Keep = "best"
    """The segmentation unit and the embedder train until convergence on the validation images and keep the best
    weights, or make all updates and keep the last."""
    encoder: str = ""
    """Use the segmentation unit and the embedder of this agent, a name or a checkpoint folder, instead of training
    them."""
    segmenter: str = ""
    """Use the segmentation unit of this agent, a name or a checkpoint folder, instead of training one."""
    segmenter_steps: PositiveInt = 20_000
    """Updates of the segmentation unit, at most."""
    building_weight: PositiveFloat = 1.0
    """Weight of building pixels in the loss of the segmentation unit; others have weight 1."""
    init_from: str = ""
    """Start with the embedder of this agent, a name or a checkpoint folder, instead of random weights."""
    embedder: Literal["pairs", "blocks"] = "pairs"
    """The embedder learns from pairs of patches, or from blocks of 3 x 3 patches."""
    embedder_steps: PositiveInt = 30_000
    """Updates of the embedder, at most."""
    embedder_pairs: PositiveInt = 256
    """Pairs of patches per update of the embedder."""
    embedder_blocks: PositiveInt = 28
    """Blocks of 3 x 3 patches per update of the embedder, instead of pairs."""
    embedder_learning_rate: PositiveFloat = 1e-3
    """Learning rate of Adam for the embedder."""
    rescale: bool = False
    """Scale the numbers of the embedding c to one standard deviation."""
    areas: PositiveInt = 832
    """Largest number of areas that policies are trained on."""
    photos: Probability = 0.0
    """Share of the embedder's blocks, and of the policies' areas, that are photos with errors of their own."""
    episodes: PositiveInt = 3_200_000
    """Largest number of training episodes per policy."""
    batch: PositiveInt = 64
    """Episodes per update and policy."""
    learning_rate: PositiveFloat = 1e-4
    """Learning rate of Adam for the policies."""
    anneal: bool = False
    """Reduce that learning rate linearly to 2 % over the training."""
    normalise: Literal["returns", "rewards"] = "returns"
    """What is normalised among moves with the same distance left to the goal."""
    reward: str = ""
    """Reward function of the moves as MODULE:FUNCTION (see `airloc.task.rules`); by default 3 * found - 1."""
    validate_every: PositiveInt = 1000
    """Updates of the policies between validations."""
    validation: Literal["episodes", "all-pairs"] = "episodes"
    """Validate policies on one fixed episode for each distance and area, or on all pairs of start and goal."""
    patience: PositiveInt = 50
    """Validations without a better mean success before the training of policies stops."""
    select: Literal["own", "both"] = "own"
    """Keep the best policies by success on 5 x 5, or by its mean with success on 7 x 7."""
    table_bytes: Annotated[int | None, NON_NEGATIVE] = None
    """Memory limit of a feature table of the policies; a larger table is mapped from a file. By default half of the
    free memory of a GPU, or of the memory of the machine."""
    seeds: PositiveInt = 5
    """Number of policies trained at once; the one with the median validation success is kept."""
    seed: int = 0
    """Random seed for initial weights and sampling."""

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def for_segmenter(self) -> SegmenterConfig:
        """Settings of the segmentation unit."""
        return SegmenterConfig(
            data=self.data,
            steps=self.segmenter_steps,
            schedule=self.schedule,
            keep=self.keep,
            validate_every=self._validate_every(self.segmenter_steps),
            building_weight=self.building_weight,
            crops=self.crops,
            augmentation=self.augmentation,
            unet=self.layers.unet,
            seed=self.seed,
        )

    @property
    def for_embedder(self) -> EmbedderConfig:
        """Settings of the embedder."""
        return EmbedderConfig(
            data=self.data,
            sem_seg=self.variant.sem_seg,
            segmenter=self.segmenter,
            init_from=self.init_from,
            steps=self.embedder_steps,
            batches=self.embedder,
            blocks=self.embedder_blocks,
            pairs=self.embedder_pairs,
            learning_rate=self.embedder_learning_rate,
            schedule=self.schedule,
            keep=self.keep,
            crops=self.crops,
            augmentation=self.augmentation,
            rescale=self.rescale,
            layers=self.layers,
            photos=self.photos,
            validate_every=self._validate_every(self.embedder_steps),
            seed=self.seed,
        )

    @property
    def for_policy(self) -> PolicyConfig:
        """Settings of the policies."""
        return PolicyConfig(
            data=self.data,
            variant=self.variant,
            encoder=self.encoder,
            areas=self.areas,
            crops=self.crops,
            position=self.position,
            photos=self.photos,
            episodes=self.episodes,
            batch=self.batch,
            learning_rate=self.learning_rate,
            anneal=self.anneal,
            normalise=self.normalise,
            reward=self.reward,
            validate_every=self.validate_every,
            validation=self.validation,
            patience=self.patience,
            select=self.select,
            table_bytes=self.table_bytes,
            seeds=self.seeds,
            seed=self.seed,
        )

    def _validate_every(self, steps: int) -> int:
        """Return the updates of the segmentation unit or the embedder between validations."""
        return max(1, min(500 if self.keep == "best" else 2000, steps // 5))


SEGMENTER_OPTIONS = ("segmenter_steps", "building_weight", "layers", "crops", "augmentation", "schedule", "keep")
"""Settings that decide the segmentation unit, besides data and seed."""
EMBEDDER_OPTIONS = (
    *SEGMENTER_OPTIONS,
    *("init_from", "embedder", "embedder_steps", "embedder_pairs", "embedder_blocks", "embedder_learning_rate"),
    *("rescale", "photos"),
)
"""Settings that decide the embedder, besides data, variant and seed."""

_TUNED = AirlocConfig(
    data=DataConfig(weights=(6.0, 2.0, 1.0)),
    layers=Layers(),
    position=PositionEncoding(),
    crops="random",
    augmentation="full",
    schedule="cosine",
    keep="last",
    building_weight=3.0,
    embedder="blocks",
    embedder_learning_rate=2e-3,
    rescale=True,
    areas=3000,
    episodes=10_240_000,
    batch=256,
    learning_rate=3e-4,
    anneal=True,
    validation="all-pairs",
    patience=15,
    seeds=3,
)

PRESETS: dict[str, AirlocConfig] = {
    "paper": AirlocConfig(),
    "tuned": _TUNED,
    "fast": replace(
        _TUNED,
        data=DataConfig(synthetic=300),
        segmenter_steps=300,
        embedder_steps=1000,
        embedder_blocks=14,
        areas=80,
        episodes=320_000,
        learning_rate=5e-4,
        anneal=False,
        validate_every=100,
        seeds=1,
    ),
}
"""`paper`: the paper to the letter. `tuned`: the recipe of the shipped weights. `fast`: that recipe in minutes on two
CPU cores. docs/paper-map.md has the differences."""


def train_stages(
    folder: Path, config: AirlocConfig, until: Stage, *, device: torch.device, command: str, on_step: OnStage
) -> None:
    """Train all stages up to `until`; the last stage, `airloc`, also writes the checkpoint of the agent.

    The model card quotes `command`, the command line. Every validation of a stage calls `on_step`.
    """
    # Check the settings of all stages and the data before anything is written.
    segmenter, embedder, policy = config.for_segmenter, config.for_embedder, config.for_policy
    load_reward(config.reward)
    if config.data.root is None and not config.data.synthetic:
        raise AirlocError(
            "There are no images to train on",
            "Give --root with the folder of the datasets, or --synthetic 500 for procedural areas",
        )
    taken, initial = _pretrained(config, until), _initial_embedder(config, until)
    agents = [units.config.get("terms", "") for units in (taken, initial) if units is not None]
    all_terms = join_terms(terms(config.data), *agents)
    torch.manual_seed(config.seed)
    encoder = taken.encoder if taken and config.encoder else PatchEncoder(config.variant.sem_seg, config.layers)
    encoder.to(device)
    if initial is not None:
        encoder.embedder.load_state_dict(initial.encoder.embedder.state_dict())

    def report(stage: str, step: int, metrics: dict[str, float]) -> None:
        write_settings(folder / CONFIG, config)
        on_step(stage, step, metrics)

    # Segmentation unit.
    if taken is not None:
        encoder.segmenter = taken.encoder.segmenter
        encoder.to(device)
    elif encoder.segmenter is not None:
        train_segmenter(folder / "segmenter", segmenter, encoder.segmenter, on_step=partial(report, "segmenter"))
    if until == "segmenter":
        return
    # Embedder.
    if not config.encoder:
        train_embedder(folder / "embedder", embedder, encoder, on_step=partial(report, "embedder"))
    if until == "embedder":
        return
    # Policies.
    run_folder = folder / "policy"
    result = finished_result(run_folder, policy)
    if result is None:
        tables = tabulate_features(encoder, policy, device, run_folder)
        result = train_policy(run_folder, policy, *tables, on_step=partial(report, "policy"))
    if until == "policy":
        return
    # Checkpoint of the agent.
    median = Policy(config.variant)
    median.load_state_dict({name: tensor[[result.median]].cpu() for name, tensor in result.policies.items()})
    config_extra = {"grid": policy.grid, **({"terms": all_terms} if all_terms else {})}
    card = _airloc_card(config, result, command, all_terms)
    save_airloc(folder / "agent", encoder.cpu(), median, config_extra, card, position=config.position)


def _pretrained(config: AirlocConfig, until: Stage) -> Units | None:
    """Load the agent whose encoder, or segmentation unit, the config names, if any."""
    return _pretrained_encoder(config, until) if config.encoder else _pretrained_segmenter(config, until)


def _pretrained_encoder(config: AirlocConfig, until: Stage) -> Units:
    """Load the agent whose segmentation unit and embedder the config names."""
    if config.segmenter or until in ("segmenter", "embedder"):
        problem = f"The embedder of {config.encoder!r} takes the place of the units that would be trained"
        raise AirlocError(problem, "Leave --encoder out, or train the policy alone, without --segmenter")
    units = load_units(find_checkpoint(config.encoder))
    if (units.encoder.segmenter is not None) != config.variant.sem_seg:
        problem = f"The agent {config.encoder!r} has {'a' if units.encoder.segmenter else 'no'} segmentation unit"
        raise AirlocError(problem, f"Give {'--sem-seg' if units.encoder.segmenter else '--no-sem-seg'}")
    if units.encoder.layers != config.layers:
        problem = f"The encoder of {config.encoder!r} has other layers than these settings"
        raise AirlocError(problem, "Give the preset with which it was trained, such as --preset tuned")
    return units


def _pretrained_segmenter(config: AirlocConfig, until: Stage) -> Units | None:
    """Load the agent whose segmentation unit the config names, if any."""
    if not config.segmenter:
        return None
    if until == "segmenter" or not config.variant.sem_seg:
        problem = f"The segmentation unit of {config.segmenter!r} is not used in this training"
        raise AirlocError(problem, "Leave --segmenter out, or train a later stage of a variant with sem-seg")
    units = load_units(find_checkpoint(config.segmenter))
    if units.encoder.segmenter is None:
        problem = f"The agent {config.segmenter!r} has no segmentation unit"
        raise AirlocError(problem, "Give --segmenter an agent that has one, such as airloc")
    if units.encoder.layers.unet != config.layers.unet:
        problem = f"The segmentation unit of {config.segmenter!r} is not of the form {config.layers.unet!r}"
        raise AirlocError(problem, f"Give --unet {units.encoder.layers.unet}")
    return units


def _initial_embedder(config: AirlocConfig, until: Stage) -> Units | None:
    """Load the agent whose embedder the training starts with, if the config names one."""
    if not config.init_from:
        return None
    if config.encoder or until == "segmenter":
        problem = f"The embedder of {config.init_from!r} is not used in this training"
        raise AirlocError(problem, "Leave --init-from out, or train a later stage without --encoder")
    units = load_units(find_checkpoint(config.init_from))
    trained, wanted = (
        (encoder.segmenter is not None, encoder.layers.batch_norm, encoder.layers.branches)
        for encoder in (units.encoder, PatchEncoder(config.variant.sem_seg, config.layers))
    )
    if trained != wanted:
        problem = f"The embedder of {config.init_from!r} has other layers than the one to train"
        raise AirlocError(problem, "Give --init-from an agent with the same --sem-seg, --batch-norm and --branches")
    return units


def _airloc_card(config: AirlocConfig, result: PolicyResult, command: str, all_terms: str = "") -> str:
    """Return the model card, in Markdown; `all_terms` are terms other than the project's licence."""
    data = config.data
    only = "" if data.only == "*" else f" (files that match `{data.only}`)"
    fold = "" if data.fold is None else f"; fold {data.fold} of {data.folds} was held out and validated on"
    about = [f"Data: datasets {dataset_names(data)}{only}; {data.synthetic} procedural areas{fold}."]
    if config.segmenter:
        about.append(f"Segmentation unit: that of `{config.segmenter}`, frozen.")
    if config.encoder:
        about.append(f"Segmentation unit and embedder: those of `{config.encoder}`, frozen.")
    if config.init_from:
        about.append(f"Initial embedder: that of `{config.init_from}`.")
    on = "all pairs, equal distances" if config.validation == "all-pairs" else "one episode per distance and area"
    mean = "; mean of 5 x 5 and 7 x 7" if config.select == "both" else ""
    successes = ", ".join(f"{100 * success:.1f} %" for success in result.success)
    success = (
        f"Validation success of the {config.seeds} policies trained ({on}{mean}): "
        f"{successes}; this is the median one, {100 * result.success[result.median]:.1f} %."
    )
    return model_card(config.variant.name, about, all_terms, command, success)
