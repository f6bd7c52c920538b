"""Training of the relation network: puzzles of cells, judged pair by pair and walk by walk.

An update cuts areas into cells, encodes every cell once and judges all pairs of cells and goals. Three losses, all
cross-entropies:

1. Pairs: given one glimpse, in which cell is the goal? The glimpse's own cell counts too (same place).
2. Walks: given all glimpses of a walk, in which of the cells not visited is the goal? Logits add up over the glimpses,
   as the belief searcher adds them, so that what it believes is what was trained, dependences between glimpses
   included.

3. Directions: given a glimpse beside the goal, in which of the eight directions is it? What this asks for follows from
   the first loss, but it learns faster.

Part of the areas have a smaller grid than the task's, which also fits on small pictures at coarse scales.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch.nn.functional import cross_entropy

from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.pretrained import load_relation, save_belief
from airloc.agents.registry import find_checkpoint
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.cells import cut_patches
from airloc.training.data import Atlas, Data, Pairs, Scales, load_atlas, load_pairs, terms, validation_areas
from airloc.training.embedder import schedule
from airloc.training.learner import Learner
from airloc.training.puzzles import Change, Puzzle, draw_puzzles, random_walks
from airloc.training.runs import Run, check_finite, refuse_below_one, restore_rng, rng_state
from airloc.vision.relation import Encoding, RelationNetwork, adjacent_offsets, offsets_between_cells

GRID = Grid()
SMALL = Grid(3, 3)
SCALES = Scales(known=(0.55, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5), unknown=(1.0, 0.85, 0.75, 0.6, 0.45, 0.35))
"""More than other units see: a belief must hold at any height of flight."""
WALKS = 4096
WALK = 10


@dataclass(frozen=True)
class RelationConfig:
    """Settings of the relation network's training."""

    data: Data = field(default_factory=lambda: Data(synthetic=0))
    """What is trained on."""
    pairs: Pairs = field(default_factory=Pairs)
    """Pictures of the same ground on two days, to train on too."""
    change: Change = field(default_factory=Change)
    """How goals may differ from glimpses."""
    start: str = ""
    """Begin with the weights of this belief searcher, a name or a checkpoint folder, instead of random ones."""
    width: int = 32
    """Feature maps of the first layers."""
    steps: int = 14_000
    """Updates."""
    areas: int = 24
    """Areas in an update."""
    goals: int = 10
    """Goals in each of them."""
    small: float = 0.4
    """Share of the areas that are small."""
    direction: float = 1.0
    """Weight of the loss by direction, of glimpses beside the goal."""
    learning_rate: float = 3e-3
    """The optimizer's learning rate at its highest."""
    decay: float = 0.02
    """Weight decay."""
    validate_every: int = 2000
    """Updates between validations, each of which saves the state."""
    seed: int = 0
    """Decides weights and draws."""

    def __post_init__(self) -> None:
        refuse_below_one("A relation network", self, ("width", "steps", "areas", "goals", "validate_every"))
        if not 0 <= self.small < 1:
            problem = f"A share of {self.small} small areas leaves none of the task's size"
            raise AirlocError(problem, "Give --small 0 or more, and less than 1")


def train_relation(
    folder: Path, config: RelationConfig, network: RelationNetwork, *, on_step: Callable[[int, dict[str, float]], None]
) -> RelationNetwork:
    """Train a relation network in a run folder."""
    device = next(network.parameters()).device
    learner = Learner(network, config.learning_rate, config.decay)
    with Run.open(folder, config) as run:
        if run.state:
            learner.put(run.state["learner"])
        if run.step + 1 < config.steps:
            _learn(run, config, network, learner, on_step, device)
    return network.eval()


def _learn(
    run: Run,
    config: RelationConfig,
    network: RelationNetwork,
    learner: Learner,
    on_step: Callable[[int, dict[str, float]], None],
    device: torch.device,
) -> None:
    """The loop, from where the run stands."""
    torch.manual_seed(config.seed)
    checked = validation_areas(config.data, GRID)
    update = _update(config, network, learner, device)
    if run.state:
        restore_rng(run.state["rng"])
    seen = torch.zeros(3, device=device)
    network.train()
    for step in range(run.step + 1, config.steps):
        learner.set_learning_rate(config.learning_rate * schedule(step, config.steps))
        seen += update()
        # Validate, log and save.
        if (step + 1) % config.validate_every == 0 or step + 1 == config.steps:
            pair, walk, right = (seen / (step - run.step)).tolist()
            seen.zero_()
            check_finite(walk, step, run)
            figures = {"pair_loss": pair, "walk_loss": walk, "accuracy": right}
            figures |= validate(network, checked)
            run.log(step, **figures)
            run.save_state(step, {"learner": learner.take(), "rng": rng_state(device)})
            on_step(step + 1, figures)


