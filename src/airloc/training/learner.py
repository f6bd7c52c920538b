"""A network with its optimizer, whose whole state can be taken and put back in place.

On a GPU an update of a small network is hundreds of tiny kernels, and launching them costs more than running them. The
update is therefore captured once as a CUDA graph and replayed. A graph knows tensors by their address, so state is
always copied into the same tensors, never replaced.
"""

from collections.abc import Callable, Iterator

import torch
from torch import nn

Update = Callable[[], torch.Tensor]
"""One update; gives figures to log, (n,), on the device."""

WARM_UP = 3


def make_fast(device: torch.device) -> None:
    """Let a GPU multiply in TF32 and choose its convolutions by trying them."""
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.benchmark = True


class Learner:
    """A network and Adam, with decoupled weight decay where asked for.

    Args:
        network: What is trained.
        rate: The learning rate; may be changed between updates with `set_learning_rate`.
        decay: Decoupled weight decay.
    """

    def __init__(self, network: nn.Module, learning_rate: float, decay: float = 0.0) -> None:
        self.network = network
        device = next(network.parameters()).device
        self._cuda = device.type == "cuda"
        parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
        # A rate in a tensor can be changed after the update has been captured.
        self._rate = torch.tensor(learning_rate, device=device) if self._cuda else learning_rate
        self.optimizer = torch.optim.AdamW(
            parameters, lr=self._rate, weight_decay=decay, capturable=self._cuda, fused=True
        )
        self._make_state(parameters)
        self._captured: list[Update] = []
        """Updates that were captured: graphs read tensors where they lie, so those must stay."""

    def set_learning_rate(self, learning_rate: float) -> None:
        """Change the learning rate."""
        if isinstance(self._rate, torch.Tensor):
            self._rate.fill_(learning_rate)
        else:
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate

    def descend(self, loss: torch.Tensor) -> None:
        """Make one step down the loss."""
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def take(self) -> dict[str, torch.Tensor]:
        """A copy of the whole state: network and optimizer."""
        return {name: tensor.detach().clone() for name, tensor in self._tensors()}

    def put(self, state: dict[str, torch.Tensor]) -> None:
        """Copy a state that was taken back into place."""
        with torch.no_grad():
            for name, tensor in self._tensors():
                tensor.copy_(state[name])

    def capture(self, update: Update) -> Update:
        """Give a function that makes the same update faster, where the device can; the state stays as it is."""
        if not self._cuda:
            return update
        before = self.take()
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                update()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            figures = update()
        self.put(before)
        self._captured.append(update)

        def replay() -> torch.Tensor:
            graph.replay()
            return figures

        return replay

    def _tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        for name, tensor in self.network.state_dict(keep_vars=True).items():
            yield f"network.{name}", tensor
        for number, parameter in enumerate(self.optimizer.param_groups[0]["params"]):
            for name, tensor in self.optimizer.state[parameter].items():
                yield f"optimizer.{number}.{name}", tensor

    def _make_state(self, parameters: list[nn.Parameter]) -> None:
        """Let the optimizer make its moments by a step that moves nothing, and count from zero again."""
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        for state in self.optimizer.state.values():
            for tensor in state.values():
                tensor.zero_()
        self.optimizer.zero_grad(set_to_none=True)
