import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.task.photos import blur
from airloc.vision.offsets import (
    NUM_NEAR,
    NUM_OFFSETS,
    NUM_ROTATIONS,
    RADIUS,
    SECTOR,
    offset_index,
    rotate_offset,
)
from airloc.vision.relation import Encoding, RelationNetwork, _Join, upgrade_weights
from untrained import earlier_weights, untrained_relation


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
    straight = network(*pair)
    turned = network(*(patch.rot90(turns, (2, 3)) for patch in pair))
    reach = range(-12, 13)  # into the last ring
    offsets = [(row, col) for row in reach for col in reach]
    before = [offset_index(row, col) for row, col in offsets]
    after = [offset_index(*rotate_offset(row, col, turns)) for row, col in offsets]
    torch.testing.assert_close(turned[:, after], straight[:, before], rtol=1e-4, atol=1e-5)
    side = 2 * RADIUS + 1
    near = [logits[:, :NUM_NEAR].view(-1, side, side) for logits in (turned, straight)]
    torch.testing.assert_close(near[0], near[1].rot90(turns, (1, 2)), rtol=1e-4, atol=1e-5)


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


@pytest.fixture(scope="module")
def upgraded() -> RelationNetwork:
    network = untrained_relation(seed=3)
    with torch.no_grad():
        network.judge[-1].weight[20:] = torch.nan  # these rows are not stored
    other = RelationNetwork(network.width)
    other.load_state_dict(upgrade_weights(earlier_weights(network)))
    return other.eval()


@torch.inference_mode()
def test_earlier_weights_give_the_same_near_logits(upgraded: RelationNetwork, pair):
    stored = earlier_weights(untrained_relation(seed=3))
    sequences: list[torch.Tensor] = []
    hidden: list[torch.Tensor] = []
    hooks = [
        upgraded.along.first[0].register_forward_hook(lambda _, given, out: sequences.extend([given[0], out])),
        upgraded.judge[2].register_forward_hook(lambda _, given, out: hidden.append(given[0])),
    ]
    logits = upgraded(*pair)
    for hook in hooks:
        hook.remove()
    before, after = (part.squeeze(2) for part in sequences)
    by_hand = torch.nn.functional.conv1d(before, stored["along.first.0.weight"], padding=1)
    torch.testing.assert_close(after, by_hand, rtol=1e-4, atol=1e-4)
    sectors = hidden[0] @ stored["judge.2.weight"].T + stored["judge.2.bias"]  # (B, K, 20)
    sector = [(row, col) for col in range(1, RADIUS + 1) for row in range(1 - col, col + 1)]
    for turn in range(NUM_ROTATIONS):
        for place, offset in enumerate(sector):
            seen = logits[:, offset_index(*rotate_offset(*offset, -turn))]
            torch.testing.assert_close(seen, sectors[:, turn, place], rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_with_earlier_weights_rings_equal_the_farthest_near_offsets(upgraded: RelationNetwork, pair):
    """Before there were rings, an offset beyond the radius counted as the one at the radius in its direction."""
    logits = upgraded(*pair)
    for row in range(-12, 13):
        for col in range(-12, 13):
            scale = min(1.0, RADIUS / max(abs(row), abs(col), 1))
            earlier = offset_index(round(row * scale), round(col * scale))
            assert earlier < NUM_NEAR
            assert torch.equal(logits[:, offset_index(row, col)], logits[:, earlier])


def test_upgraded_weights_do_not_change_again():
    weights = untrained_relation(blocks=1).state_dict()
    again = upgrade_weights(weights)
    assert again.keys() == weights.keys()
    assert all(torch.equal(tensor, again[name]) for name, tensor in weights.items())
    assert len(weights["judge.2.weight"]) == len(SECTOR)


@torch.inference_mode()
def test_new_blocks_change_nothing_at_first_and_something_once_trained(network: RelationNetwork, pair):
    deeper = RelationNetwork(network.width, blocks=2)
    missing = deeper.load_state_dict(network.state_dict(), strict=False).missing_keys
    assert {name.split(".")[0] for name in missing} == {"side_blocks", "map_blocks"}
    torch.testing.assert_close(deeper.eval()(*pair), network(*pair), rtol=1e-5, atol=1e-5)
    assert not torch.allclose(untrained_relation(blocks=2)(*pair), network(*pair), atol=1e-2)


@torch.inference_mode()
def test_a_blurred_network_compares_blurred_patches(pair):
    network = untrained_relation()
    expected = network(*map(blur, pair))
    network.blurred = True
    torch.testing.assert_close(network(*pair), expected)


@torch.inference_mode()
def test_a_network_of_coarse_chroma_is_blind_to_fine_chroma_alone(pair):
    network, coarse = untrained_relation(), untrained_relation()
    coarse.chroma_scale = 4
    fine = torch.zeros_like(pair[0])
    fine[:, 0, ::2], fine[:, 0, 1::2] = 0.3, -0.3  # red lines of one pixel ...
    fine[:, 2] = -0.299 / 0.114 * fine[:, 0]  # ... that blue makes up for, so that the luma stays
    torch.testing.assert_close(coarse(pair[0] + fine, pair[1]), coarse(*pair))
    assert not torch.allclose(network(pair[0] + fine, pair[1]), network(*pair), atol=1e-2)
    assert not torch.allclose(coarse(*pair), network(*pair), atol=1e-2)
