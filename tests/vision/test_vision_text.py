"""The text network relates patches to descriptions: rows that are missing do not count, nor does their order."""

import torch

from airloc.vision.offsets import NUM_NEAR, NUM_OFFSETS, offset_index
from airloc.vision.sentences import DIM, ROWS
from airloc.vision.text import is_blank
from untrained import untrained_text


def rows(seed: int = 0, count: int = 2) -> torch.Tensor:
    return torch.nn.functional.normalize(
        torch.randn(count, ROWS, DIM, generator=torch.Generator().manual_seed(seed)), dim=2
    )


def test_logits_cover_all_offsets_and_rings_repeat_the_edge():
    network = untrained_text()
    patches = torch.randint(0, 256, (2, 48, 48, 3), dtype=torch.uint8)
    with torch.inference_mode():
        logits = network.relate(network.encode_patches(patches), network.encode_text(rows()))
    assert logits.shape == (2, NUM_OFFSETS)
    for row, col in ((0, 4), (-4, -4), (4, 1)):
        assert torch.equal(logits[:, offset_index(row, col)], logits[:, offset_index(2 * row, 2 * col)])
    assert logits[:, :NUM_NEAR].std() > 0


def test_missing_rows_do_not_count_and_clauses_have_no_order():
    network, full = untrained_text(), rows()
    short = full.clone()
    short[:, 3:] = 0
    other = short[:, [0, 2, 1, 3, 4, 5, 6, 7]]
    with torch.inference_mode():
        assert torch.allclose(network.encode_text(short), network.encode_text(short[:, :3]), atol=1e-5)
        assert torch.allclose(network.encode_text(short), network.encode_text(other), atol=1e-5)
        assert not torch.allclose(network.encode_text(short), network.encode_text(full), atol=1e-3)


def test_embeddings_have_length_one():
    network = untrained_text()
    patches = torch.randint(0, 256, (3, 96, 96, 3), dtype=torch.uint8)
    with torch.inference_mode():
        lengths = network.embed_patch(network.encode_patches(patches)).norm(dim=1)
    assert torch.allclose(lengths, torch.ones(3), atol=1e-5)


def test_a_description_without_rows_is_blank():
    both = rows()
    both[1] = 0
    assert is_blank(both).tolist() == [False, True]
