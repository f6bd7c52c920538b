import torch

from airloc.vision.embedder import Segmenter


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