def _update(
    config: RelationConfig, network: RelationNetwork, learner: Learner, device: torch.device
) -> Callable[[], torch.Tensor]:
    """One update on areas of both grids, made fast where the device can."""
    boards = [_Board.of(config, grid, areas, device) for grid, areas in _shares(config)]
    network.train()

    def update() -> torch.Tensor:
        losses = torch.zeros((), device=device)
        figures = []
        for board in boards:
            # Cut areas into cells and draw goals.
            puzzle = draw_puzzles(board.atlas, board.grid, board.areas, board.goals, config.change)
            # Judge all pairs of cells and goals.
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda", cache_enabled=False):
                logits = judge(network, puzzle)
            # Losses by pair and by walk.
            offsets = _cells(board.grid, device)
            by_cell = logits.float().gather(3, offsets.expand(*logits.shape[:3], -1))  # (A, C, G, C)
            pair = pair_loss(by_cell, puzzle.cell)
            walk, right = walk_loss(by_cell, puzzle.cell, board.walks)
            beside = direction_loss(logits.float(), puzzle.cell, board.grid)
            losses = losses + (pair + walk + config.direction * beside) * (board.areas / config.areas)
            figures.append(torch.stack([pair.detach(), walk.detach(), right]))
        # Learn.
        learner.descend(losses)
        return figures[0]

    return learner.capture(update)


class _Board(NamedTuple):
    """A grid to draw puzzles on, and what for."""

    grid: Grid
    atlas: Atlas
    walks: torch.Tensor
    areas: int
    goals: int

    @classmethod
    def of(cls, config: RelationConfig, grid: Grid, areas: int, device: torch.device) -> "_Board":
        atlas = load_atlas(config.data, grid.size[0], device, scales=SCALES)
        pairs = load_pairs(config.pairs, grid.size[0], device, SCALES)
        atlas = atlas if pairs is None else atlas.beside(pairs, config.pairs.pairs_share)
        walks = random_walks(grid, WALKS, min(WALK, grid.count - 1), device)
        return cls(grid, atlas, walks, areas, min(config.goals, grid.count))


def _shares(config: RelationConfig) -> list[tuple[Grid, int]]:
    """The grids of an update, each with its number of areas."""
    small = round(config.areas * config.small)
    return [(GRID, config.areas - small)] + ([(SMALL, small)] if small else [])


def judge(network: RelationNetwork, puzzle: Puzzle) -> torch.Tensor:
    """Logits of all pairs of cells and goals, (A, C, G, O)."""
    areas, cells = puzzle.glimpses.shape[:2]
    goals = puzzle.goals.shape[1]
    both = network.encode(torch.cat([puzzle.glimpses, puzzle.goals], dim=1).flatten(0, 1))
    parts = [part.reshape(areas, cells + goals, *part.shape[1:]) for part in both]
    glimpse = Encoding(*(part[:, :cells, None].expand(-1, -1, goals, *part.shape[2:]).flatten(0, 2) for part in parts))
    goal = Encoding(*(part[:, None, cells:].expand(-1, cells, -1, *part.shape[2:]).flatten(0, 2) for part in parts))
    return network.relate(glimpse, goal).view(areas, cells, goals, -1)


