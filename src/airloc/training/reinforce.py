"""REINFORCE for the temporal unit (LSTM) and the decision unit of AiRLoc.

Method: a batch of 64 episodes is rolled out with sampled moves. The return of each move, discounted by 0.9, is
normalised to zero mean and unit variance among the moves of the batch with the same distance left to the goal. Adam
with learning rate 1e-4 raises the log-probability of moves with high returns. The segmentation unit and the embedder
are frozen, and their outputs are tabulated beforehand (`features`). The best weights by validation success are kept.
Training stops after a number of episodes, or after `patience` validations without improvement. Validation and
evaluation take the most probable move.

Deviations from the paper:

1. Areas are cropped at any offset of the training images, each in its four flips.
2. Several policies (seeds) are trained at once, stacked, each on its own episodes.
3. The loss is the mean over the moves made, not over batch x budget.
4. With `anneal`, off by default, the learning rate falls linearly.

Where validation areas are large enough, success on 7 x 7 is logged too.

Legend: T budget, K policies, B episodes, N moves of a batch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from airloc.agents.policy import Policy, Variant
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task import priors, rules
from airloc.task.cells import ORIENTATIONS, flip_image
from airloc.training.atlas import Atlas
from airloc.training.data import DataConfig, large_validation_areas, load_atlas, validation_areas
from airloc.training.features import FeatureTable, PrivilegedMoves, tabulate
from airloc.training.learner import Learner, RunningMean
from airloc.training.runs import (
    COUNT,
    NON_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    Run,
    check_finite,
    check_settings,
    restore_rng,
    rng_state,
)
from airloc.vision.embedder import PatchEncoder

FINAL_LEARNING_RATE = 0.02
"""Share of the learning rate that annealing ends with."""
VALIDATION_BATCH = 16_384
"""Largest number of validation episodes rolled out at once, unless one area has more."""


@dataclass(frozen=True)
class PolicyConfig:
    """Settings of policy training."""

    data: DataConfig = field(default_factory=DataConfig)
    """Training and validation images."""
    variant: Variant = field(default_factory=Variant)
    """Parts of AiRLoc in use."""
    grid: str = "5x5"
    """Training grid; square."""
    areas: int = 3000
    """Number of areas cropped from the training images."""
    photos: float = 0.0
    """Share of these areas in which glimpses and goals are photos with errors of their own."""
    episodes: int = 3_200_000
    """Largest number of training episodes per policy."""
    batch: int = 64
    """Episodes per update and policy."""
    budget: int = 10
    """Moves in an episode."""
    learning_rate: float = 1e-4
    """Learning rate of Adam."""
    anneal: bool = False
    """Reduce the learning rate linearly to 2 % over the training."""
    gamma: float = 0.9
    """Discount factor."""
    reward: str = ""
    """Reward function of the moves as MODULE:FUNCTION (see `airloc.task.rules`); by default 3 * found - 1."""
    validate_every: int = 1000
    """Updates between validations; each validation saves the state."""
    patience: int = 15
    """Validations without a better mean success before training stops."""
    larger_grid: str = "7x7"
    """A second validation grid, with twice its side as the budget, used if validation areas are large enough."""
    select: Literal["own", "both"] = "own"
    """Keep the best weights by success on the training grid, or by its mean with success on the larger grid."""
    table_bytes: int | None = None
    """Memory limit of a feature table on the device; a larger table is mapped from a file in the run folder. By default
    half of the free memory of a GPU, or of the memory of the machine."""
    seeds: int = 1
    """Number of policies trained at once, with different initial weights."""
    seed: int = 0
    """Random seed for initial weights and sampling."""

    def __post_init__(self) -> None:
        counts = dict.fromkeys(("areas", "episodes", "batch", "budget", "validate_every", "patience", "seeds"), COUNT)
        shares = dict.fromkeys(("photos", "gamma"), PROBABILITY)
        check_settings(self, **counts, **shares, learning_rate=POSITIVE, table_bytes=NON_NEGATIVE)
        if self.updates < 1:
            problem = f"{self.episodes} episodes do not fill one batch of {self.batch}"
            raise AirlocError(problem, "Give more --episodes, or a smaller --batch")

    @property
    def updates(self) -> int:
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
    on_step: Callable[[int, dict[str, float]], None],
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
        eager = partial(reinforce_update, policy, learner, features, config)
        update = learner.capture(eager) if features.on_device else eager
        best = {name: tensor.detach().clone() for name, tensor in policy.named_parameters()}
        best_success = torch.full((config.seeds,), -1.0, device=device)
        highest, waited = -1.0, 0
        running = RunningMean(2, device)
        if run.state:
            learner.load_state_dict(run.state["learner"])
            best = {name: tensor.to(device) for name, tensor in run.state["best"].items()}
            best_success = run.state["success"].to(device)
            highest, waited = run.state["highest"], run.state["waited"]
            running.load_state_dict(run.state["running"])
            restore_rng(run.state["rng"])
        for step in range(run.step + 1, config.updates):
            if waited >= config.patience:
                break
            if config.anneal:
                share = max(1 - step / config.updates, FINAL_LEARNING_RATE)
                learner.set_learning_rate(config.learning_rate * share)

            # Roll out, compute returns and loss, and step.
            running.add(update())
            validates = (step + 1) % config.validate_every == 0 or step + 1 == config.updates
            if not (validates or run.is_due()):
                continue
            loss, found = running.mean()
            check_finite(loss, step, run)
            metrics = {"loss": loss, "success": found}

            # Validate, keep the best weights of each policy, and log.
            if validates:
                running.reset()
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
            state = {"learner": learner.state_dict(), "best": best, "success": best_success, "rng": rng_state(device)}
            run.save_state(step, {**state, "running": running.state_dict(), "highest": highest, "waited": waited})
            if validates:
                on_step((step + 1) * config.batch, metrics)
    return PolicyResult(best, tuple(best_success.tolist()))


def reinforce_update(policy: Policy, learner: Learner, features: FeatureTable, config: PolicyConfig) -> torch.Tensor:
    """Make one update, and return its loss and success, (2,)."""
    # Roll out.
    episodes = sample_episodes(features, config.seeds, config.batch)
    rollout = roll_out(policy, features, episodes, config.budget, sample=True, reward=rules.load_reward(config.reward))
    # Returns, normalised among moves with the same distance to the goal.
    returns = discounted_returns(rollout.reward, config.gamma)  # (K, B, T)
    active = rollout.active.float().flatten(1)  # (K, N)
    groups = features.grid.max_distance + config.budget + 1
    advantage = normalise_by_group(returns.flatten(1), rollout.distance.flatten(1), active, groups)
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


def discounted_returns(reward: torch.Tensor, gamma: float) -> torch.Tensor:
    """Compute returns of rewards (..., T): each is the reward plus gamma times the next return.

    >>> discounted_returns(torch.tensor([-1.0, -1.0, 2.0]), 0.9)
    tensor([-0.2800,  0.8000,  2.0000])
    """
    # Not as a matrix product, which a GPU may round to ten bits.
    return (reward[..., None, :] * _discounts(reward.shape[-1], gamma, reward.device)).sum(dim=-1)


@lru_cache
def _discounts(steps: int, gamma: float, device: torch.device) -> torch.Tensor:
    """Return the factor of the reward of every step (second axis) in the return of every step (first axis), (T, T)."""
    step = torch.arange(steps, device=device)
    later = step - step[:, None]
    return torch.where(later < 0, 0.0, gamma ** later.clamp(min=0))


def normalise_by_group(value: torch.Tensor, group: torch.Tensor, counts: torch.Tensor, groups: int) -> torch.Tensor:
    """Normalise the values of every group to zero mean and unit variance; a group without variance divides by one.

    Args:
        value: The values, (K, N).
        group: Group of each value, (K, N), below `groups`.
        counts: 1 for values that count, 0 for others, (K, N) float; the results of the others are undefined.
        groups: Number of groups.
    """
    size, total, squares = value.new_zeros(3, len(value), groups).unbind()
    size = size.scatter_add_(1, group, counts).clamp_(min=1.0)
    mean = total.scatter_add_(1, group, value * counts) / size
    centred = value - mean.gather(1, group)
    variance = squares.scatter_add_(1, group, centred.square() * counts) / size
    # Below this threshold the values of a group are equal up to rounding.
    std = nn.functional.threshold(variance, 1e-8, 1.0).sqrt()
    return centred / std.gather(1, group)


class Validation:
    """Success of K policies on all (start, goal) pairs of the validation areas, weighted to equal distances."""

    def __init__(self, features: FeatureTable, policies: int) -> None:
        grid, device = features.grid, features.device
        prior = torch.from_numpy(priors.per_distance(grid)).float().to(device)
        self._start, self._goal = (~torch.eye(grid.count, dtype=torch.bool, device=device)).nonzero(as_tuple=True)
        self.weight = prior[self._start, self._goal]  # sums to one
        self.features, self.policies = features, policies

    @torch.no_grad()
    def success(self, policy: Policy, budget: int) -> torch.Tensor:
        """Return the success of every policy, (K,)."""
        pairs = len(self.weight)
        total = self.weight.new_zeros(self.policies)
        areas_at_once = max(1, VALIDATION_BATCH // (pairs * self.policies))
        for areas in torch.split(torch.arange(self.features.areas, device=self.weight.device), areas_at_once):
            columns = areas.repeat_interleave(pairs), self._start.repeat(len(areas)), self._goal.repeat(len(areas))
            episodes = Episodes(*(column.expand(self.policies, -1) for column in columns))
            found = roll_out(policy, self.features, episodes, budget, sample=False).found
            total += (found.view(self.policies, -1, pairs) * self.weight).sum(dim=(1, 2))
        return total / self.features.areas


def _validator(
    policy: Policy, config: PolicyConfig, validation: FeatureTable, larger: FeatureTable | None
) -> Callable[[], tuple[torch.Tensor, dict[str, float]]]:
    """Return a function that computes the success that selects weights, (K,), and the metrics to log."""
    if larger is None and config.select == "both":
        problem = f"No validation area is known to be large enough for {config.larger_grid}"
        raise AirlocError(problem, "Give ground sizes (side_m) in windows.csv, or leave --select out")
    own = Validation(validation, config.seeds)
    other = None if larger is None else Validation(larger, config.seeds)

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
        if run.state and (run.step + 1 >= config.updates or run.state["waited"] >= config.patience):
            return PolicyResult(run.state["best"], tuple(run.state["success"].tolist()))
    return None


def tabulate_features(
    encoder: PatchEncoder, config: PolicyConfig, device: torch.device, folder: Path
) -> tuple[FeatureTable, FeatureTable, FeatureTable | None]:
    """Tabulate the features of training areas, of validation areas and, if there are any, of larger ones."""
    grid, larger = Grid.parse(config.grid), Grid.parse(config.larger_grid)
    table = partial(tabulate, encoder, device=device, training_grid=grid, folder=folder, limit=config.table_bytes)
    crops = crop_areas(load_atlas(config.data, grid.size[0], device), config.areas, grid, config.seed)
    training = table(crops, grid, config.budget, photos=config.photos)
    own = np.stack([area.image for area in validation_areas(config.data, grid)])
    validation = table(own, grid, config.budget)
    large = [area.image for area in large_validation_areas(config.data, larger)]
    return training, validation, table(np.stack(large), larger, larger.default_budget) if large else None


def crop_areas(atlas: Atlas, count: int, grid: Grid, seed: int) -> npt.NDArray[np.uint8]:
    """Crop areas at random places of the training images, each in its four flips: (4 count, height, width, 3)."""
    torch.manual_seed(seed)
    side, parts = grid.size[0], [256] * (count // 256) + [count % 256]
    crops = [atlas.crop(*atlas.sample(part, side), side)[..., :3].cpu().numpy() for part in parts if part]
    images = np.concatenate(crops)
    return np.stack([flip_image(image, o) for image in images for o in range(ORIENTATIONS)])
