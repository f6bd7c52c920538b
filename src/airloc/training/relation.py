"""Training of the relation network, and with it of the belief agent.

An update crops areas, cuts them into cells, encodes every cell once, and computes the logits of all pairs of cells and
goals. The loss is the sum of three cross-entropies:

1. Pairs: given one glimpse, in which cell is the goal? The cell of the glimpse counts too (same place).
2. Walks: given all glimpses of a walk, in which unvisited cell is the goal? Logits add up over the glimpses, as the
   belief agent adds them, so that dependences between glimpses are trained too.
3. Directions: given a glimpse beside the goal, in which of the eight directions is it? This follows from the first
   loss, but it learns faster.

With a teacher (`--teacher`) the loss is the difference to its answers instead: `airloc.training.consistency`. All
losses are in `airloc.training.relation_losses`.

Areas have grids of several sizes. The smallest one also fits on small images at coarse scales; of the largest one only
the cells of one walk are observed, so that the network learns about goals far away.

`train_belief` writes two folders:

    FOLDER/relation    the run of the relation network
    FOLDER/agent       the checkpoint of the belief agent

Legend: A areas, C cells, V glimpses and G goals of an area, O offsets, T length of a walk.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import torch

from airloc.agents.checkpoint import load_checkpoint, model_card
from airloc.agents.pretrained import MAX_BLOCKS, MAX_WIDTH, load_relation, save_belief
from airloc.agents.registry import find_checkpoint
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.cells import cut_patches
from airloc.task.photos import MARGIN
from airloc.training.atlas import CropSampler, Imagery, Scales
from airloc.training.consistency import ConditionAugmentation, TwinBatch, sample_twins
from airloc.training.data import (
    DataConfig,
    PairConfig,
    dataset_names,
    join_terms,
    load_imagery,
    terms,
    validation_areas,
)
from airloc.training.learner import Learner, Prefetcher, mixed_precision
from airloc.training.loop import MeanWeights, OnStage, OnStep, UpdateLoop
from airloc.training.photos import PhotoAugmentation
from airloc.training.relation_batches import GoalAugmentation, RelationBatch, random_walks, sample_batch
from airloc.training.relation_losses import consistency_loss, direction_loss, logits_by_cell, pair_loss, walk_loss
from airloc.training.runs import (
    Bounds,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Probability,
    Run,
    Share,
    check_settings,
)
from airloc.vision.offsets import mirrored_offsets
from airloc.vision.relation import ChromaScale, Encoding, RelationNetwork, adjacent_offsets, offsets_between_cells

GRID = Grid()
SMALL_GRID, LARGE_GRID, FAR_GRID = Grid(3, 3), Grid(7, 7), Grid(12, 12)
SCALES = Scales(cell_widths=(0.5, 1.5), resolutions=(0.36, 1.5))
"""Smallest and largest scales; wider than for the other units, because a belief must hold at any height of flight."""
WALKS = 4096
WALK_LENGTH, FAR_WALK_LENGTH = 10, 20


@dataclass(frozen=True)
class RelationConfig:
    """Settings of the training of the relation network."""

    data: DataConfig = field(default_factory=lambda: DataConfig(synthetic=0))
    """Training and validation images."""
    pairs: PairConfig = field(default_factory=PairConfig)
    """Pairs of images of the same place on two days, to train on too."""
    augmentation: GoalAugmentation = field(default_factory=GoalAugmentation)
    """Differences between goals and glimpses."""
    photos: PhotoAugmentation = field(default_factory=PhotoAugmentation)
    """Errors and compression of photos."""
    conditions: ConditionAugmentation = field(default_factory=ConditionAugmentation)
    """Conditions under which a teacher is followed."""
    copies: NonNegativeInt = 3
    """Rotated, stretched and recoloured copies of every image from a file. Areas are exact in these and in procedural
    images alone, which show no block grid along their rows and columns."""
    distortion: Probability = 0.0
    """How much the copies are stretched and recoloured, 0 to 1. It keeps a network from learning places by heart."""
    init_from: str = ""
    """Start with the weights of this belief agent, a name or a checkpoint folder, instead of random weights."""
    mean_share: Probability = 0.0
    """End with the mean of the weights at the validations in this last share of the updates. Zero keeps the last."""
    initial_share: Probability = 0.0
    """Save the average of initial and trained weights with this share of the initial ones (WiSE-FT, arXiv 2109.01903).
    It keeps some of what the initial weights did better."""
    teacher: str = ""
    """Learn to answer under conditions without information about place as this belief agent, a name or a checkpoint
    folder, answers without them: with the mean of its logits for a pair of patches and for the mirrored pair. Batch
    normalisation keeps the statistics of the initial weights."""
    width: Annotated[int, Bounds(low=1, high=MAX_WIDTH)] = 32
    """Channels of the first layers."""
    blocks: Annotated[int, Bounds(low=0, high=MAX_BLOCKS)] = 0
    """Residual blocks of the whole patch and of its sides."""
    chroma_scale: ChromaScale = 3
    """Side of the squares over which the chroma of patches is averaged before they are encoded, in pixels."""
    steps: PositiveInt = 14_000
    """Number of updates."""
    areas: PositiveInt = 24
    """Areas per update."""
    goals: PositiveInt = 10
    """Goals per area."""
    small_share: Share = 0.3
    """Share of the areas that have 3 x 3 cells."""
    large_share: Share = 0.1
    """Share of the areas that have 7 x 7 cells."""
    far_share: Share = 0.1
    """Share of the areas that have 12 x 12 cells, of which only those of one walk are observed."""
    direction_weight: NonNegativeFloat = 1.0
    """Weight of the loss of directions."""
    learning_rate: PositiveFloat = 3e-3
    """Highest learning rate of AdamW."""
    weight_decay: NonNegativeFloat = 0.02
    """Decoupled weight decay of AdamW."""
    max_gradient_norm: NonNegativeFloat = 0.0
    """Largest norm of the gradient of an update; zero does not limit it. A limit steadies updates of few areas."""
    validate_every: PositiveInt = 2000
    """Updates between validations; each validation saves the state."""
    seed: int = 0
    """Random seed for initial weights and sampling."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.initial_share and not self.init_from:
            problem = f"initial_share = {self.initial_share} would average trained with random weights"
            raise AirlocError(problem, "Name the initial weights with --init-from, or leave --initial-share out")
        if self.teacher and not self.init_from:
            problem = f"The teacher {self.teacher!r} would teach random weights, whose statistics are not trained"
            raise AirlocError(problem, f"Give --init-from too, such as --init-from {self.teacher}")


