import pytest
import torch
from torch import nn

from airloc.agents.policy import VARIANTS, Policy, Variant
from airloc.agents.pretrained import save_airloc
from airloc.vision.embedder import Layers, PatchEmbedder, PatchEncoder, Segmenter, standardise
from untrained import untrained_encoder


@pytest.mark.parametrize("channels", [3, 4])
def test_shapes_on_the_way(channels):
    torch.manual_seed(0)
    embedder = PatchEmbedder(channels).eval()
    current, goal = torch.randn(2, 5, channels, 48, 48)
    halves = []
    hooks = [
        layer.register_forward_hook(lambda module, inputs, output: halves.append(output.shape))
        for layer in (embedder.current_last, embedder.goal_last)
    ]
    with torch.no_grad():
        embedding, prior = embedder(current, goal)
    for hook in hooks:
        hook.remove()
    assert halves == [(5, 128), (5, 128)]
    assert (embedding.shape, prior.shape) == ((5, 256), (5, 8))


def test_related_halves_equal_the_whole():
    torch.manual_seed(0)
    embedder = untrained_encoder().embedder
    current, goal = torch.randn(2, 4, 4, 48, 48)
    with torch.no_grad():
        whole = embedder(current, goal)
        parts = embedder.relate(embedder.current_first(current), embedder.goal_first(goal))
    for a, b in zip(whole, parts, strict=True):
        assert torch.equal(a, b)


def test_a_pair_of_shared_halves_equals_the_pair_alone():
    torch.manual_seed(0)
    embedder = untrained_encoder().embedder
    patches = torch.randn(3, 4, 48, 48)
    with torch.no_grad():
        first, second = embedder.current_first(patches), embedder.goal_first(patches)
        pairs = embedder.relate(first.repeat_interleave(3, dim=0), second.repeat(3, 1, 1, 1))
        alone = embedder(patches[1:2], patches[2:3])
    for all_pairs, pair in zip(pairs, alone, strict=True):
        torch.testing.assert_close(all_pairs[5:6], pair, rtol=1e-4, atol=1e-4)


