"""A network with its optimizer and learning rate, whose state can be saved and restored in place.

On a GPU an update of a small network consists of hundreds of tiny kernels, and launching them costs more than running
them. `Learner.capture` therefore records an update once as a CUDA graph and replays it. A graph refers to tensors by
address, so that states are copied into the existing tensors and never replace them. `Prefetcher` draws the batches of
the next update on streams of their own, so that the GPU can run both at once.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

from airloc.agents.inference import supports_bfloat16

Update = Callable[[], torch.Tensor]
"""One update of the network; returns metrics to log, (n,), on the device."""

Batch = TypeVar("Batch", bound=tuple[torch.Tensor, ...])
"""A named tuple of tensors."""

_WARM_UP = 3


def enable_fast_math(device: torch.device) -> None:
    """Allow TF32 matrix products on a GPU, and let cuDNN choose the fastest convolutions."""
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.benchmark = True


def mixed_precision(device: torch.device) -> torch.autocast:
    """Return the context in which products and convolutions compute in bfloat16, where the device is faster with it."""
    enabled = device.type == "cuda" or supports_bfloat16(device)
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled, cache_enabled=False)


class Learner:
    """A network and its optimizer, Adam with decoupled weight decay (AdamW)."""

    def __init__(
        self, network: nn.Module, learning_rate: float, weight_decay: float = 0.0, max_gradient_norm: float = 0.0
    ) -> None:
        self.network = network
        self._max_gradient_norm = max_gradient_norm
        """Largest norm of the gradient; zero does not limit it."""
        device = next(network.parameters()).device
        self._cuda = device.type == "cuda"
        parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
        # A learning rate in a tensor can change after the update has been captured.
        self._learning_rate = torch.tensor(learning_rate, device=device) if self._cuda else learning_rate
        self.optimizer = torch.optim.AdamW(
            parameters, lr=self._learning_rate, weight_decay=weight_decay, capturable=self._cuda, fused=True
        )
        self._create_optimizer_state(parameters)
        self._captured: list[Update] = []
        """Captured updates: their graphs refer to tensors by address, so that these must stay alive."""

    def set_learning_rate(self, learning_rate: float) -> None:
        """Change the learning rate."""
        if isinstance(self._learning_rate, torch.Tensor):
            self._learning_rate.fill_(learning_rate)
        else:
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate

    def step(self, loss: torch.Tensor) -> None:
        """Compute the gradient of the loss and make one step of the optimizer."""
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if self._max_gradient_norm:
            clip_grad_norm_(self.network.parameters(), self._max_gradient_norm)
        self.optimizer.step()

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return a copy of the state of the network and the optimizer."""
        return {name: tensor.detach().clone() for name, tensor in self._tensors()}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Copy a state into the network and the optimizer, in place."""
        with torch.no_grad():
            for name, tensor in self._tensors():
                tensor.copy_(state[name])

    def capture(self, update: Update) -> Update:
        """Capture an update as a CUDA graph and return the function that replays it; on a CPU return the update.

        The state stays as it is.
        """
        if not self._cuda:
            return update
        before = self.state_dict()
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                update()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            metrics = update()
        self.load_state_dict(before)
        self._captured.append(update)

        def replay() -> torch.Tensor:
            graph.replay()
            return metrics

        return replay

    def _tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        for name, tensor in self.network.state_dict(keep_vars=True).items():
            yield f"network.{name}", tensor
        for number, parameter in enumerate(self.optimizer.param_groups[0]["params"]):
            for name, tensor in self.optimizer.state[parameter].items():
                yield f"optimizer.{number}.{name}", tensor

    def _create_optimizer_state(self, parameters: list[nn.Parameter]) -> None:
        """Create the moments with a step of zero gradients, and reset the step counter."""
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        for state in self.optimizer.state.values():
            for tensor in state.values():
                tensor.zero_()
        self.optimizer.zero_grad(set_to_none=True)


class Prefetcher(Generic[Batch]):
    """Draws the batches of every update; on a GPU, those of the next update while the present one runs.

    An update on a GPU can be captured with its draws.

    Args:
        draws: Functions that draw one batch each. All batches of a function have the same shapes.
        device: Device of the batches.
    """

    def __init__(self, draws: Sequence[Callable[[], Batch]], device: torch.device) -> None:
        self._draws = draws
        cuda = device.type == "cuda"
        self._streams = [torch.cuda.Stream() for _ in draws] if cuda else []  # type: ignore[no-untyped-call]
        self._next = [_own_memory(draw()) for draw in draws] if cuda else []

    @contextmanager
    def batches(self) -> Iterator[list[Batch]]:
        """Give the batches of one update, one of each function. The update runs inside this context."""
        if not self._streams:
            yield [draw() for draw in self._draws]
            return
        main = torch.cuda.current_stream()
        drawn = []
        for stream, draw in zip(self._streams, self._draws, strict=True):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                drawn.append(draw())
        yield self._next
        for stream in self._streams:
            main.wait_stream(stream)
        self.load_state(drawn)

    def state(self) -> list[tuple[torch.Tensor, ...]]:
        """Return a copy of the batches that have been drawn for the next update; none on a CPU."""
        return [tuple(tensor.clone() for tensor in batch) for batch in self._next]

    def load_state(self, batches: Sequence[tuple[torch.Tensor, ...]]) -> None:
        """Copy the batches of the next update in place. A CPU has none: from or to a CPU, nothing is copied."""
        for old, new in zip(self._next, batches, strict=False):
            for tensor, value in zip(old, new, strict=True):
                tensor.copy_(value)


def _own_memory(batch: Batch) -> Batch:
    """Return a copy without expanded dimensions, so that other batches can be copied into it."""
    make: Callable[..., Batch] = getattr(type(batch), "_make", type(batch))
    return make(tensor.clone(memory_format=torch.contiguous_format) for tensor in batch)
