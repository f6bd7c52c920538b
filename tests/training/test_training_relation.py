import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch.nn.functional import cross_entropy

from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.pretrained import load_relation
from airloc.agents.registry import make_agent
from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.training import relation as relation_module
from airloc.training import runs
from airloc.training.data import DataConfig, PairConfig, load_imagery, validation_areas
from airloc.training.photos import PhotoAugmentation
from airloc.training.relation import (
    FAR_GRID,
    FAR_WALK_LENGTH,
    GRID,
    SCALES,
    RelationConfig,
    _belief_card,
    _Board,
    all_pair_logits,
    average_weights,
    direction_loss,
    logits_by_cell,
    pair_logits,
    pair_loss,
    train_belief,
    train_relation,
    validate,
    walk_loss,
)
from airloc.training.relation_batches import RelationBatch, sample_batch
from airloc.vision.offsets import NUM_NEAR, NUM_OFFSETS, offset_index
from airloc.vision.relation import RelationNetwork, offsets_between_cells
from untrained import untrained_relation

pytestmark = pytest.mark.long

SMALL = Grid(3, 3)
CPU = torch.device("cpu")


class KilledError(Exception):
    """Stands for a kill between two saves."""


def tiny(world, **settings) -> RelationConfig:
    settings = {"steps": 5, "areas": 2, "goals": 2, "width": 2, "small_share": 0.5, "validate_every": 2, **settings}
    return RelationConfig(data=DataConfig(root=world, synthetic=0), **settings)


def fresh() -> RelationNetwork:
    torch.manual_seed(5)
    return RelationNetwork(2)


def same(a: RelationNetwork, b: RelationNetwork) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_interrupted_and_resumed_it_ends_with_the_same_weights(world, tmp_path):
    logged = []
    whole = train_relation(tmp_path / "whole", tiny(world), fresh(), on_step=lambda *step: logged.append(step))
    assert [step for step, _ in logged] == [2, 4, 5]
    assert all(math.isfinite(value) for _, metrics in logged for value in metrics.values())

    def killed(step, metrics):
        if step == 4:
            raise KilledError

    with pytest.raises(KilledError):
        train_relation(tmp_path / "parts", tiny(world), fresh(), on_step=killed)
    resumed = train_relation(tmp_path / "parts", tiny(world), RelationNetwork(2), on_step=lambda *_: None)
    assert same(whole, resumed)
    again = train_relation(tmp_path / "parts", tiny(world), RelationNetwork(2), on_step=lambda *_: pytest.fail("done"))
    assert same(whole, again)
    assert not whole.training


def test_killed_between_validations_it_goes_on_from_a_save_of_the_last_30_seconds(world, tmp_path, monkeypatch):
    config = replace(tiny(world), steps=4, validate_every=4)
    whole = train_relation(tmp_path / "whole", config, fresh(), on_step=lambda *_: None)
    monkeypatch.setattr(runs, "SAVE_SECONDS", 0.0)
    updates = []

    def killed(*arguments):
        updates.append(0)
        if len(updates) == 3:
            raise KilledError
        return pair_logits(*arguments)

    monkeypatch.setattr(relation_module, "pair_logits", killed)
    with pytest.raises(KilledError):
        train_relation(tmp_path / "broken", config, fresh(), on_step=lambda *_: None)
    assert runs.read_state(tmp_path / "broken" / "state.pt")[0] == 1
    assert same(train_relation(tmp_path / "broken", config, fresh(), on_step=lambda *_: None), whole)
    assert (tmp_path / "broken" / "metrics.jsonl").read_bytes() == (tmp_path / "whole" / "metrics.jsonl").read_bytes()


def random_batch(areas: int, glimpses: int, goals: int, seed: int) -> RelationBatch:
    generator = torch.Generator().manual_seed(seed)
    patches = (torch.randn(areas, count, 3, 48, 48, generator=generator) for count in (glimpses, goals))
    cells = (torch.zeros(areas, count, dtype=torch.long) for count in (glimpses, goals))
    return RelationBatch(*patches, *cells)


def test_pair_logits_of_batches_equal_those_of_single_pairs():
    network = untrained_relation(2)
    batches = [random_batch(2, 4, 3, seed=0), random_batch(1, 2, 5, seed=1)]
    with torch.no_grad():
        tables = pair_logits(network, batches)
        assert [table.shape for table in tables] == [(2, 4, 3, NUM_OFFSETS), (1, 2, 5, NUM_OFFSETS)]
        for number, area, glimpse, goal in ((0, 0, 3, 1), (0, 1, 0, 2), (1, 0, 1, 4)):
            batch = batches[number]
            alone = network(batch.glimpses[area, glimpse][None], batch.goals[area, goal][None])[0]
            torch.testing.assert_close(tables[number][area, glimpse, goal], alone, rtol=1e-3, atol=1e-3)


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