def train_belief(
    folder: Path,
    config: RelationConfig,
    *,
    device: torch.device,
    command: str,
    on_step: OnStage,
) -> None:
    """Train a relation network and write the checkpoint of the belief agent; a stopped training resumes.

    The model card quotes `command`, the command line. Every validation calls `on_step` with "relation", the number of
    updates and the metrics.
    """
    data_terms = terms(config.data, config.pairs)  # also checks that the data is there, before anything is written
    teacher_terms = _teacher_terms(config)
    torch.manual_seed(config.seed)
    network, initial_terms = _initial_network(config)
    network.to(device)
    initial = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    train_relation(folder / "relation", config, network, on_step=partial(on_step, "relation"))
    network.load_state_dict(average_weights(network.state_dict(), initial, config.initial_share))
    metrics = validate(network, validation_areas(config.data, GRID))
    all_terms = join_terms(data_terms, initial_terms, teacher_terms)
    card = _belief_card(config, metrics, command, all_terms)
    save_belief(folder / "agent", network.cpu(), {"terms": all_terms} if all_terms else {}, card)


def train_relation(
    folder: Path, config: RelationConfig, network: RelationNetwork, *, on_step: OnStep
) -> RelationNetwork:
    """Train a relation network in a run folder; a finished run is only loaded."""
    learner = Learner(network, config.learning_rate, config.weight_decay, config.max_gradient_norm)
    mean = MeanWeights(network)
    with Run.open(folder, config) as run:
        if run.state:
            learner.load_state_dict(run.state["learner"])
            mean.load_state_dict(run.state.get("mean", mean.state_dict()))  # runs of earlier versions have none
        if run.step + 1 < config.steps:
            _train(run, config, network, learner, mean, on_step)
    mean.restore()
    return network.eval()


