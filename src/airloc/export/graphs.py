"""Networks as ONNX graphs, checked by onnxruntime's own reader, and their int8 versions."""

import logging
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from torch import nn

from airloc.drawing.files import write_atomically

Feed = Mapping[str, npt.NDArray[Any]]
"""What a graph is fed with, by the names of its inputs."""

OPSET = 20
QUANTISED = ("Conv", "Gemm", "MatMul")
"""Operators that are computed with bytes in an int8 graph."""


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A network that becomes one graph."""

    network: nn.Module
    example: Mapping[str, torch.Tensor]
    """Inputs by name, of the shapes and types that it takes."""
    outputs: tuple[str, ...]
    """Names of what it gives."""


def write_graph(graph: Graph, path: Path) -> None:
    """Write a network as an ONNX graph with its weights inside."""
    with torch.inference_mode():
        graph.network(*graph.example.values())  # tables that it keeps must be made now, not of the exporter's dummies
    with tempfile.TemporaryDirectory() as folder, _quiet():
        whole = Path(folder) / "graph.onnx"
        torch.onnx.export(
            graph.network,
            tuple(graph.example.values()),
            whole,
            input_names=list(graph.example),
            output_names=list(graph.outputs),
            opset_version=OPSET,
            external_data=False,
            verbose=False,
        )
        write_atomically(path, whole.read_bytes())


def write_int8(source: Path, path: Path, feeds: Iterable[Feed]) -> None:
    """Write the int8 version of a graph: weights and activations as bytes, by the ranges seen in some feeds."""
    with tempfile.TemporaryDirectory() as folder, _quiet():
        whole = Path(folder) / "graph.onnx"
        quantize_static(
            source,
            whole,
            _Feeds(feeds),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=list(QUANTISED),
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        write_atomically(path, whole.read_bytes())


class _Feeds(CalibrationDataReader):  # type: ignore[misc]
    """Feeds one by one, as the quantiser asks for them."""

    def __init__(self, feeds: Iterable[Feed]) -> None:
        self._feeds: Iterator[Feed] = iter(feeds)

    def get_next(self) -> dict[str, npt.NDArray[Any]] | None:
        feed = next(self._feeds, None)
        return None if feed is None else {name: np.ascontiguousarray(value) for name, value in feed.items()}


class _quiet:  # noqa: N801 - a verb, as context managers are
    """Keeps what the exporters say about themselves from people's terminals."""

    def __enter__(self) -> None:
        self._before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *error: object) -> None:
        self._warnings.__exit__(*error)  # type: ignore[arg-type]
        logging.disable(self._before)
