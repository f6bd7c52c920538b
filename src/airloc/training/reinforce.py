"""REINFORCE for the temporal unit (LSTM) and the decision unit of AiRLoc.

Method: a batch of 64 episodes is rolled out with sampled moves. The return of each move, discounted by 0.9, is
normalised to zero mean and unit variance among the moves of the batch with the same distance left to the goal. Adam
with learning rate 1e-4 raises the log-probability of moves with high returns. The segmentation unit and the embedder
are frozen, and their outputs are tabulated beforehand (`features`). The best weights by validation success are kept.
Training stops after a number of episodes, or after `patience` validations without improvement. Validation and
evaluation take the most probable move.

The settings below are those of the shipped agents, which deviate from the paper; docs/paper-map.md has the table, and
the preset `paper` the paper's values:

1. `crops`: areas are cropped at any offset of the training images, each in its four flips, not one in each image.
2. `validation`: all pairs of start and goal, with equal distances, not one fixed episode for each distance and area.
3. `position`: positions on other grids count from the border.
4. `anneal`: the learning rate falls linearly; off by default.

The paper normalises "rewards" by distance. With `normalise="rewards"` these are the rewards of single moves. They are
equal at all distances but one, and average zero there, so that coming closer has no value; the returns are normalised
by default and in both presets. Several policies (seeds) are trained at once, stacked, each on its own episodes. The
loss is the mean over the moves made.

Where validation areas are large enough, success on 7 x 7 is logged too.

Legend: T budget, K policies, B episodes, N moves of a batch.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from airloc.agents.policy import Policy, Variant
from airloc.areas.area import Pixels
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task import rules
from airloc.task.cells import ORIENTATIONS, flip_image
from airloc.task.suites import all_pairs, per_distance
from airloc.training.atlas import Atlas
from airloc.training.data import Crops, DataConfig, large_validation_areas, load_atlas, training_areas, validation_areas
from airloc.training.features import FeatureTable, PrivilegedMoves, tabulate
from airloc.training.learner import Learner
from airloc.training.loop import OnStep, UpdateLoop, constant_schedule
from airloc.training.returns import discounted_returns, normalise_by_group
from airloc.training.runs import NON_NEGATIVE, PositiveFloat, PositiveInt, Probability, Run, check_settings
from airloc.vision.embedder import PatchEncoder
from airloc.vision.position import PositionEncoding

FINAL_LEARNING_RATE = 0.02
"""Share of the learning rate that annealing ends with."""
VALIDATION_BATCH = 16_384
"""Largest number of validation episodes rolled out at once."""


@dataclass(frozen=True)
class PolicyConfig:
    """Settings of policy training."""

    data: DataConfig = field(default_factory=DataConfig)
    """Training and validation images."""
    variant: Variant = field(default_factory=Variant)
    """Parts of AiRLoc in use."""
    encoder: str = ""
    """Agent whose segmentation unit and embedder compute the features, if they are not those trained before."""
    grid: str = "5x5"
    """Training grid; square."""
    areas: PositiveInt = 3000
    """Number of areas cropped from the training images; the largest number with one area in each image."""
    crops: Crops = "random"
    """Areas at any offset and scale of the images, or one in each image."""
    position: PositionEncoding = field(default_factory=PositionEncoding)
    """How positions are encoded."""
    photos: Probability = 0.0
    """Share of these areas in which glimpses and goals are photos with errors of their own."""
    episodes: PositiveInt = 3_200_000
    """Largest number of training episodes per policy."""
    batch: PositiveInt = 64
    """Episodes per update and policy."""
    budget: PositiveInt = 10
    """Moves in an episode."""
    learning_rate: PositiveFloat = 1e-4
    """Learning rate of Adam."""
    anneal: bool = False
    """Reduce the learning rate linearly to 2 % over the training."""
    gamma: Probability = 0.9
    """Discount factor."""
    normalise: Literal["returns", "rewards"] = "returns"
    """What is normalised among moves with the same distance left to the goal."""
    reward: str = ""
    """Reward function of the moves as MODULE:FUNCTION (see `airloc.task.rules`); by default 3 * found - 1."""
    validate_every: PositiveInt = 1000
    """Updates between validations; each validation saves the state."""
    validation: Literal["all-pairs", "episodes"] = "all-pairs"
    """Validate on all pairs of start and goal, or on one fixed episode for each distance and area."""
    patience: PositiveInt = 15
    """Validations without a better mean success before training stops."""
    larger_grid: str = "7x7"
    """A second validation grid, with twice its side as the budget, used if validation areas are large enough."""
    select: Literal["own", "both"] = "own"
    """Keep the best weights by success on the training grid, or by its mean with success on the larger grid."""
    table_bytes: Annotated[int | None, NON_NEGATIVE] = None
    """Memory limit of a feature table on the device; a larger table is mapped from a file in the run folder. By default
    half of the free memory of a GPU, or of the memory of the machine."""
    seeds: PositiveInt = 1
    """Number of policies trained at once, with different initial weights."""
    seed: int = 0
    """Random seed for initial weights and sampling."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.steps < 1:
            problem = f"{self.episodes} episodes do not fill one batch of {self.batch}"
            raise AirlocError(problem, "Give more --episodes, or a smaller --batch")

    @property
    def steps(self) -> int:
        """Number of updates."""
        return self.episodes // self.batch


