"""The loop around the updates of a training: learning rate, means of metrics, validations, saves, and the best weights.

    loop = UpdateLoop(run, config, learner, learner.capture(update), metrics=2)
    for step, (loss, accuracy), validates in loop:
        metrics = {"loss": loss, "accuracy": accuracy}
        if validates:
            metrics |= validate(network)
            run.log(step, **metrics)
        run.save_state(step, loop.state())

The loop resumes where the run was saved, with the same random numbers.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Protocol

import torch
from torch import nn

from airloc.training.learner import Learner, Update
from airloc.training.runs import Run, check_finite, restore_rng, rng_state

OnStep = Callable[[int, dict[str, float]], None]
"""Called after every validation with the progress, in updates or episodes, and the metrics."""
OnStage = Callable[[str, int, dict[str, float]], None]
"""Called with the name of the stage, its progress and its metrics."""

Schedule = Literal["cosine", "constant"]
"""Learning rate over a training: a short warm-up and a cosine to zero, or always the same."""
Keep = Literal["best", "last"]
"""Weights that a training ends with: the best by validation, at which it stops once it has converged, or the last."""
PATIENCE = 10
"""Validations without better weights after which a training has converged."""


def cosine_schedule(step: int, steps: int) -> float:
    """Return the factor of the learning rate: a short linear warm-up, then a cosine to zero."""
    warm_up = max(1, min(500, steps // 10))
    return min(1.0, (step + 1) / warm_up) * 0.5 * (1 + math.cos(math.pi * step / steps))


def constant_schedule(step: int, steps: int) -> float:
    """Return the factor of a constant learning rate, which is one."""
    del step, steps
    return 1.0


SCHEDULES: dict[Schedule, Callable[[int, int], float]] = {"cosine": cosine_schedule, "constant": constant_schedule}
"""Factor of the learning rate by step and number of steps."""


class BestWeights:
    """The weights of a network at its best validation so far; their state is saved with the run."""

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._weights: dict[str, torch.Tensor] = {}
        self._highest, self._waited = -math.inf, 0

    def offer(self, value: float) -> None:
        """Keep the weights of the network if this validation is the best one."""
        if value > self._highest:
            self._weights = {name: tensor.detach().clone() for name, tensor in self._network.state_dict().items()}
            self._highest, self._waited = value, 0
        else:
            self._waited += 1

    @property
    def converged(self) -> bool:
        """Whether the last validations were no better."""
        return self._waited >= PATIENCE

    def restore(self) -> None:
        """Copy the best weights into the network, in place; without any validation it stays as it is."""
        current = self._network.state_dict()
        for name, tensor in self._weights.items():
            current[name].copy_(tensor)

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        return {"weights": self._weights, "highest": self._highest, "waited": self._waited}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self._weights, self._highest, self._waited = dict(state["weights"]), state["highest"], state["waited"]


class MeanWeights:
    """The mean of the weights of a network at several moments (stochastic weight averaging, arXiv 1803.05407).

    Its state is saved with the run.
    """

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._mean: dict[str, torch.Tensor] = {}
        self._count = 0

    def add(self) -> None:
        """Add the present weights of the network."""
        self._count += 1
        for name, tensor in self._network.state_dict().items():
            mean = self._mean.setdefault(name, torch.zeros_like(tensor, dtype=torch.float64))
            mean.lerp_(tensor.detach().double(), 1 / self._count)

    def restore(self) -> None:
        """Copy the mean into the network, in place; if nothing was added it stays as it is."""
        current = self._network.state_dict()
        for name, tensor in self._mean.items():
            current[name].copy_(tensor)

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        return {"mean": self._mean, "count": self._count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        device = next(self._network.parameters()).device
        self._mean = {name: tensor.to(device) for name, tensor in state["mean"].items()}
        self._count = state["count"]


class LoopConfig(Protocol):
    """The settings of a training that its loop reads."""

    @property
    def steps(self) -> int:
        """Number of updates."""
        ...

    @property
    def validate_every(self) -> int:
        """Updates between validations. A validation follows the last update too."""
        ...

    @property
    def learning_rate(self) -> float:
        """Highest learning rate."""
        ...


class UpdateLoop:
    """Makes updates from the step of a run on, and pauses at every validation and whenever a save is due.

    Args:
        run: The run. If it has a state, the random generators and the means are restored from it.
        config: Settings of the training.
        learner: The learner, whose state the caller has restored.
        update: One update.
        metrics: Number of metrics that an update returns.
        schedule: Factor of the learning rate by step and number of steps.
        stop: Returns True if the training ends before the next update.
    """

    def __init__(
        self,
        run: Run,
        config: LoopConfig,
        learner: Learner,
        update: Update,
        *,
        metrics: int,
        schedule: Callable[[int, int], float] = cosine_schedule,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._run, self._config, self._learner, self._update = run, config, learner, update
        self._schedule, self._stop = schedule, stop
        self._device = next(learner.network.parameters()).device
        self._total, self._count = torch.zeros(metrics, device=self._device), 0
        if run.state:
            restore_rng(run.state["rng"])
            self._total.copy_(run.state["running"]["total"])
            self._count = run.state["running"]["count"]

    def __iter__(self) -> Iterator[tuple[int, list[float], bool]]:
        """Yield the step, the means of the metrics since the last validation, and whether to validate.

        Raises:
            AirlocError: If a mean is not finite.
        """
        config, steps = self._config, self._config.steps
        for step in range(self._run.step + 1, steps):
            if self._stop():
                return
            self._learner.set_learning_rate(config.learning_rate * self._schedule(step, steps))
            self._total += self._update()
            self._count += 1
            validates = (step + 1) % config.validate_every == 0 or step + 1 == steps
            if not (validates or self._run.is_due()):
                continue
            means: list[float] = (self._total / self._count).tolist()
            for mean in means:
                check_finite(mean, step, self._run)
            if validates:
                self._total.zero_()
                self._count = 0
            yield step, means, validates

    def state(self) -> dict[str, Any]:
        """Return the state to save, to which a training adds its own."""
        return {
            "learner": self._learner.state_dict(),
            "rng": rng_state(self._device),
            "running": {"total": self._total.clone(), "count": self._count},
        }