def pair_loss(by_cell: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """How far single glimpses are from naming the goal's cell; by_cell (A, C, G, C), goal (A, G)."""
    target = goal[:, None].expand(by_cell.shape[:3])
    return cross_entropy(by_cell.flatten(0, 2), target.flatten())


def direction_loss(logits: torch.Tensor, goal: torch.Tensor, grid: Grid) -> torch.Tensor:
    """How far glimpses beside the goal are from naming its direction; logits (A, C, G, O), goal (A, G)."""
    to = adjacent_offsets(logits.device)
    offset = offsets_between_cells(grid, logits.device).T[goal].transpose(1, 2)  # (A, C, G)
    is_it = offset[..., None] == to  # (A, C, G, 8)
    beside = is_it.any(dim=3).float()
    named = logits[..., to].log_softmax(dim=3)
    return -(named * is_it).sum() / beside.sum()


def walk_loss(by_cell: torch.Tensor, goal: torch.Tensor, walks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How far whole walks are from naming the goal's cell among those not visited, and how often they name it."""
    areas, cells, goals, _ = by_cell.shape
    device = by_cell.device
    walk = walks[torch.randint(len(walks), (areas, goals), device=device)]  # (A, G, T)
    steps = torch.arange(walk.shape[2], device=device)
    when = steps.expand_as(walk).masked_fill(walk != goal[..., None], len(steps))
    reached = when.amin(dim=2)  # the walk ends before the goal
    length = torch.minimum(torch.randint(1, len(steps) + 1, (areas, goals), device=device), reached)
    made = (steps < length[..., None]).float()
    visited = torch.zeros(areas, goals, cells, device=device).scatter_reduce(2, walk, made, "amax")
    belief = torch.einsum("agv,avgc->agc", visited, by_cell).masked_fill(visited > 0, -torch.inf)
    weight = (length > 0).float()
    loss = cross_entropy(belief.flatten(0, 1), goal.flatten(), reduction="none").view_as(weight)
    right = (belief.argmax(dim=2) == goal).float()
    return (loss * weight).sum() / weight.sum(), (right * weight).sum() / weight.sum()


def _cells(grid: Grid, device: torch.device) -> torch.Tensor:
    """For each glimpse's cell the offsets to all cells, (1, C, 1, C)."""
    return offsets_between_cells(grid, device)[None, :, None]


@torch.no_grad()
def relate_all(network: RelationNetwork, areas: Sequence[SearchArea], grid: Grid) -> torch.Tensor:
    """Logits of every pair of cells of every area, (A, C glimpses, C goals, O)."""
    device = next(network.parameters()).device
    tables = []
    for area in areas:
        encoding = network.encode_patches(torch.from_numpy(cut_patches(area.image, grid)).to(device))
        glimpse = encoding.at(torch.arange(grid.count, device=device).repeat_interleave(grid.count))
        goal = encoding.at(torch.arange(grid.count, device=device).repeat(grid.count))
        tables.append(network.relate(glimpse, goal).view(grid.count, grid.count, -1))
    return torch.stack(tables)


def validate(network: RelationNetwork, areas: Sequence[SearchArea], grid: Grid = GRID) -> dict[str, float]:
    """Figures on whole areas: 8-way accuracy of adjacent pairs, and the loss of single glimpses."""
    was_training = network.training
    network.eval()
    logits = relate_all(network, areas, grid)
    network.train(was_training)
    device = logits.device
    offset = offsets_between_cells(grid, device)
    to = adjacent_offsets(device)
    beside = torch.isin(offset, to)
    named = to[logits[:, beside][..., to].argmax(dim=2)]
    by_cell = logits.gather(3, _cells(grid, device).expand(*logits.shape[:3], -1))
    goal = torch.arange(grid.count, device=device).expand(len(areas), -1)
    return {
        "val_accuracy": float((named == offset[beside]).float().mean()),
        "val_pair_loss": float(pair_loss(by_cell, goal)),
    }


# ---------- The belief searcher from pictures: its relation network, in one folder.
# ~
# ~ FOLDER/relation    the run of the relation network
# ~ FOLDER/agent       the checkpoint of the searcher


def train_searcher(
    folder: Path,
    config: RelationConfig,
    *,
    device: torch.device,
    command: str,
    on_step: Callable[[str, int, dict[str, float]], None],
) -> None:
    """Train a relation network and write the searcher's checkpoint; run again, it goes on where it stopped."""
    torch.manual_seed(config.seed)
    network, known = _begin(config)
    network.to(device)
    train_relation(
        folder / "relation", config, network, on_step=lambda step, figures: on_step("relation", step, figures)
    )
    figures = validate(network, validation_areas(config.data, GRID))
    parts = (terms(config.data), config.pairs.terms, known)
    under = " and ".join(dict.fromkeys(filter(None, parts)))
    save_belief(
        folder / "agent", network.cpu(), {"terms": under} if under else {}, card(config, figures, command, under)
    )


def _begin(config: RelationConfig) -> tuple[RelationNetwork, str]:
    """The network that training begins with, and the terms it is under."""
    if not config.start:
        return RelationNetwork(config.width), ""
    checkpoint = load_checkpoint(find_checkpoint(config.start))
    network = load_relation(checkpoint)
    if network.width != config.width:
        problem = f"{config.start!r} has the width {network.width}, and {config.width} is asked for"
        raise AirlocError(problem, f"Give --width {network.width}, or other weights to --start with")
    return network, checkpoint.config.get("terms", "")


def card(config: RelationConfig, figures: dict[str, float], command: str, under: str = "") -> str:
    """What the weights are, in Markdown; `under` names terms other than the project's licence."""
    sets = ", ".join(config.data.sets) if config.data.root else "none"
    paired = f"; pairs of {config.pairs.pairs.name}" if config.pairs.pairs else ""
    paired += f"; {config.pairs.disaster_pairs} procedural pairs" if config.pairs.disaster_pairs else ""
    begun = f"- Begun with the weights of `{config.start}`.\n" if config.start else ""
    return (
        "# belief\n\n"
        "- What: the relation network of a belief searcher.\n"
        f"- Data: sets {sets}; {config.data.synthetic} procedural areas{paired}.\n{begun}"
        f"- Terms: {under + ', not the licence of airloc' if under else 'those of the data it was trained on'}.\n"
        f"- Made by: `{command}`\n"
        f"- On the validation areas: 8-way accuracy of adjacent pairs {100 * figures['val_accuracy']:.1f} %, "
        f"loss of single glimpses {figures['val_pair_loss']:.3f}.\n"
    )
