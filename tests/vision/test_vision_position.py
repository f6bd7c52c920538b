import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from airloc.grid import Grid
from airloc.vision.position import PositionEncoding, encode_position, to_training_grid


def test_worked_numbers_of_a_short_encoding():
    # d = 8: i = 1 .. 4 for each half; odd i: cos(x / 100^(2 (i - 1) / 4)), even i: sin(x / 100^(2 i / 4)).
    encoded = encode_position(torch.tensor([2, 3]), size=8)
    waves = [
        (math.cos(x), math.sin(x / 100.0), math.cos(x / 100.0), math.sin(x / 10_000.0))
        for x in (2, 3)
    ]  # fmt: skip
    assert encoded.tolist() == pytest.approx([*waves[0], *waves[1]], abs=1e-7)
    assert encoded[:4].tolist() == pytest.approx([-0.4161468, 0.0199987, 0.9998, 0.0002], abs=1e-6)


def test_worked_numbers_of_the_full_encoding():
    encoded = encode_position(torch.tensor([4, 0]))
    assert encoded.shape == (256,)
    assert float(encoded[0]) == pytest.approx(math.cos(4.0), abs=1e-6)
    assert float(encoded[1]) == pytest.approx(math.sin(4.0 / 100 ** (4 / 128)), abs=1e-6)
    assert float(encoded[2]) == pytest.approx(math.cos(4.0 / 100 ** (4 / 128)), abs=1e-6)
    assert float(encoded[127]) == pytest.approx(math.sin(4.0 / 100**2), abs=1e-6)
    assert encoded[128::2].tolist() == [1.0] * 64, "the cosines of y = 0"
    assert encoded[129::2].tolist() == [0.0] * 64


def test_the_printed_equation_is_computed_as_it_is_printed():
    size, half = 256, 128
    for x, y in ((0, 0), (4, 2), (-3, 9)):
        expected = []
        for i in range(1, size + 1):
            place = x if i <= half else y
            expected.append(
                math.cos(place / 100 ** (2 * (i - 1) / half)) if i % 2 else math.sin(place / 100 ** (2 * i / half))
            )
        encoded = encode_position(torch.tensor([x, y]), encoding="printed")
        assert encoded.tolist() == pytest.approx(expected, abs=1e-6)
    columns = encode_position(torch.tensor([[2, 0], [2, 4]]), encoding="printed")
    assert float((columns[0] - columns[1]).abs().max()) < 4e-4, "the column has almost no effect"


def test_the_published_encoding_is_that_of_the_authors_code():
    for x, y in ((0, 0), (4, 2), (-3, 9)):
        expected = [
            (math.cos if i % 2 else math.sin)(place * math.exp(-0.01 * (i - i % 2)))
            for place in (x, y)
            for i in range(128)
        ]
        encoded = encode_position(torch.tensor([x, y]), encoding="published")
        assert encoded.tolist() == pytest.approx(expected, abs=1e-5)
    columns = encode_position(torch.tensor([[2, 1], [2, 2]]), encoding="published")
    assert float((columns[0] - columns[1])[128:].abs().min()) > 0.01, "every number of the column changes"


def test_positions_are_encoded_as_they_are_or_by_the_border():
    place, large, small = torch.tensor([6, 5]), Grid(7, 7), Grid(5, 5)
    raw, border = (PositionEncoding(positions=kind).encode(place, large, small) for kind in ("raw", "border"))
    assert torch.equal(raw, encode_position(place))
    assert torch.equal(border, encode_position(torch.tensor([4, 3])))


def test_one_half_is_x_and_the_other_y():
    here, down, right = encode_position(torch.tensor([[1, 2], [2, 2], [1, 3]]))
    assert torch.equal(here[128:], down[128:])
    assert torch.equal(here[:128], right[:128])
    assert not torch.equal(here[:128], down[:128])
    assert torch.equal(encode_position(torch.tensor([3, 1]))[:128], encode_position(torch.tensor([1, 3]))[128:])


def test_positions_outside_are_encoded_too_and_all_differ():
    line = torch.arange(-14, 22)
    encoded = encode_position(torch.cartesian_prod(line, line))
    assert encoded.isfinite().all()
    assert encoded.abs().max() <= 1
    distances = torch.cdist(encoded, encoded) + 10 * torch.eye(len(encoded))
    assert distances.min() > 0.1
    assert float(encode_position(torch.tensor([-3, 0]))[0]) == pytest.approx(math.cos(-3))


def test_any_batch_shape_is_kept():
    position = torch.randint(-5, 10, (2, 3, 2))
    encoded = encode_position(position)
    assert encoded.shape == (2, 3, 256)
    assert torch.equal(encoded[1, 2], encode_position(position[1, 2]))


SIDES = st.integers(3, 20)


@given(rows=SIDES, cols=SIDES, trained=SIDES, outside=st.integers(1, 4))
def test_borders_map_to_the_borders_of_the_training_grid(rows, cols, trained, outside):
    grid, known = Grid(rows, cols), Grid(trained, trained)
    ends = torch.tensor([[0, 0], [rows - 1, cols - 1], [-outside, -outside], [rows - 1 + outside, cols - 1 + outside]])
    last = trained - 1
    mapped = [[0, 0], [last, last], [-outside, -outside], [last + outside, last + outside]]
    assert to_training_grid(ends, grid, known).tolist() == mapped
    cells = torch.tensor(list(grid.cells()))
    inside = to_training_grid(cells, grid, known)
    assert inside.min() >= 0
    assert inside.max() <= last


def test_on_the_training_grid_positions_stay_the_same():
    cells = torch.tensor(list(Grid().cells()))
    assert torch.equal(to_training_grid(cells, Grid(), Grid()), cells)


def test_the_inside_of_a_larger_grid_maps_to_the_middle():
    line = torch.arange(-1, 10)
    mapped = to_training_grid(torch.stack([line, line], dim=1), Grid(9, 9), Grid())
    assert mapped[:, 0].tolist() == [-1, 0, 1, 2, 2, 2, 2, 2, 3, 4, 5]