def _train(
    run: Run,
    config: RelationConfig,
    network: RelationNetwork,
    learner: Learner,
    mean: MeanWeights,
    on_step: OnStep,
) -> None:
    """Run the training loop from the step of the run."""
    device = next(network.parameters()).device
    torch.manual_seed(config.seed)
    imagery = load_imagery(config.data, config.pairs, device, SCALES, config.copies, config.distortion)
    boards = [
        _Board.create(imagery, grid, areas, config.goals)
        for grid, areas in _areas_per_grid(config)
        if grid == GRID or imagery.fits(grid.size[0], MARGIN)
    ]
    validation = validation_areas(config.data, GRID)
    teacher = load_teacher(config, device)
    network.train(teacher is None)  # a student keeps the statistics of its layers, and all of its branches
    # Areas are cropped, and photos of their cells and goals are taken, ahead of the update that learns from them.
    prefetcher = Prefetcher([partial(board.sample, config) for board in boards], device)

    def update() -> torch.Tensor:
        with prefetcher.batches() as batches:
            # Relate all pairs of glimpses and goals.
            with mixed_precision(device):
                logits = pair_logits(network, batches)
                answers = logits if teacher is None else teacher(batches)
            # Losses.
            total, metrics = torch.zeros((), device=device), []
            for board, batch, table, answer in zip(boards, batches, logits, answers, strict=True):
                loss, measured = board.loss(batch, table.float(), answer.float(), config)
                total = total + loss * (board.areas / config.areas)
                metrics.append(measured)
            # Step.
            learner.step(total)
        return metrics[0]

    loop = UpdateLoop(run, config, learner, learner.capture(update), metrics=3)
    if run.state:
        prefetcher.load_state(run.state["batches"])
    for step, (pair, walk, correct), validates in loop:
        # Validate, log and save.
        metrics = {"pair_loss": pair, "walk_loss": walk, "accuracy": correct}
        if validates:
            metrics |= validate(network, validation)
            run.log(step, **metrics)
            if step + 1 > config.steps * (1 - config.mean_share):
                mean.add()
        run.save_state(step, {**loop.state(), "mean": mean.state_dict(), "batches": prefetcher.state()})
        if validates:
            on_step(step + 1, metrics)