def test_validation_names_directions_and_cells(monkeypatch, world):
    areas = validation_areas(DataConfig(root=world, synthetic=0), GRID)
    table = perfect(GRID, torch.arange(25)[None], 9.0)
    monkeypatch.setattr(relation_module, "all_pair_logits", lambda network, areas, grid: table)
    metrics = validate(untrained_relation(2), areas[:1])
    assert metrics["val_accuracy"] == 1.0
    assert metrics["val_pair_loss"] < 0.01


def test_the_table_of_an_area_holds_every_pair(world):
    network = untrained_relation(2)
    areas = validation_areas(DataConfig(root=world, synthetic=0), SMALL)
    table = all_pair_logits(network, areas, SMALL)
    assert table.shape == (len(areas), 9, 9, NUM_OFFSETS)
    assert table[0, 0, 1].argmax() in range(NUM_OFFSETS)
    assert offset_index(0, 0) == NUM_NEAR // 2


def test_a_belief_agent_is_trained_saved_and_played(world, tmp_path):
    logged = []
    config = RelationConfig(
        data=DataConfig(root=world, synthetic=0), steps=2, areas=2, goals=2, width=2, validate_every=1
    )
    train_belief(tmp_path, config, device=CPU, command="airloc train belief", on_step=lambda *step: logged.append(step))
    assert [(stage, step) for stage, step, _ in logged] == [("relation", 1), ("relation", 2)]
    assert make_agent(str(tmp_path / "agent")).network.width == 2
    written = (tmp_path / "agent" / "card.md").read_text()
    assert "`airloc train belief`" in written
    assert "8-way accuracy" in written


def test_it_trains_on_photos_with_errors(world, tmp_path):
    logged = []
    photos = PhotoAugmentation(flight_probability=0.5, area_compression_probability=0.5)
    train_relation(
        tmp_path, tiny(world, photos=photos, steps=2), fresh(), on_step=lambda step, metrics: logged.append(metrics)
    )
    assert all(math.isfinite(value) for metrics in logged for value in metrics.values())
    assert logged


def test_the_card_says_the_terms():
    metrics = {"val_accuracy": 0.5, "val_pair_loss": 2.0}
    assert "CC BY-NC-SA 4.0" in _belief_card(RelationConfig(), metrics, "c", "CC BY-NC-SA 4.0")
    assert "those of the training data" in _belief_card(RelationConfig(), metrics, "c")


def test_training_goes_on_from_the_weights_of_another_agent(world, tmp_path):
    data = DataConfig(root=world, synthetic=0)
    config = RelationConfig(
        data=data, steps=1, areas=2, goals=2, width=2, validate_every=1, learning_rate=1e-9, weight_decay=0.0
    )

    def train(name: str, settings: RelationConfig) -> torch.Tensor:
        train_belief(tmp_path / name, settings, device=CPU, command="c", on_step=lambda *_: None)
        return load_relation(load_checkpoint(tmp_path / name / "agent")).judge[0].weight

    first, other = train("first", config), train("other", replace(config, seed=5))
    begun = train("second", replace(config, seed=5, init_from=str(tmp_path / "first" / "agent")))
    torch.testing.assert_close(begun, first, atol=1e-5, rtol=0)
    assert not torch.allclose(other, first, atol=1e-5)
    assert str(tmp_path / "first" / "agent") in (tmp_path / "second" / "agent" / "card.md").read_text()
    deeper = replace(config, seed=5, blocks=2, init_from=str(tmp_path / "first" / "agent"))
    torch.testing.assert_close(train("deeper", deeper), first, atol=1e-5, rtol=0)
    assert load_relation(load_checkpoint(tmp_path / "deeper" / "agent")).blocks == 2
    with pytest.raises(AirlocError, match=r"width 2.*width = 3"):
        train("third", replace(config, width=3, init_from=str(tmp_path / "first" / "agent")))


def test_weights_are_averaged_by_the_share_of_the_initial_ones():
    trained = {"weight": torch.tensor([1.0, 2.0]), "count": torch.tensor(8)}
    initial = {"weight": torch.tensor([3.0, -2.0]), "count": torch.tensor(0)}
    quarter = average_weights(trained, initial, 0.25)
    assert quarter["weight"].tolist() == [1.5, 1.0]
    assert quarter["count"].dtype == torch.int64
    assert int(quarter["count"]) == 6
    for share, expected in ((0.0, trained), (1.0, initial)):
        mean = average_weights(trained, initial, share)
        assert all(torch.equal(mean[name], expected[name]) for name in expected)


