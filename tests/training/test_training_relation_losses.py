import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from airloc.grid import Grid
from airloc.training.relation_batches import random_walks
from airloc.training.relation_losses import consistency_loss, direction_loss, logits_by_cell, pair_loss, walk_loss
from airloc.vision.offsets import NUM_OFFSETS, offset_index
from airloc.vision.relation import offsets_between_cells

GRID, SMALL = Grid(), Grid(3, 3)
CPU = torch.device("cpu")


def perfect(grid: Grid, goal: torch.Tensor, margin: float) -> torch.Tensor:
    """Logits (1, C, G, O) that name every offset with a margin."""
    table = torch.zeros(1, grid.count, goal.shape[1], NUM_OFFSETS)
    for cell in range(grid.count):
        for n, target in enumerate(goal[0].tolist()):
            table[0, cell, n, offsets_between_cells(grid, CPU)[cell, target]] = margin
    return table


def every_cell(grid: Grid) -> torch.Tensor:
    return torch.arange(grid.count)[None]


def test_logits_of_cells_are_those_of_the_offsets_from_the_observed_cells():
    observed = torch.tensor([[0, 4], [8, 2]])
    logits = torch.randn(2, 2, 3, NUM_OFFSETS, generator=torch.Generator().manual_seed(0))
    by_cell = logits_by_cell(logits, observed, SMALL)
    assert by_cell.shape == (2, 2, 3, 9)
    for area, glimpse, cell in ((0, 0, 5), (0, 1, 0), (1, 0, 8), (1, 1, 6)):
        (row, col), (here_row, here_col) = (divmod(int(index), 3) for index in (cell, observed[area, glimpse]))
        offset = offset_index(row - here_row, col - here_col)
        assert torch.equal(by_cell[area, glimpse, :, cell], logits[area, glimpse, :, offset])


def test_losses_vanish_for_one_who_knows_and_are_those_of_chance_for_one_who_does_not():
    goal, observed = torch.tensor([[4, 0]]), every_cell(SMALL)
    walks = torch.tensor([[8, 5]])
    torch.manual_seed(0)
    for margin, pair, direction in ((0.0, math.log(9), math.log(8)), (40.0, 0.0, 0.0)):
        logits = perfect(SMALL, goal, margin)
        by_cell = logits_by_cell(logits, observed, SMALL)
        assert float(pair_loss(by_cell, goal)) == pytest.approx(pair, abs=1e-4)
        assert float(direction_loss(logits, goal, observed, SMALL)) == pytest.approx(direction, abs=1e-4)
        loss, right = walk_loss(by_cell, goal, observed, walks)
        if margin:
            assert float(loss) == pytest.approx(0, abs=1e-4)
            assert float(right) == 1
        else:
            assert math.log(7) - 1e-4 <= float(loss) <= math.log(8) + 1e-4


def test_directions_are_asked_of_the_glimpses_beside_the_goal_alone():
    goal, observed = torch.tensor([[4]]), torch.tensor([[0, 24]])  # (0, 4), seen from (0, 0) and (4, 4)
    logits = torch.randn(1, 2, 1, NUM_OFFSETS, generator=torch.Generator().manual_seed(0))
    assert float(direction_loss(logits, goal, observed, GRID)) == 0
    beside = torch.tensor([[3, 24]])  # (0, 3) is west of the goal
    logits[...] = 0
    logits[0, 0, 0, offset_index(0, 1)] = math.log(7)
    assert float(direction_loss(logits, goal, beside, GRID)) == pytest.approx(math.log(2))


@pytest.fixture
def whole_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the first walk, at its full length."""
    monkeypatch.setattr(
        torch, "randint", lambda *given, device: torch.full(given[-1], given[1] - 1 if len(given) == 3 else 0)
    )


@pytest.mark.usefixtures("whole_walks")
def test_the_walks_loss_is_the_belief_of_all_glimpses_before_the_goal():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(1, 9, 1, 9, generator=generator)
    goal, walks = torch.tensor([[4]]), torch.tensor([[0, 1, 4, 5]])
    loss, _ = walk_loss(logits, goal, every_cell(SMALL), walks)
    belief = (logits[0, 0, 0] + logits[0, 1, 0]).clone()  # the walk reaches the goal at its third cell
    belief[[0, 1]] = -torch.inf
    assert float(loss) == pytest.approx(float(cross_entropy(belief[None], goal[0])), abs=1e-5)


@pytest.mark.usefixtures("whole_walks")
def test_the_walks_loss_of_some_observed_cells_is_that_by_hand():
    observed, goal = torch.tensor([[0, 4, 8]]), torch.tensor([[4]])
    walks = torch.tensor([[2, 0, 1]])  # the cells 8, 0 and 4, which is the goal
    logits = torch.zeros(1, 3, 1, 9)
    logits[0, 2, 0, 4], logits[0, 0, 0, 4] = math.log(3), math.log(2)
    logits[0, 1] = torch.arange(9) * 100.0  # at the goal, not observed
    logits[0, :, 0, [0, 8]] = 50.0  # visited, and thus not the goal
    loss, right = walk_loss(logits, goal, observed, walks)
    # The goal has the odds 6, and the six other cells that are not visited have the odds 1.
    assert float(loss) == pytest.approx(math.log(12 / 6), abs=1e-5)
    assert float(right) == 1


def test_walks_that_begin_on_the_goal_do_not_count():
    logits = torch.randn(1, 9, 2, 9, generator=torch.Generator().manual_seed(0))
    loss, right = walk_loss(logits, torch.tensor([[4, 8]]), every_cell(SMALL), torch.tensor([[4, 5, 8]]))
    assert math.isfinite(float(loss))
    assert float(right) in (0.0, 1.0)
    loss, right = walk_loss(logits, torch.tensor([[4, 4]]), every_cell(SMALL), torch.tensor([[4, 5, 8]]))
    assert (float(loss), float(right)) == (0.0, 0.0)


def losses(answers: torch.Tensor, logits: torch.Tensor) -> tuple[float, float]:
    torch.manual_seed(0)
    walks = random_walks(SMALL, 20, 5, CPU)
    pair, walk = consistency_loss(answers, logits, every_cell(SMALL).expand(len(answers), -1), walks, SMALL)
    return float(pair), float(walk)


def test_the_loss_vanishes_for_the_answers_of_the_teacher_alone():
    torch.manual_seed(3)
    answers, others = torch.randn(2, 2, SMALL.count, 4, NUM_OFFSETS)
    assert losses(answers, answers + 5.0) == pytest.approx((0, 0), abs=1e-5)  # a constant tells nothing
    assert min(losses(answers, others)) > 0.1


def test_offsets_that_the_grid_does_not_have_are_held_too():
    answers = torch.zeros(1, SMALL.count, 2, NUM_OFFSETS)
    absent = torch.ones(NUM_OFFSETS, dtype=torch.bool)
    absent[offsets_between_cells(SMALL, CPU).unique()] = False
    pair, walk = losses(answers, answers + 3.0 * absent)
    assert pair > 0.1
    assert walk == pytest.approx(0, abs=1e-5)
