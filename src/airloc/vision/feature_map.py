"""The network of the locator in NumPy: features of images, and the verifier of aligned pairs.

`airloc.vision.locator_network` describes the layers and is what `airloc train locator` trains. This file needs NumPy
alone: `airloc export` copies it with the weights, so that a vehicle without PyTorch locates goals in the same way.

Legend: N images, H, W height and width of an image, h, w = H / 4, W / 4, D features, T = 18 side of a goal's feature
map. Images and maps have their channels last.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

STRIDE = 4
"""Pixels of an image along the side of one feature."""
MIN_DEVIATION = 0.03
"""Standard deviation of an image, in units of the full range, below which it counts as flat."""


class FeatureMap:
    """Computes features and compares them.

    Args:
        weights: Tensors of a `LocatorNetwork` by name, as PyTorch stores them.
    """

    def __init__(self, weights: Mapping[str, npt.NDArray[np.floating]]) -> None:
        self.weights = {name: np.asarray(value, dtype=np.float32) for name, value in weights.items()}
        self._taps = {
            name.removesuffix(".weight"): np.ascontiguousarray(value.transpose(2, 3, 1, 0))
            for name, value in self.weights.items()
            if value.ndim == 4
        }
        self._verifier = sorted(name for name in self._taps if name.startswith("verifier."))

    @property
    def channels(self) -> int:
        """Number of features."""
        return int(self.weights["features.bias"].shape[0])

    def encode(self, images: Floats, seen: Mask) -> tuple[Floats, Floats]:
        """Encode images (N, H, W, 3) in [0, 1] where they are `seen` (N, H, W).

        Returns:
            Features (N, D, h, w), zero where less than half of a pixel is seen, and what is seen, (N, 1, h, w).
        """
        known = seen[..., None].astype(np.float32)
        total = np.maximum(known.sum(axis=(1, 2), keepdims=True), 1)
        centred = (images - (images * known).sum(axis=(1, 2), keepdims=True) / total) * known
        variance = (centred * centred).sum(axis=(1, 2, 3), keepdims=True) / (3 * total)
        normalised = np.concatenate([centred / np.maximum(np.sqrt(variance), MIN_DEVIATION), known], axis=3)
        x = _relu(self._convolve("stem", _unshuffle(normalised)))
        x = _relu(self._convolve("widen", _unshuffle(x)))
        for first in range(0, 4, 2):
            inner = _relu(self._convolve(f"blocks.{first}", x))
            x = _relu(x + self._convolve(f"blocks.{first + 1}", inner))
        count, height, width = seen.shape
        blocks = seen.reshape(count, height // STRIDE, STRIDE, width // STRIDE, STRIDE)
        valid = (blocks.mean(axis=(2, 4)) > 0.5).astype(np.float32)[..., None]
        features = self._convolve("features", x) * valid
        return np.moveaxis(features, 3, 1).astype(np.float32), np.moveaxis(valid, 3, 1)

    def verify(self, goal: Floats, goal_seen: Floats, photo: Floats, photo_seen: Floats) -> float:
        """Return the log-odds that aligned features (D, T, T) show the same place; `seen` are (1, T, T)."""
        both = goal_seen * photo_seen
        count = max(float(both.sum()), 1.0)
        goal, photo = (_scaled(features * both, count) for features in (goal, photo))
        product = goal * photo
        x = np.moveaxis(np.concatenate([product, np.abs(goal - photo), both]), 0, 2)[None]
        shown = np.moveaxis(both, 0, 2)[None]
        for name in self._verifier:
            x = _relu(self._convolve(name, x)) * shown
        score = float(product.sum()) / product.shape[0] / count
        share = count / max(float(goal_seen.sum()), 1.0)
        pooled = np.concatenate([x.sum(axis=(0, 1, 2)) / count, x.max(axis=(0, 1, 2)), [score, share]])
        dense = _relu(self.weights["dense.weight"] @ pooled + self.weights["dense.bias"])
        return float((self.weights["answer.weight"] @ dense + self.weights["answer.bias"])[0])

    def _convolve(self, name: str, maps: Floats) -> Floats:
        """Convolve maps (N, h, w, C) with the layer of a name, padded with zeros to the same size."""
        taps = self._taps[name]
        side, channels = taps.shape[0], taps.shape[3]
        count, height, width = maps.shape[:3]
        margin = side // 2
        padded = np.pad(maps, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
        total = np.empty((count * height * width, channels), dtype=np.float32)
        total[:] = self.weights[f"{name}.bias"]
        for row in range(side):
            for col in range(side):
                part = padded[:, row : row + height, col : col + width].reshape(count * height * width, -1)
                total += part @ taps[row, col]
        return total.reshape(count, height, width, channels)


def _unshuffle(maps: Floats) -> Floats:
    """Move 2 x 2 pixels of maps (N, H, W, C) into channels, (N, H / 2, W / 2, 4 C)."""
    count, height, width, channels = maps.shape
    parts = maps.reshape(count, height // 2, 2, width // 2, 2, channels).transpose(0, 1, 3, 5, 2, 4)
    return np.ascontiguousarray(parts).reshape(count, height // 2, width // 2, 4 * channels)


def _relu(maps: Floats) -> Floats:
    return np.maximum(maps, 0)


def _scaled(features: Floats, count: float) -> Floats:
    """Scale features (D, T, T) to a root mean square of one over `count` pixels."""
    square = float((features * features).sum()) / (count * len(features))
    scaled: Floats = features / np.sqrt(max(square, 1e-6)).astype(np.float32)
    return scaled