def test_a_training_with_an_initial_share_of_one_returns_the_initial_weights(world, tmp_path):
    config = tiny(world, steps=1, learning_rate=0.1)

    def train(name: str, settings: RelationConfig) -> dict[str, torch.Tensor]:
        train_belief(tmp_path / name, settings, device=CPU, command="c", on_step=lambda *_: None)
        return load_relation(load_checkpoint(tmp_path / name / "agent")).state_dict()

    first = train("first", config)
    further = replace(config, seed=1, init_from=str(tmp_path / "first" / "agent"))
    trained, averaged = train("trained", further), train("averaged", replace(further, initial_share=1.0))
    assert all(torch.equal(averaged[name], first[name]) for name in first)
    assert not all(torch.equal(trained[name], first[name]) for name in first)
    assert "100 % of the average" in (tmp_path / "averaged" / "agent" / "card.md").read_text()


def train_on(root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings) -> dict[Grid, RelationBatch]:
    """Train for two updates, and return the last batch of each grid."""
    batches: dict[Grid, RelationBatch] = {}

    def sample(crops, grid, *options):
        batches[grid] = sample_batch(crops, grid, *options)
        return batches[grid]

    monkeypatch.setattr(relation_module, "sample_batch", sample)
    logged = []
    config = tiny(root, steps=2, **settings)
    train_relation(folder, config, fresh(), on_step=lambda step, metrics: logged.append(metrics))
    assert all(math.isfinite(value) for metrics in logged for value in metrics.values())
    return batches


def test_a_board_of_12_by_12_trains_on_the_cells_of_one_walk(world, tmp_path, monkeypatch):
    batches = train_on(world, tmp_path, monkeypatch, areas=3, small_share=0.0, far_share=0.6)
    assert batches.keys() == {GRID, FAR_GRID}
    far = batches[FAR_GRID]
    assert far.glimpses.shape[:2] == far.observed.shape == (2, FAR_WALK_LENGTH)
    assert all(len(set(cells.tolist())) == FAR_WALK_LENGTH for cells in far.observed)
    row, col = far.observed // 12, far.observed % 12
    assert all(((part[:, 1:] - part[:, :-1]).abs() <= 1).all() for part in (row, col))


def test_boards_that_no_image_fits_are_left_out(tmp_path, monkeypatch):
    (tmp_path / "images").mkdir()
    Image.fromarray(generate(1, (200, 200)).image).save(tmp_path / "images" / "a.png")  # 300 px at the finest scale
    shares = {"areas": 4, "small_share": 0.25, "large_share": 0.25, "far_share": 0.25}
    batches = train_on(tmp_path / "images", tmp_path / "run", monkeypatch, **shares)
    assert batches.keys() == {GRID, Grid(3, 3)}
    assert len(batches[GRID].cell) == 1


def test_images_too_small_for_5_by_5_are_refused_with_a_cure(tmp_path):
    (tmp_path / "images").mkdir()
    Image.fromarray(generate(1, (160, 160)).image).save(tmp_path / "images" / "a.png")
    with pytest.raises(AirlocError, match=r"no images of 256 px.*--root"):
        train_relation(tmp_path / "run", tiny(tmp_path / "images"), fresh(), on_step=lambda *_: None)


def test_small_boards_have_fewer_goals_and_shorter_walks(world):
    imagery = load_imagery(DataConfig(root=world, synthetic=0), PairConfig(), CPU, SCALES)
    board = _Board.create(imagery, SMALL, areas=2, goals=20)
    assert board.goals == 9
    assert board.walks.shape[1] == 8
    assert torch.equal(board.observed(), torch.arange(9).expand(2, -1))


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        ({"width": 1_000_000}, "width = 1000000"),
        ({"steps": 0}, "steps = 0"),
        ({"learning_rate": math.nan}, "learning_rate = nan"),
        ({"learning_rate": -1.0}, "learning_rate = -1"),
        ({"weight_decay": math.nan}, "weight_decay = nan"),
        ({"small_share": 1.0}, "small_share = 1"),
        ({"far_share": -0.1}, "far_share = -0.1"),
        ({"blocks": -1}, "blocks = -1"),
        ({"direction_weight": -1.0}, "direction_weight = -1"),
        ({"init_from": "belief", "initial_share": -0.1}, "initial_share = -0.1"),
        ({"init_from": "belief", "initial_share": 1.1}, "initial_share = 1.1"),
        ({"init_from": "belief", "initial_share": math.nan}, "initial_share = nan"),
        ({"initial_share": 0.28}, "initial_share = 0.28.*--init-from"),
    ],
)
def test_invalid_settings_are_refused(settings, facts):
    with pytest.raises(AirlocError, match=facts):
        RelationConfig(**settings)
