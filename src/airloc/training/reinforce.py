"""Discounted returns, and their normalisation by distance left to the goal.

Legend: T steps, K policies, N moves.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import nn

from airloc.agents.policy import Policy, Variant, lstm
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task import priors, rules
from airloc.task.cells import ORIENTATIONS, flip_image
from airloc.training.data import Atlas, Data, large_validation_areas, load_atlas, validation_areas
from airloc.training.features import Features, Privileges, tabulate
from airloc.training.learner import Learner
from airloc.training.lstm import Step, Tape
from airloc.training.runs import Run, check_finite, refuse_below_one, restore_rng, rng_state
from airloc.vision.embedder import EMBEDDING, PatchEncoder


def discounted(reward: torch.Tensor, gamma: float) -> torch.Tensor:
    """Returns of rewards (..., T): each the reward plus gamma times the next return.

    >>> discounted(torch.tensor([-1.0, -1.0, 2.0]), 0.9)
    tensor([-0.2800,  0.8000,  2.0000])
    """
    # Multiplied and summed, and not as a matrix product, which a GPU may round to ten bits.
    return (reward[..., None, :] * _discounts(reward.shape[-1], gamma, reward.device)).sum(dim=-1)


@lru_cache
def _discounts(steps: int, gamma: float, device: torch.device) -> torch.Tensor:
    """What the reward of every step (second axis) is worth at every earlier one (first axis), (T, T)."""
    step = torch.arange(steps, device=device)
    later = step - step[:, None]
    return torch.where(later < 0, 0.0, gamma ** later.clamp(min=0))


def normalise_by_group(value: torch.Tensor, group: torch.Tensor, counts: torch.Tensor, groups: int) -> torch.Tensor:
    """Bring the values of every group to zero mean and unit variance; a group without spread divides by one.

    Args:
        value: The values, (K, N).
        group: Number of each value's group, (K, N), below `groups`.
        counts: Whether each value counts, (K, N) float; those that do not come out as they may.
        groups: How many groups there are.
    """
    size, total, squares = value.new_zeros(3, len(value), groups).unbind()
    size = size.scatter_add_(1, group, counts).clamp_(min=1.0)
    mean = total.scatter_add_(1, group, value * counts) / size
    centred = value - mean.gather(1, group)
    variance = squares.scatter_add_(1, group, centred.square() * counts) / size
    # Below this the values of a group are equal up to rounding.
    spread = nn.functional.threshold(variance, 1e-8, 1.0).sqrt()
    return centred / spread.gather(1, group)


# ---------- Flying episodes on tabulated features: the rollout of policy training and its validation.
# ~
# ~ The loop over the steps holds only what the next step needs; what follows from the path (rewards, distances, who was
# ~ still flying) is computed once after it. Those who found the goal fly on, and what they do then does not count.
# ~
# ~ Legend: T budget, K policies, B episodes.

AT_ONCE = 16_384
"""Episodes that a validation flies at once, at most, unless one area has more."""


class Episodes(NamedTuple):
    """Episodes for K policies, each (K, B): numbers of areas, and of the cells of starts and goals."""

    area: torch.Tensor
    start: torch.Tensor
    goal: torch.Tensor


class Flight(NamedTuple):
    """What happened at every step, each (K, B, T), and who found the goal."""

    action: torch.Tensor
    """The move made, by its number."""
    reward: torch.Tensor
    """Zero after the end."""
    flying: torch.Tensor
    """Whether the episode was still on, bool."""
    distance: torch.Tensor
    """Left to the goal, before the move; zero after the end."""
    found: torch.Tensor
    """(K, B) bool."""


def draw_episodes(features: Features, policies: int, batch: int) -> Episodes:
    """Draw areas, starts and different goals uniformly, for every policy its own."""
    count, device = features.grid.count, features.device
    shape = (policies, batch)
    area = torch.randint(features.areas, shape, device=device)
    start = torch.randint(count, shape, device=device)
    goal = (start + torch.randint(1, count, shape, device=device)) % count
    return Episodes(area, start, goal)


@torch.no_grad()
def fly(
    policy: Policy,
    features: Features,
    episodes: Episodes,
    budget: int,
    *,
    sample: bool,
    tape: Tape | None = None,
) -> Flight:
    """Fly episodes, drawing moves by their probability or taking the most probable ones.

    Args:
        policy: Who flies.
        features: What the eyes say of the areas.
        episodes: Areas, starts and goals.
        budget: Moves in an episode.
        sample: Draw moves.
        tape: Where to record what learning from the flight needs.
    """
    frame, (policies, batch) = features.frame, episodes.area.shape
    quest, place = features.quest(episodes.area, episodes.goal), frame.places[episodes.start]
    privileges = Privileges(frame, policies, batch) if policy.variant.priv else None
    weights = torch.cat([policy.read, policy.recall], dim=1)  # (K, I + H, 4 H)
    bias = policy.bias.repeat(1, batch, 1)
    memory, reads = policy.initial_state(batch), policy.read.shape[1]
    path, actions = [place], []
    for liking in _chance(policy, budget, batch, sample=sample):
        # See and remember.
        inputs = weights.new_empty(policies, batch, weights.shape[1])
        features.look(quest, place, out=inputs[..., :reads])
        inputs[..., reads:] = memory.hidden
        earlier = memory.cell
        memory, acted = lstm(torch.bmm(inputs, weights), bias, earlier)
        # Decide.
        liking.baddbmm_(memory.hidden, policy.decide)
        if policy.variant.residual:
            liking += inputs[..., EMBEDDING:reads]
        if privileges is not None:
            forbidden = privileges.forbidden(place)
            liking.masked_fill_(forbidden, -1e9)
        action = liking.argmax(dim=2)
        # Move.
        place = place + frame.strides[action]
        path.append(place)
        actions.append(action)
        if tape is not None:
            tape.steps.append(Step(inputs, earlier, memory, acted))
            if privileges is not None:
                tape.forbidden.append(forbidden)
    return _account(features, torch.stack(path, dim=2), torch.stack(actions, dim=2), episodes.goal)


def _chance(policy: Policy, budget: int, batch: int, *, sample: bool) -> torch.Tensor:
    """What a choice begins with, (T, K, B, 8): the offset of the logits and, to draw by probability, Gumbel noise."""
    policies, _, moves = policy.offset.shape
    if not sample:
        return policy.offset.repeat(budget, 1, batch, 1)
    return policy.offset - policy.offset.new_empty(budget, policies, batch, moves).exponential_().log_()


def _account(features: Features, path: torch.Tensor, action: torch.Tensor, goal: torch.Tensor) -> Flight:
    """What follows from the places (K, B, T + 1) that moves (K, B, T) led to on the way to goals (K, B)."""
    position, target = features.frame.positions[path], features.frame.positions[features.frame.places[goal]]
    distance = (position - target[:, :, None]).abs().amax(dim=3)
    closest = distance.cummin(dim=2).values  # zero from the arrival on
    flying = closest[..., :-1] > 0
    reward = (rules.FOUND_REWARD * (closest[..., 1:] == 0) + rules.STEP_REWARD) * flying
    return Flight(action, reward, flying, distance[..., :-1] * flying, closest[..., -1] == 0)


class Validation:
    """All pairs of the validation areas, weighed to equal distances: success without the noise of a draw."""

    def __init__(self, features: Features, policies: int) -> None:
        grid, device = features.grid, features.device
        prior = torch.from_numpy(priors.per_distance(grid)).float().to(device)
        self._start, self._goal = (~torch.eye(grid.count, dtype=torch.bool, device=device)).nonzero(as_tuple=True)
        self.weight = prior[self._start, self._goal]  # sums to one
        self.features, self.policies = features, policies

    def success(self, policy: Policy, budget: int) -> torch.Tensor:
        """The success of every policy, (K,)."""
        pairs = len(self.weight)
        total = self.weight.new_zeros(self.policies)
        at_once = max(1, AT_ONCE // (pairs * self.policies))
        for areas in torch.split(torch.arange(self.features.areas, device=self.weight.device), at_once):
            columns = areas.repeat_interleave(pairs), self._start.repeat(len(areas)), self._goal.repeat(len(areas))
            episodes = Episodes(*(column.expand(self.policies, -1) for column in columns))
            found = fly(policy, self.features, episodes, budget, sample=False).found
            total += (found.view(self.policies, -1, pairs) * self.weight).sum(dim=(1, 2))
        return total / self.features.areas


# ---------- REINFORCE for the temporal and decision units of AiRLoc.
# ~
# ~ Batches of 64 episodes are flown with sampled moves; each move's return, discounted by 0.9, is normalised to zero mean
# ~ and unit variance among the moves of the batch with the same distance left to the goal; Adam 1e-4 raises the
# ~ log-probability of moves with a high return. The frozen units' outputs are tabulated before (`features`), so that an
# ~ update touches the LSTM alone. The best weights by validation success are kept; training stops when the budget of
# ~ episodes is spent, or when validation has not improved for `patience` validations. Evaluation takes the most probable
# ~ move. Deviations from the paper:
# ~
# ~ 1. Areas are cut at any offset of the training pictures, each in its four flips.
# ~ 2. Several policies (seeds) are trained at once, stacked, each on its own episodes.
# ~ 3. The loss is the mean over the moves made, not over batch x budget.
# ~ 4. With `fall`, off by default, Adam's rate falls along a line.
# ~
# ~ Where the validation areas are large enough, success on 7 x 7 is logged too.

LEAST_RATE = 0.02
"""What is left of a learning rate that falls, at the end."""


@dataclass(frozen=True)
class PolicyConfig:
    """Settings of the policy's training."""

    data: Data = field(default_factory=Data)
    """What is trained on."""
    variant: Variant = field(default_factory=Variant)
    """Which parts of AiRLoc are kept."""
    grid: str = "5x5"
    """The grid that is trained on; square."""
    areas: int = 3000
    """Areas cut from the training pictures."""
    episodes: int = 3_200_000
    """Episodes a policy is trained on, at most."""
    batch: int = 64
    """Episodes in an update."""
    budget: int = 10
    """Moves in an episode."""
    learning_rate: float = 1e-4
    """Adam's learning rate."""
    anneal: bool = False
    """Let the learning rate fall along a line to a fiftieth."""
    gamma: float = 0.9
    """Discount of later rewards."""
    validate_every: int = 1000
    """Updates between validations, each of which saves the state."""
    patience: int = 15
    """Validations without a better mean before training stops."""
    larger_grid: str = "7x7"
    """Also validated on, with twice its side as the budget, where validation areas are large enough."""
    select: Literal["own", "both"] = "own"
    """Keep the best weights by success on the own grid, or by its mean with that on the larger one."""
    table_bytes: int | None = None
    """Memory that a table of the frozen units' outputs may take on the device; a larger one is mapped from a file in
    the run's folder. By default half of a GPU's free memory, or of the machine's."""
    seeds: int = 1
    """Policies trained at once, from different weights."""
    seed: int = 0
    """Decides weights and draws."""

    def __post_init__(self) -> None:
        refuse_below_one("A policy", self, ("areas", "batch", "validate_every", "seeds"))
        if self.updates < 1:
            problem = f"{self.episodes} episodes do not fill one batch of {self.batch}"
            raise AirlocError(problem, "Ask for more --episodes, or for a smaller --batch")

    @property
    def updates(self) -> int:
        """Updates in all."""
        return self.episodes // self.batch


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """What policy training ends with."""

    policies: dict[str, torch.Tensor]
    """The best weights of every policy, each tensor (K, ...)."""
    success: tuple[float, ...]
    """Validation success of every policy's best weights."""

    @property
    def median(self) -> int:
        """The policy with the median validation success, as the paper reports."""
        return sorted(range(len(self.success)), key=lambda k: (self.success[k], k))[len(self.success) // 2]


def training_features(encoder: PatchEncoder, config: PolicyConfig, device: torch.device, folder: Path) -> Features:
    """Cut areas from the training pictures and tabulate what the eyes say of them, in all four flips."""
    grid = Grid.parse(config.grid)
    atlas = load_atlas(config.data, grid.size[0], device)
    images, limit = cut_areas(atlas, config.areas, grid, config.seed), config.table_bytes
    return tabulate(encoder, images, grid, config.budget, device=device, folder=folder, limit=limit)


def validation_features(encoder: PatchEncoder, config: PolicyConfig, device: torch.device, folder: Path) -> Features:
    """Tabulate what the eyes say of the validation areas."""
    grid, limit = Grid.parse(config.grid), config.table_bytes
    images = np.stack([area.image for area in validation_areas(config.data, grid)])
    return tabulate(encoder, images, grid, config.budget, device=device, folder=folder, limit=limit)


def larger_features(encoder: PatchEncoder, config: PolicyConfig, device: torch.device, folder: Path) -> Features | None:
    """Tabulate what the eyes say of validation areas that hold the larger grid; nothing where there are none."""
    grid, limit = Grid.parse(config.larger_grid), config.table_bytes
    areas = large_validation_areas(config.data, grid)
    if not areas:
        return None
    images = np.stack([area.image for area in areas])
    trained, budget = Grid.parse(config.grid), larger_budget(grid)
    return tabulate(encoder, images, grid, budget, device=device, trained=trained, folder=folder, limit=limit)


def larger_budget(grid: Grid) -> int:
    """Moves in an episode on the larger grid, as evaluation allows."""
    return 2 * max(grid.shape)


def cut_areas(atlas: Atlas, count: int, grid: Grid, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Cut areas at random places of the training pictures, each in its four flips: (4 count, height, width, 3)."""
    torch.manual_seed(seed)
    side, parts = grid.size[0], [256] * (count // 256) + [count % 256]
    cuts = [atlas.cut(*atlas.draw(part, side), side)[..., :3].cpu().numpy() for part in parts if part]
    images = np.concatenate(cuts)
    return np.stack([flip_image(image, o) for image in images for o in range(ORIENTATIONS)])


def ended(folder: Path, config: PolicyConfig) -> Trained | None:
    """What a run that has come to its end ended with; nothing while there is something left to train."""
    with Run.open(folder, config) as run:
        if run.state and (run.step + 1 >= config.updates or run.state["waited"] >= config.patience):
            return Trained(run.state["best"], tuple(run.state["success"].tolist()))
    return None


def update(policy: Policy, learner: Learner, features: Features, config: PolicyConfig) -> torch.Tensor:
    """Make one update; gives the loss and the success that it had, (2,)."""
    # Roll out.
    episodes = draw_episodes(features, config.seeds, config.batch)
    tape = Tape()
    flight = fly(policy, features, episodes, config.budget, sample=True, tape=tape)
    # Returns, normalised by the distance left to the goal.
    returns = discounted(flight.reward, config.gamma)  # (K, B, T)
    made = flight.flying.float().flatten(1)
    groups = features.grid.max_distance + config.budget + 1
    advantage = normalise_by_group(returns.flatten(1), flight.distance.flatten(1), made, groups)
    # Loss: policies do not share weights, so their losses may be added.
    share = made * advantage / made.sum(dim=1, keepdim=True)
    loss = -(tape.log_prob(policy, flight.action).flatten(1) * share).sum()
    # Step.
    learner.descend(loss)
    return torch.stack([loss.detach(), flight.found.float().mean()])


def train_policy(
    folder: Path,
    config: PolicyConfig,
    features: Features,
    checked: Features,
    larger: Features | None = None,
    *,
    on_step: Callable[[int, dict[str, float]], None],
) -> Trained:
    """Train policies on tabulated features in a run folder, checked on others and, where given, on a larger grid."""
    device = features.device
    torch.manual_seed(config.seed)
    policy = Policy(config.variant, config.seeds).to(device)
    validate = _validator(policy, config, checked, larger)
    learner = Learner(policy, config.learning_rate)

    with Run.open(folder, config) as run:
        learn = partial(update, policy, learner, features, config)
        fast_update = learner.capture(learn) if features.fits else learn
        best = {name: tensor.detach().clone() for name, tensor in policy.named_parameters()}
        success = torch.full((config.seeds,), -1.0, device=device)
        highest, waited = -1.0, 0
        if run.state:
            learner.put(run.state["learner"])
            best = {name: tensor.to(device) for name, tensor in run.state["best"].items()}
            success = run.state["success"].to(device)
            highest, waited = run.state["highest"], run.state["waited"]
            restore_rng(run.state["rng"])
        seen = torch.zeros(2, device=device)
        for step in range(run.step + 1, config.updates):
            if waited >= config.patience:
                break
            if config.anneal:
                learner.set_learning_rate(config.learning_rate * max(1 - step / config.updates, LEAST_RATE))
            seen += fast_update()
            if (step + 1) % config.validate_every and step + 1 < config.updates:
                continue
            # Validate, keep the best, log and save.
            loss, found = (seen / (step - run.step)).tolist()
            seen.zero_()
            check_finite(loss, step, run)
            now, figures = validate()
            better = now > success
            success = torch.where(better, now, success)
            for name, tensor in policy.named_parameters():
                best[name][better] = tensor.detach()[better]
            mean = float(now.mean())
            waited = 0 if mean > highest else waited + 1
            highest = max(highest, mean)
            figures = {"loss": loss, "success": found, **figures, "val_best": float(success.mean())}
            run.log(step, **figures)
            state = {"learner": learner.take(), "best": best, "success": success, "rng": rng_state(device)}
            run.save_state(step, {**state, "highest": highest, "waited": waited})
            on_step((step + 1) * config.batch, figures)
    return Trained(best, tuple(success.tolist()))


def _validator(
    policy: Policy, config: PolicyConfig, checked: Features, larger: Features | None
) -> Callable[[], tuple[torch.Tensor, dict[str, float]]]:
    """A function that gives the success of every policy by which weights are chosen, (K,), and figures to log."""
    if larger is None and config.select == "both":
        problem = f"No validation area is known to be large enough for {config.larger_grid}"
        raise AirlocError(problem, "Give ground sizes (side_m) in windows.csv, or leave --select out")
    own = Validation(checked, config.seeds)
    beyond = None if larger is None else Validation(larger, config.seeds)

    def validate() -> tuple[torch.Tensor, dict[str, float]]:
        success = own.success(policy, config.budget)
        figures = {"val_success": float(success.mean())}
        if beyond is not None:
            grid = beyond.features.grid
            there = beyond.success(policy, larger_budget(grid))
            figures[f"val_success_{grid}"] = float(there.mean())
            success = (success + there) / 2 if config.select == "both" else success
        return success, figures

    return validate
