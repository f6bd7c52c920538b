import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.vision.offsets import NUM_OFFSETS, RADIUS
from airloc.vision.relation import Encoding, RelationNetwork, _Join
from untrained import untrained_relation


@pytest.fixture(scope="module")
def network() -> RelationNetwork:
    return untrained_relation()


@pytest.fixture(scope="module")
def pair() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    glimpse, goal = torch.randn(2, 6, 3, 48, 48, generator=generator)
    return glimpse, goal


@pytest.mark.parametrize("turns", [1, 2, 3])
@torch.inference_mode()
def test_a_rotated_pair_gives_rotated_logits(network: RelationNetwork, pair, turns: int):
    side = 2 * RADIUS + 1
    straight = network(*pair).view(-1, side, side)
    turned = network(*(patch.rot90(turns, (2, 3)) for patch in pair)).view(-1, side, side)
    torch.testing.assert_close(turned, straight.rot90(turns, (1, 2)), rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def test_logits_differ_between_pairs_and_between_glimpse_and_goal(network: RelationNetwork, pair):
    glimpse, goal = pair
    logits = network(glimpse, goal)
    assert logits.shape == (6, NUM_OFFSETS)
    assert logits.std(dim=0).min() > 0
    assert not torch.allclose(logits, network(goal, glimpse))


@torch.inference_mode()
def test_a_patch_is_encoded_alike_whatever_is_encoded_beside_it(network: RelationNetwork, pair):
    together = network.encode(pair[0])
    for n in range(2):
        alone = network.encode(pair[0][n : n + 1])
        for part, whole in zip(alone, together, strict=True):
            torch.testing.assert_close(part[0], whole[n], rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_pairs_from_encodings_equal_pairs_from_patches(network: RelationNetwork, pair):
    which = torch.tensor([3, 1, 1])
    encodings: Encoding = network.encode(pair[0])
    logits = network.relate(encodings.at(which), encodings.at(which.flip(0)))
    torch.testing.assert_close(logits, network(pair[0][which], pair[0][which.flip(0)]), rtol=1e-4, atol=1e-4)


@given(sizes=st.tuples(*[st.integers(1, 9)] * 4), patches=st.integers(1, 5), seed=st.integers(0, 2**16))
@settings(max_examples=40, deadline=None)
@torch.inference_mode()
def test_joins_of_prepared_patches_equal_joins_of_pairs(sizes: tuple[int, int, int, int], patches: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    join = _Join(*sizes)
    glimpse, goal = torch.randn(2, patches, 4, sizes[0], generator=generator)
    term1, factor1 = join.like(glimpse).split(sizes[1:3], dim=-1)
    term2, factor2 = join.like(goal).split(sizes[1:3], dim=-1)
    hidden = (join.glimpse(glimpse) + join.goal(goal)).relu()
    by_hand = torch.cat([(term1 - term2).abs(), factor1 * factor2, hidden], dim=-1)
    assert join.prepare(glimpse).shape[-1] == join.prepared
    torch.testing.assert_close(join(join.prepare(glimpse), join.prepare(goal)), by_hand, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_encode_patches_standardises_uint8(network: RelationNetwork):
    patches = torch.randint(0, 256, (2, 48, 48, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    by_hand = network.encode((patches.permute(0, 3, 1, 2) / 255 - 0.4) / 0.2)
    for seen, expected in zip(network.encode_patches(patches), by_hand, strict=True):
        torch.testing.assert_close(seen, expected, rtol=1e-4, atol=1e-4)


def test_the_network_has_at_most_two_million_parameters():
    assert sum(parameter.numel() for parameter in RelationNetwork().parameters()) <= 2_000_000


@torch.inference_mode()
def test_shapes_are_those_of_an_encoding(network: RelationNetwork, pair):
    assert tuple(part.shape[1:] for part in network.encode(pair[0])) == network.shapes


@torch.inference_mode()
def test_without_seams_or_textures_the_other_part_decides(pair):
    whole, seams, textures = untrained_relation(), untrained_relation(), untrained_relation()
    seams.textures = textures.seams = False
    logits = [network(*pair) for network in (whole, seams, textures)]
    assert not torch.allclose(logits[0], logits[1])
    assert not torch.allclose(logits[0], logits[2])
    # Without seams the sides and corners have no effect.
    encodings = textures.encode(pair[0]), textures.encode(pair[1])
    other = encodings[0]._replace(
        edge=encodings[0].edge * 2, side=encodings[0].side * 2, corner=encodings[0].corner * 2
    )
    torch.testing.assert_close(textures.relate(other, encodings[1]), logits[2])


def test_training_drops_a_branch_of_some_pairs():
    network = untrained_relation()
    network.train()
    torch.manual_seed(0)
    seams, textures = network._branch_weights(torch.ones(4000, 4, 3))
    assert 0.9 < float(seams.mean()) < 0.99
    assert 0.9 < float(textures.mean()) < 0.99
    assert (seams + textures > 0).all()