def test_the_branches_do_not_share_weights():
    embedder = untrained_encoder().embedder
    a, b = torch.randn(2, 1, 4, 48, 48, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert not torch.allclose(embedder(a, b)[1], embedder(b, a)[1])


@pytest.mark.parametrize("name", VARIANTS)
def test_an_agent_with_its_unet_takes_less_than_4_mb_as_it_is_saved(name, tmp_path):
    save_airloc(tmp_path / "agent", PatchEncoder(VARIANTS[name].sem_seg), Policy(VARIANTS[name]), {}, "# untrained\n")
    assert (tmp_path / "agent" / "weights.safetensors").stat().st_size < 4_000_000


def test_preprocessing_standardises_rgb_and_adds_the_building_mask():
    patches = torch.randint(0, 256, (2, 48, 48, 3), dtype=torch.uint8)
    encoder, plain = untrained_encoder(), untrained_encoder(sem_seg=False)
    with torch.no_grad():
        inputs, rgb = encoder.preprocess(patches), plain.preprocess(patches)
    assert (inputs.shape, rgb.shape) == ((2, 4, 48, 48), (2, 3, 48, 48))
    assert torch.equal(inputs[:, :3], rgb)
    torch.testing.assert_close(rgb[1, 2, 5, 7], standardise(patches[1, 5, 7, 2] / 255.0))
    assert ((inputs[:, 3] > 0) & (inputs[:, 3] < 1)).all()


def test_the_building_mask_has_no_gradient():
    encoder = untrained_encoder()
    assert not encoder.add_mask(torch.randn(1, 3, 48, 48)).requires_grad


def test_the_bottleneck_is_3_x_3_x_64_and_a_pixel_has_one_logit():
    torch.manual_seed(0)
    segmenter = Segmenter().eval()
    seen = []
    hook = segmenter.down[-1].register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    with torch.no_grad():
        logits = segmenter(torch.randn(2, 3, 48, 48) * 50)
    hook.remove()
    assert seen == [(2, 64, 3, 3)]
    assert (len(segmenter.down), len(segmenter.up)) == (4, 4)
    assert logits.shape == (2, 1, 48, 48)
    assert ((logits < 0) | (logits > 1)).any(), "logits, not probabilities"


def test_other_multiples_of_16_pass_too():
    with torch.no_grad():
        assert Segmenter().eval()(torch.randn(1, 3, 64, 32)).shape == (1, 1, 64, 32)


def test_in_eval_mode_a_patch_does_not_depend_on_the_others():
    torch.manual_seed(0)
    segmenter, patches = Segmenter().eval(), torch.randn(3, 3, 48, 48)
    with torch.no_grad():
        torch.testing.assert_close(segmenter(patches)[1:2], segmenter(patches[1:2]))


PAPER = Layers(batch_norm=False, branches="paper", unet="paper", mask="binary")


def test_the_papers_embedder_has_four_convolutions_a_branch_and_no_batch_normalisation():
    embedder = PatchEncoder(layers=PAPER).embedder
    kinds = [type(module) for module in embedder.modules()]
    assert nn.BatchNorm2d not in kinds
    assert nn.BatchNorm1d not in kinds
    # Two convolutions and a term of the third in each branch, and both fourth ones as one.
    assert kinds.count(nn.Conv2d) == 3 + 3 + 1
    assert all(module.bias is not None for module in embedder.modules() if isinstance(module, nn.Conv2d | nn.Linear))


@pytest.mark.parametrize(("sem_seg", "channels"), [(True, 4), (False, 3)])
def test_the_papers_branches_have_the_channels_and_the_poolings_of_the_published_code(sem_seg, channels):
    embedder = PatchEncoder(sem_seg, PAPER).embedder
    maps = {}
    embedder.fourth.register_forward_hook(lambda module, inputs, output: maps.update(last=output))
    for number, name in enumerate(("current_first", "goal_first")):
        convolutions = [layer for layer in getattr(embedder, name) if isinstance(layer, nn.Conv2d)]
        assert [layer.kernel_size for layer in convolutions] == [(3, 3)] * 3
        # The third convolutions of both branches are computed together.
        assert [layer.out_channels for layer in convolutions] == [2 * channels, 3 * channels, 24 * channels], number
    embedding, _ = embedder(*torch.randn(2, 5, channels, 48, 48))
    assert maps["last"].shape == (5, 2 * 18 * channels, 3, 3)
    assert (embedding >= 0).all(), "c is rectified"
    assert (embedding == 0).any()


def test_without_batch_normalisation_different_pairs_start_with_different_predictions():
    torch.manual_seed(0)
    patches = torch.rand(2, 20, 48, 48, 3).mul(255).byte()
    encoder = PatchEncoder(layers=PAPER).eval()
    with torch.no_grad():
        _, prior = encoder.embedder(*(encoder.preprocess(some) for some in patches))
    assert 0.05 < float(prior.std(dim=0).mean()) < 5


def test_the_papers_unet_has_two_convolutions_a_block_and_a_bottleneck_of_3_x_3_x_64():
    segmenter = Segmenter("paper").eval()
    blocks = [segmenter.enter, *segmenter.down, *segmenter.up]
    assert len(segmenter.down) == len(segmenter.up) == 4
    assert [sum(isinstance(layer, nn.Conv2d) for layer in block.modules()) for block in blocks] == [2] * 9
    maps = segmenter.enter(torch.zeros(1, 3, 48, 48))
    for block in segmenter.down:
        maps = block(maps)
    assert maps.shape == (1, 64, 3, 3)
    assert segmenter(torch.zeros(2, 3, 48, 48)).shape == (2, 1, 48, 48)


def test_the_papers_building_mask_is_binary():
    torch.manual_seed(0)
    patches = torch.randint(0, 255, (3, 48, 48, 3), dtype=torch.uint8)
    encoder = PatchEncoder(layers=PAPER).eval()
    with torch.no_grad():
        encoder.segmenter.leave.bias -= encoder.segmenter(standardise(patches.permute(0, 3, 1, 2) / 255)).median()
    mask = encoder.preprocess(patches)[:, 3]
    assert mask.unique().tolist() == [0.0, 1.0]


def test_the_papers_networks_together_take_less_than_4_mb_of_memory():
    networks = PatchEncoder(layers=PAPER), Policy(Variant())
    numbers = [tensor for network in networks for tensor in network.state_dict().values()]
    assert 3_000_000 < sum(tensor.numel() * tensor.element_size() for tensor in numbers) < 4_000_000