class _Board(NamedTuple):
    """The areas of an update that have the same grid."""

    grid: Grid
    crops: CropSampler
    walks: torch.Tensor
    """Walks over the cells, as indices into the glimpses of an area, (W, T)."""
    routes: torch.Tensor | None
    """Cells to observe, (W, T); None to observe all cells."""
    areas: int
    """Areas per update."""
    goals: int
    """Goals per area."""

    @classmethod
    def create(cls, imagery: Imagery, grid: Grid, areas: int, goals: int) -> "_Board":
        """Prepare the sampling of areas. Of the far grid only the cells of one walk are observed."""
        device = imagery.pixels.device
        crops = CropSampler(imagery, grid.size[0], MARGIN)
        goals = min(goals, grid.count)
        if grid != FAR_GRID:
            walks = random_walks(grid, WALKS, min(WALK_LENGTH, grid.count - 1), device)
            return cls(grid, crops, walks, None, areas, goals)
        routes = random_walks(grid, WALKS, FAR_WALK_LENGTH, device)
        ordered = routes.sort(dim=1).values
        routes = routes[(ordered[:, 1:] != ordered[:, :-1]).all(dim=1)]  # no cell twice
        return cls(grid, crops, torch.arange(FAR_WALK_LENGTH, device=device)[None], routes, areas, goals)

    def sample(self, config: RelationConfig) -> RelationBatch | TwinBatch:
        """Draw areas with glimpses and goals; with a teacher, as both networks see them."""
        drawn = self.crops, self.grid, self.observed(), self.goals, config.augmentation
        return sample_twins(*drawn, config.conditions) if config.teacher else sample_batch(*drawn, config.photos)

    def loss(
        self, batch: RelationBatch | TwinBatch, logits: torch.Tensor, answers: torch.Tensor, config: RelationConfig
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss of logits (A, V, G, O), and the losses of pairs and walks with the accuracy, (3,).

        With a teacher the loss is the difference to its `answers`, (A, V, G, O).
        """
        by_cell = logits_by_cell(logits, batch.observed, self.grid)
        walk, correct = walk_loss(by_cell, batch.cell, batch.observed, self.walks)
        if config.teacher:
            pair, walk = consistency_loss(answers, logits, batch.observed, self.walks, self.grid)
            total = pair + walk
        else:
            pair = pair_loss(by_cell, batch.cell)
            total = pair + walk
            total = total + config.direction_weight * direction_loss(logits, batch.cell, batch.observed, self.grid)
        return total, torch.stack([pair.detach(), walk.detach(), correct])

    def observed(self) -> torch.Tensor:
        """Return the cells to observe in each area, (A, V)."""
        device = self.walks.device
        if self.routes is None:
            return torch.arange(self.grid.count, device=device).expand(self.areas, -1)
        return self.routes[torch.randint(len(self.routes), (self.areas,), device=device)]


def _teacher_terms(config: RelationConfig) -> str:
    """Return the terms of the teacher's weights, empty if there is none, or raise an error if it is no belief agent."""
    if not config.teacher:
        return ""
    checkpoint = load_checkpoint(find_checkpoint(config.teacher))
    load_relation(checkpoint)
    return str(checkpoint.config.get("terms", ""))


Teacher: TypeAlias = Callable[[Sequence[RelationBatch | TwinBatch]], list[torch.Tensor]]
"""Returns the logits of the teacher for each batch, (A, V, G, O)."""


def load_teacher(config: RelationConfig, device: torch.device) -> Teacher | None:
    """Return what the teacher answers about batches as they are; None if the config names none."""
    if not config.teacher:
        return None
    network = load_relation(load_checkpoint(find_checkpoint(config.teacher))).to(device).eval()
    mirror = torch.tensor(mirrored_offsets(), device=device)

    @torch.no_grad()
    def answer(batches: Sequence[RelationBatch | TwinBatch]) -> list[torch.Tensor]:
        plain = [batch.plain() for batch in batches if isinstance(batch, TwinBatch)]
        flipped = [batch._replace(glimpses=batch.glimpses.flip(4), goals=batch.goals.flip(4)) for batch in plain]
        both = zip(pair_logits(network, plain), pair_logits(network, flipped), strict=True)
        return [(logits + mirrored[..., mirror]) / 2 for logits, mirrored in both]

    return answer


def _areas_per_grid(config: RelationConfig) -> list[tuple[Grid, int]]:
    """Return the grids of an update, each with its number of areas."""
    shares = {SMALL_GRID: config.small_share, LARGE_GRID: config.large_share, FAR_GRID: config.far_share}
    counts = {grid: round(config.areas * share) for grid, share in shares.items()}
    counts = {GRID: max(1, config.areas - sum(counts.values())), **counts}
    return [(grid, count) for grid, count in counts.items() if count]


def pair_logits(network: RelationNetwork, batches: Sequence[RelationBatch | TwinBatch]) -> list[torch.Tensor]:
    """Compute the logits of the offset from every glimpse to every goal, (A, V, G, O) for each batch."""
    patches = [torch.cat([batch.glimpses, batch.goals], dim=1) for batch in batches]
    encoded = network.encode(torch.cat([part.flatten(0, 1) for part in patches]))
    counts = [len(part) * part.shape[1] for part in patches]
    by_batch = zip(*(torch.split(part, counts) for part in encoded), strict=True)
    logits = []
    for batch, parts in zip(batches, by_batch, strict=True):
        (areas, glimpses), goals = batch.observed.shape, batch.cell.shape[1]
        both = [part.reshape(areas, glimpses + goals, *part.shape[1:]) for part in parts]
        glimpse = (part[:, :glimpses, None].expand(-1, -1, goals, *part.shape[2:]).flatten(0, 2) for part in both)
        goal = (part[:, None, glimpses:].expand(-1, glimpses, -1, *part.shape[2:]).flatten(0, 2) for part in both)
        related = network.relate(Encoding(*glimpse), Encoding(*goal))
        logits.append(related.view(areas, glimpses, goals, -1))
    return logits


@torch.no_grad()
def all_pair_logits(network: RelationNetwork, areas: Sequence[SearchArea], grid: Grid) -> torch.Tensor:
    """Compute the logits of every pair of cells of every area, (A, C glimpses, C goals, O)."""
    device = next(network.parameters()).device
    tables = []
    for area in areas:
        encoding = network.encode_patches(torch.from_numpy(cut_patches(area.image, grid)).to(device))
        glimpse = encoding.at(torch.arange(grid.count, device=device).repeat_interleave(grid.count))
        goal = encoding.at(torch.arange(grid.count, device=device).repeat(grid.count))
        tables.append(network.relate(glimpse, goal).view(grid.count, grid.count, -1))
    return torch.stack(tables)


def validate(network: RelationNetwork, areas: Sequence[SearchArea], grid: Grid = GRID) -> dict[str, float]:
    """Return the 8-way accuracy of adjacent pairs and the pair loss on whole areas."""
    was_training = network.training
    network.eval()
    logits = all_pair_logits(network, areas, grid)
    network.train(was_training)
    offset = offsets_between_cells(grid, logits.device)
    directions = adjacent_offsets(logits.device)
    beside = torch.isin(offset, directions)
    predicted = directions[logits[:, beside][..., directions].argmax(dim=2)]
    cells = torch.arange(grid.count, device=logits.device).expand(len(areas), -1)
    return {
        "val_accuracy": float((predicted == offset[beside]).float().mean()),
        "val_pair_loss": float(pair_loss(logits_by_cell(logits, cells, grid), cells)),
    }


def _initial_network(config: RelationConfig) -> tuple[RelationNetwork, str]:
    """Return the network that training starts with, and the terms of its weights."""
    if not config.init_from:
        return RelationNetwork(config.width, config.blocks, config.chroma_scale), ""
    checkpoint = load_checkpoint(find_checkpoint(config.init_from))
    network = load_relation(checkpoint)
    if network.width == config.width and network.blocks < config.blocks:
        deeper = RelationNetwork(config.width, config.blocks)  # more blocks change nothing at first
        deeper.load_state_dict(network.state_dict(), strict=False)
        network = deeper
    network.chroma_scale = config.chroma_scale
    if network.width != config.width:
        problem = f"{config.init_from!r} has the width {network.width}, and the setting is width = {config.width}"
        raise AirlocError(problem, f"Give --width {network.width}, or other weights with --init-from")
    return network, checkpoint.config.get("terms", "")


def average_weights(
    trained: Mapping[str, torch.Tensor], initial: Mapping[str, torch.Tensor], initial_share: float
) -> dict[str, torch.Tensor]:
    """Return the mean of two states of a network, with a share of the initial one."""
    return {
        name: torch.lerp(tensor.double(), initial[name].double(), initial_share).to(tensor.dtype)
        for name, tensor in trained.items()
    }


def _belief_card(config: RelationConfig, metrics: dict[str, float], command: str, all_terms: str = "") -> str:
    """Return the model card, in Markdown; `all_terms` are terms other than the project's licence."""
    paired = "".join(f"; pairs of {Path(name).name}" for name in config.pairs.pairs)
    paired += f"; {config.pairs.disaster_pairs} procedural pairs" if config.pairs.disaster_pairs else ""
    averaged = f", {100 * config.initial_share:g} % of the average that is saved" if config.initial_share else ""
    about = [
        "What: the relation network of a belief agent.",
        f"Data: datasets {dataset_names(config.data)}; {config.data.synthetic} procedural areas{paired}.",
    ]
    if config.init_from:
        about.append(f"Initial weights: those of `{config.init_from}`{averaged}.")
    if config.teacher:
        about.append(f"Teacher: `{config.teacher}`, under conditions without information about place.")
    result = (
        f"On the validation areas: 8-way accuracy of adjacent pairs {100 * metrics['val_accuracy']:.1f} %, "
        f"loss of single glimpses {metrics['val_pair_loss']:.3f}."
    )
    return model_card("belief", about, all_terms, command, result)
