"""Training of AiRLoc from images: segmentation unit, embedder and policy, one after the other, in one folder.

    FOLDER/segmenter    the run of the segmentation unit (not for variants without it)
    FOLDER/embedder     the run of the patch embedder
    FOLDER/policy       the run of the policies
    FOLDER/agent        the checkpoint of the agent: the policy with the median validation success
    FOLDER/config.json  the settings, for `airloc train --config`

A stopped training resumes, and finished stages are not repeated. A segmentation unit that is taken from another agent
stays frozen.
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
from airloc.task.rules import load_reward
from airloc.training.data import DataConfig, terms
from airloc.training.embedder import EmbedderConfig, train_embedder
from airloc.training.reinforce import (
    PolicyConfig,
    PolicyResult,
    finished_result,
    tabulate_features,
    train_policy,
)
from airloc.training.runs import (
    CONFIG,
    COUNT,
    NON_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    check_settings,
    write_settings,
)
from airloc.training.segmenter import SegmenterConfig, train_segmenter
from airloc.vision.embedder import PatchEncoder, Segmenter

Stage = Literal["segmenter", "embedder", "policy", "airloc"]
OnStep = Callable[[str, int, dict[str, float]], None]
"""Called with the stage, its progress (updates, or episodes of the policy) and its metrics."""


@dataclass(frozen=True)
class AirlocConfig:
    """Settings of the training of AiRLoc."""

    data: DataConfig = field(default_factory=DataConfig)
    """Training and validation images."""
    variant: Variant = field(default_factory=Variant)
    """Parts of AiRLoc in use."""
    segmenter: str = ""
    """Use the segmentation unit of this agent, a name or a checkpoint folder, instead of training one."""
    segmenter_steps: int = 20_000
    """Updates of the segmentation unit."""
    embedder_steps: int = 30_000
    """Updates of the embedder."""
    embedder_blocks: int = 28
    """Blocks of 3 x 3 patches per update of the embedder."""
    areas: int = 3000
    """Number of areas that policies are trained on."""
    photos: float = 0.0
    """Share of the embedder's blocks, and of the policies' areas, that are photos with errors of their own."""
    episodes: int = 3_200_000
    """Largest number of training episodes per policy."""
    batch: int = 64
    """Episodes per update and policy."""
    learning_rate: float = 1e-4
    """Learning rate of Adam for the policies."""
    anneal: bool = False
    """Reduce that learning rate linearly to 2 % over the training."""
    reward: str = ""
    """Reward function of the moves as MODULE:FUNCTION (see `airloc.task.rules`); by default 3 * found - 1."""
    validate_every: int = 1000
    """Updates of the policies between validations."""
    select: Literal["own", "both"] = "own"
    """Keep the best policies by success on 5 x 5, or by its mean with success on 7 x 7."""
    table_bytes: int | None = None
    """Memory limit of a feature table of the policies; a larger table is mapped from a file. By default half of the
    free memory of a GPU, or of the memory of the machine."""
    seeds: int = 5
    """Number of policies trained at once; the one with the median validation success is kept."""
    seed: int = 0
    """Random seed for initial weights and sampling."""

    def __post_init__(self) -> None:
        names = "segmenter_steps embedder_steps embedder_blocks areas episodes batch validate_every seeds"
        counts = dict.fromkeys(names.split(), COUNT)
        check_settings(self, **counts, photos=PROBABILITY, learning_rate=POSITIVE, table_bytes=NON_NEGATIVE)

    @property
    def for_segmenter(self) -> SegmenterConfig:
        """Settings of the segmentation unit."""
        return SegmenterConfig(data=self.data, steps=self.segmenter_steps, seed=self.seed)

    @property
    def for_embedder(self) -> EmbedderConfig:
        """Settings of the embedder."""
        return EmbedderConfig(
            data=self.data,
            sem_seg=self.variant.sem_seg,
            segmenter=self.segmenter,
            steps=self.embedder_steps,
            blocks=self.embedder_blocks,
            photos=self.photos,
            validate_every=max(1, min(2000, self.embedder_steps // 5)),
            seed=self.seed,
        )

    @property
    def for_policy(self) -> PolicyConfig:
        """Settings of the policies."""
        return PolicyConfig(
            data=self.data,
            variant=self.variant,
            areas=self.areas,
            photos=self.photos,
            episodes=self.episodes,
            batch=self.batch,
            learning_rate=self.learning_rate,
            anneal=self.anneal,
            reward=self.reward,
            validate_every=self.validate_every,
            select=self.select,
            table_bytes=self.table_bytes,
            seeds=self.seeds,
            seed=self.seed,
        )


PRESETS: dict[str, AirlocConfig] = {
    "paper": AirlocConfig(),
    "large": AirlocConfig(
        episodes=10_240_000,
        batch=256,
        learning_rate=3e-4,
        anneal=True,
        seeds=3,
        data=DataConfig(weights=(6.0, 2.0, 1.0)),
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
        data=DataConfig(synthetic=300),
    ),
}
"""`paper`: the numbers of the paper. `large`: larger batches and more episodes, as for the shipped weights. `fast`:
minutes on two CPU cores."""


def train_stages(
    folder: Path, config: AirlocConfig, until: Stage, *, device: torch.device, command: str, on_step: OnStep
) -> None:
    """Train all stages up to `until`; the last stage, `airloc`, also writes the checkpoint of the agent.

    The model card quotes `command`, the command line. Every validation of a stage calls `on_step`.
    """
    # Check the settings of all stages and the data before anything is written.
    segmenter, embedder, policy = config.for_segmenter, config.for_embedder, config.for_policy
    load_reward(config.reward)
    pretrained = _pretrained_segmenter(config, until)
    all_terms = " and ".join(dict.fromkeys(filter(None, (terms(config.data), pretrained.terms if pretrained else ""))))
    torch.manual_seed(config.seed)
    encoder = PatchEncoder(config.variant.sem_seg).to(device)

    def report(stage: str, step: int, metrics: dict[str, float]) -> None:
        write_settings(folder / CONFIG, config)
        on_step(stage, step, metrics)

    # Segmentation unit.
    if pretrained is not None:
        encoder.segmenter = pretrained.segmenter.to(device)
    elif encoder.segmenter is not None:
        train_segmenter(folder / "segmenter", segmenter, encoder.segmenter, on_step=_of_stage("segmenter", report))
    if until == "segmenter":
        return
    # Embedder.
    train_embedder(folder / "embedder", embedder, encoder, on_step=_of_stage("embedder", report))
    if until == "embedder":
        return
    # Policies.
    run_folder = folder / "policy"
    result = finished_result(run_folder, policy)
    if result is None:
        tables = tabulate_features(encoder, policy, device, run_folder)
        result = train_policy(run_folder, policy, *tables, on_step=_of_stage("policy", report))
    if until == "policy":
        return
    # Checkpoint of the agent.
    median = Policy(config.variant)
    median.load_state_dict({name: tensor[[result.median]].cpu() for name, tensor in result.policies.items()})
    config_extra = {"grid": policy.grid, **({"terms": all_terms} if all_terms else {})}
    save_airloc(folder / "agent", encoder.cpu(), median, config_extra, _airloc_card(config, result, command, all_terms))


class _PretrainedSegmenter(NamedTuple):
    """A segmentation unit of another agent, and the terms of its weights."""

    segmenter: Segmenter
    terms: str


def _pretrained_segmenter(config: AirlocConfig, until: Stage) -> _PretrainedSegmenter | None:
    """Load the segmentation unit of the agent that the config names, if any."""
    if not config.segmenter:
        return None
    if until == "segmenter" or not config.variant.sem_seg:
        problem = f"The segmentation unit of {config.segmenter!r} is not used in this training"
        raise AirlocError(problem, "Leave --segmenter out, or train a later stage of a variant with sem-seg")
    units = load_units(find_checkpoint(config.segmenter))
    if units.encoder.segmenter is None:
        problem = f"The agent {config.segmenter!r} has no segmentation unit"
        raise AirlocError(problem, "Give --segmenter an agent that has one, such as airloc")
    return _PretrainedSegmenter(units.encoder.segmenter, units.config.get("terms", ""))


def _of_stage(stage: str, on_step: OnStep) -> Callable[[int, dict[str, float]], None]:
    return lambda step, metrics: on_step(stage, step, metrics)


def _airloc_card(config: AirlocConfig, result: PolicyResult, command: str, all_terms: str = "") -> str:
    """Return the model card, in Markdown; `all_terms` are terms other than the project's licence."""
    data = config.data
    datasets = ", ".join(data.datasets) if data.root else "none"
    only = "" if data.only == "*" else f" (files that match `{data.only}`)"
    fold = "" if data.fold is None else f"; fold {data.fold} of {data.folds} was held out and validated on"
    segmenter = f"- Segmentation unit: that of `{config.segmenter}`, frozen.\n" if config.segmenter else ""
    mean = "; mean of 5 x 5 and 7 x 7" if config.select == "both" else ""
    successes = ", ".join(f"{100 * success:.1f} %" for success in result.success)
    return (
        f"# {config.variant.name}\n\n"
        f"- Data: datasets {datasets}{only}; {data.synthetic} procedural areas{fold}.\n{segmenter}"
        f"- Terms: {all_terms + ', not the licence of airloc' if all_terms else 'those of the training data'}.\n"
        f"- Command: `{command}`\n"
        f"- Validation success of the {config.seeds} policies trained (all pairs, equal distances{mean}): "
        f"{successes}; this is the median one, {100 * result.success[result.median]:.1f} %.\n"
    )