@dataclass(frozen=True, slots=True, eq=False)
class PolicyResult:
    """The result of policy training."""

    policies: dict[str, torch.Tensor]
    """The best weights of every policy, each tensor (K, ...)."""
    success: tuple[float, ...]
    """Validation success of the best weights of every policy."""

    @property
    def median(self) -> int:
        """Index of the policy with the median validation success, which the paper reports."""
        return sorted(range(len(self.success)), key=lambda k: (self.success[k], k))[len(self.success) // 2]


class Episodes(NamedTuple):
    """Episodes for K policies, each (K, B): index of the area, and of the start and goal cell."""

    area: torch.Tensor
    start: torch.Tensor
    goal: torch.Tensor


class Rollout(NamedTuple):
    """The steps of episodes, each (K, B, T), and their outcome. Steps after the end have no effect."""

    action: torch.Tensor
    """Index of the move."""
    log_prob: torch.Tensor
    """Log-probability of the move, with gradient."""
    reward: torch.Tensor
    """Zero after the end."""
    active: torch.Tensor
    """Bool: the episode has not ended before the step."""
    distance: torch.Tensor
    """Distance to the goal before the move; zero after the end."""
    found: torch.Tensor
    """(K, B) bool."""


def train_policy(
    folder: Path,
    config: PolicyConfig,
    features: FeatureTable,
    validation: FeatureTable,
    larger: FeatureTable | None = None,
    *,
    on_step: OnStep,
) -> PolicyResult:
    """Train policies in a run folder.

    Features are those of the training areas, of the validation areas, and of validation areas that hold the larger
    grid, if there are any. Every validation calls `on_step` with the number of episodes and the metrics.
    """
    device = features.device
    torch.manual_seed(config.seed)
    policy = Policy(config.variant, config.seeds).to(device)
    learner = Learner(policy, config.learning_rate)
    validate = _validator(policy, config, validation, larger)

    with Run.open(folder, config) as run:
        best = {name: tensor.detach().clone() for name, tensor in policy.named_parameters()}
        best_success = torch.full((config.seeds,), -1.0, device=device)
        highest, waited = -1.0, 0
        if run.state:
            learner.load_state_dict(run.state["learner"])
            best = {name: tensor.to(device) for name, tensor in run.state["best"].items()}
            best_success = run.state["success"].to(device)
            highest, waited = run.state["highest"], run.state["waited"]
        update = partial(reinforce_update, policy, learner, features, config)
        loop = UpdateLoop(
            run,
            config,
            learner,
            learner.capture(update) if features.on_device else update,
            metrics=2,
            schedule=linear_schedule if config.anneal else constant_schedule,
            stop=lambda: waited >= config.patience,
        )
        for step, (loss, found), validates in loop:
            metrics = {"loss": loss, "success": found}

            # Validate, keep the best weights of each policy, and log.
            if validates:
                success, validated = validate()
                better = success > best_success
                best_success = torch.where(better, success, best_success)
                for name, tensor in policy.named_parameters():
                    best[name][better] = tensor.detach()[better]
                mean = float(success.mean())
                waited = 0 if mean > highest else waited + 1
                highest = max(highest, mean)
                metrics |= {**validated, "val_best": float(best_success.mean())}
                run.log(step, **metrics)

            # Save.
            kept = {"best": best, "success": best_success, "highest": highest, "waited": waited}
            run.save_state(step, {**loop.state(), **kept})
            if validates:
                on_step((step + 1) * config.batch, metrics)
    return PolicyResult(best, tuple(best_success.tolist()))


def linear_schedule(step: int, steps: int) -> float:
    """Return the factor of a learning rate that falls linearly."""
    return max(1 - step / steps, FINAL_LEARNING_RATE)


def reinforce_update(policy: Policy, learner: Learner, features: FeatureTable, config: PolicyConfig) -> torch.Tensor:
    """Make one update, and return its loss and success, (2,)."""
    # Roll out.
    episodes = sample_episodes(features, config.seeds, config.batch)
    rollout = roll_out(policy, features, episodes, config.budget, sample=True, reward=rules.load_reward(config.reward))
    # Returns; they, or the rewards, are normalised among moves with the same distance to the goal.
    active = rollout.active.float().flatten(1)  # (K, N)
    groups = features.grid.max_distance + config.budget + 1
    how = rollout.distance.flatten(1), active, groups
    if config.normalise == "rewards":
        rewards = normalise_by_group(rollout.reward.float().flatten(1), *how) * active
        advantage = discounted_returns(rewards.view_as(rollout.reward), config.gamma).flatten(1)
    else:
        advantage = normalise_by_group(discounted_returns(rollout.reward, config.gamma).flatten(1), *how)
    # Loss: policies share no weights, so that their losses can be added.
    weight = active * advantage / active.sum(dim=1, keepdim=True)
    loss = -(rollout.log_prob.flatten(1) * weight).sum()
    # Step.
    learner.step(loss)
    return torch.stack([loss.detach(), rollout.found.float().mean()])


def sample_episodes(features: FeatureTable, policies: int, batch: int) -> Episodes:
    """Draw areas, starts and goals uniformly, independently for every policy; start and goal differ."""
    count, device = features.grid.count, features.device
    shape = (policies, batch)
    area = torch.randint(features.areas, shape, device=device)
    start = torch.randint(count, shape, device=device)
    goal = (start + torch.randint(1, count, shape, device=device)) % count
    return Episodes(area, start, goal)


def roll_out(
    policy: Policy,
    features: FeatureTable,
    episodes: Episodes,
    budget: int,
    *,
    sample: bool,
    reward: rules.RewardFunction | None = None,
) -> Rollout:
    """Roll out episodes with sampled moves, or with the most probable ones.

    The loop holds only what the next step needs; rewards and distances follow from the path afterwards.
    """
    padded, (policies, batch) = features.padded, episodes.area.shape
    row_offset, place = features.row_offset(episodes.area, episodes.goal), padded.places[episodes.start]
    privileged = PrivilegedMoves(padded, policies, batch) if policy.variant.priv else None
    state = policy.initial_state(batch)
    path, actions, all_logits = [place], [], []
    for noise in _gumbel_noise(policy, budget, batch, sample=sample):
        # Observe and decide.
        logits, state = policy(*features.lookup(row_offset, place), state)  # (K, B, 8)
        if privileged is not None:
            logits = logits.masked_fill(privileged.forbidden(place), -1e9)
        action = (logits.detach() + noise).argmax(dim=2)
        # Move.
        place = place + padded.strides[action]
        path.append(place)
        actions.append(action)
        all_logits.append(logits)
    action = torch.stack(actions, dim=2)
    log_probs = torch.stack(all_logits, dim=2).log_softmax(dim=3)  # (K, B, T, 8)
    log_prob = log_probs.gather(3, action[..., None]).squeeze(3)
    # Rewards and distances.
    position, goal = padded.positions[torch.stack(path, dim=2)], padded.positions[padded.places[episodes.goal]]
    offset = position - goal[:, :, None]  # (K, B, T + 1, 2)
    distance = offset.abs().amax(dim=3)
    closest = distance.cummin(dim=2).values  # zero from the arrival on
    active = closest[..., :-1] > 0
    rewards = rules.move_reward(reward, closest[..., 1:] == 0, offset[:, :, :-1], offset[:, :, 1:]) * active
    return Rollout(action, log_prob, rewards, active, distance[..., :-1] * active, closest[..., -1] == 0)


def _gumbel_noise(policy: Policy, budget: int, batch: int, *, sample: bool) -> torch.Tensor:
    """Draw noise that makes the argmax of logits a sample (Gumbel-max), (T, K, B, 8); zeros without sampling."""
    policies, _, moves = policy.offset.shape
    noise = policy.offset.new_zeros(budget, policies, batch, moves)
    return -noise.exponential_().log_() if sample else noise


class Validation:
    """Success of K policies on the validation areas.

    All (start, goal) pairs weighted to equal distances, or one fixed episode for each distance and area.
    """

    def __init__(
        self, features: FeatureTable, policies: int, kind: Literal["all-pairs", "episodes"] = "all-pairs"
    ) -> None:
        names, grid = [str(number) for number in range(features.areas)], features.grid
        suite = all_pairs(names, grid, equal_distances=True) if kind == "all-pairs" else per_distance(names, grid)
        cells = ((cells[:, 0] * grid.cols + cells[:, 1]) for cells in (suite.start, suite.goal))
        columns = (torch.from_numpy(column).to(features.device) for column in (suite.area, *cells))
        self.episodes = Episodes(*columns)
        self.weight = torch.from_numpy(suite.weight / suite.weight.sum()).float().to(features.device)
        self.features, self.policies = features, policies

    @torch.no_grad()
    def success(self, policy: Policy, budget: int) -> torch.Tensor:
        """Return the success of every policy, (K,)."""
        total = self.weight.new_zeros(self.policies)
        numbers = torch.arange(len(self.weight), device=self.weight.device)
        for part in torch.split(numbers, max(1, VALIDATION_BATCH // self.policies)):
            episodes = Episodes(*(column[part].expand(self.policies, -1) for column in self.episodes))
            found = roll_out(policy, self.features, episodes, budget, sample=False).found
            total += (found * self.weight[part]).sum(dim=1)
        return total


def _validator(
    policy: Policy, config: PolicyConfig, validation: FeatureTable, larger: FeatureTable | None
) -> Callable[[], tuple[torch.Tensor, dict[str, float]]]:
    """Return a function that computes the success that selects weights, (K,), and the metrics to log."""
    if larger is None and config.select == "both":
        problem = f"No validation area is known to be large enough for {config.larger_grid}"
        raise AirlocError(problem, "Give ground sizes (side_m) in windows.csv, or leave --select out")
    own = Validation(validation, config.seeds, config.validation)
    other = None if larger is None else Validation(larger, config.seeds, config.validation)

    def validate() -> tuple[torch.Tensor, dict[str, float]]:
        success = own.success(policy, config.budget)
        metrics = {"val_success": float(success.mean())}
        if other is not None:
            grid = other.features.grid
            on_larger = other.success(policy, grid.default_budget)
            metrics[f"val_success_{grid}"] = float(on_larger.mean())
            success = (success + on_larger) / 2 if config.select == "both" else success
        return success, metrics

    return validate


def finished_result(folder: Path, config: PolicyConfig) -> PolicyResult | None:
    """Return the result of a finished run; None if the run is not finished."""
    with Run.open(folder, config) as run:
        if run.state and (run.step + 1 >= config.steps or run.state["waited"] >= config.patience):
            return PolicyResult(run.state["best"], tuple(run.state["success"].tolist()))
    return None


def tabulate_features(
    encoder: PatchEncoder, config: PolicyConfig, device: torch.device, folder: Path
) -> tuple[FeatureTable, FeatureTable, FeatureTable | None]:
    """Tabulate the features of training areas, of validation areas and, if there are any, of larger ones."""
    grid, larger = Grid.parse(config.grid), Grid.parse(config.larger_grid)
    table = partial(
        tabulate,
        encoder,
        device=device,
        training_grid=grid,
        position=config.position,
        folder=folder,
        limit=config.table_bytes,
    )
    if config.crops == "grid":
        images = _in_all_flips([area.image for area in training_areas(config.data, grid, config.areas)])
    else:
        images = crop_areas(load_atlas(config.data, grid.size[0], device), config.areas, grid, config.seed)
    training = table(images, grid, config.budget, photos=config.photos)
    own = np.stack([area.image for area in validation_areas(config.data, grid)])
    validation = table(own, grid, config.budget)
    large = [area.image for area in large_validation_areas(config.data, larger)]
    return training, validation, table(np.stack(large), larger, larger.default_budget) if large else None


def crop_areas(atlas: Atlas, count: int, grid: Grid, seed: int) -> npt.NDArray[np.uint8]:
    """Crop areas at random places of the training images, each in its four flips: (4 count, height, width, 3)."""
    torch.manual_seed(seed)
    side, parts = grid.size[0], [256] * (count // 256) + [count % 256]
    crops = [atlas.crop(*atlas.sample(part, side), side)[..., :3].cpu().numpy() for part in parts if part]
    return _in_all_flips(np.concatenate(crops))


def _in_all_flips(images: Iterable[Pixels]) -> npt.NDArray[np.uint8]:
    """Return images in their four flips, (4 count, height, width, 3)."""
    return np.stack([flip_image(image, o) for image in images for o in range(ORIENTATIONS)])
