"""The network of the locator gives the same in NumPy and in PyTorch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.vision.feature_map import FeatureMap
from airloc.vision.locator_network import LocatorNetwork


@pytest.fixture(scope="module")
def network() -> LocatorNetwork:
    torch.manual_seed(0)
    network = LocatorNetwork(6, 5, (7, 3)).eval().requires_grad_(False)
    for block in network.blocks:
        torch.nn.init.normal_(block.weight, 0, 0.1)
    return network


@pytest.fixture(scope="module")
def features(network: LocatorNetwork) -> FeatureMap:
    return FeatureMap({name: value.numpy() for name, value in network.state_dict().items()})


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(2, 6), st.integers(2, 6))
def test_features_are_those_of_pytorch(network, features, seed: int, count: int, height: int, width: int):
    rng = np.random.default_rng(seed)
    images = rng.random((count, 4 * height, 4 * width, 3), dtype=np.float32)
    seen = rng.random(images.shape[:3]) < 0.7
    wanted, valid = network.encode(
        torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(seen)[:, None].float()
    )
    maps, shown = features.encode(images, seen)
    assert np.array_equal(shown, valid.numpy())
    assert maps == pytest.approx(wanted.numpy(), abs=1e-4)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_the_verifier_answers_as_in_pytorch(network, features, seed: int, share: float):
    rng = np.random.default_rng(seed)
    seen = [(rng.random((1, 18, 18)) < share).astype(np.float32) for _ in range(2)]
    maps = [rng.standard_normal((5, 18, 18)).astype(np.float32) * mask for mask in seen]
    parts = maps[0], seen[0], maps[1], seen[1]
    wanted = network.verify(*(torch.from_numpy(part)[None] for part in parts))
    assert features.verify(*parts) == pytest.approx(float(wanted), abs=1e-3)


def test_pixels_that_are_not_seen_do_not_change_the_features(features: FeatureMap):
    rng = np.random.default_rng(0)
    image = rng.random((1, 24, 24, 3), dtype=np.float32)
    seen = np.ones((1, 24, 24), dtype=np.bool_)
    seen[:, 9:] = False
    other = np.where(seen[..., None], image, rng.random(image.shape, dtype=np.float32))
    assert np.array_equal(features.encode(image, seen)[0], features.encode(other, seen)[0])
    assert not features.encode(image, seen)[0][:, :, 3:].any(), "nothing is seen there"


def test_light_and_contrast_do_not_change_the_features(features: FeatureMap):
    image = np.random.default_rng(1).random((1, 16, 16, 3), dtype=np.float32)
    seen = np.ones((1, 16, 16), dtype=np.bool_)
    assert features.encode(0.5 * image + 0.2, seen)[0] == pytest.approx(features.encode(image, seen)[0], abs=1e-3)
