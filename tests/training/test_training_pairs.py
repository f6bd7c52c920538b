from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.training.data import Atlas, Pairs, Scales, load_pairs
from airloc.training.puzzles import Change, draw_puzzles

CPU = torch.device("cpu")
GRID = Grid(3, 3)
SIDE = GRID.size[0]
SCALES = Scales(unknown=(1.0, 0.75))
STILL = Change(shared_jitter=0.0, goal_jitter_probability=0.0, off_grid_probability=0.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pairs of one storm, one picture of another without its partner."""
    place = tmp_path_factory.mktemp("xbd") / "images"
    place.mkdir()
    for seed in range(2):
        for day, disaster in (("pre", None), ("post", "burnt")):
            area = generate(seed, (208, 216), disaster=disaster, regime="suburb")
            Image.fromarray(area.image).save(place / f"storm_{seed}_{day}_disaster.png")
    Image.fromarray(generate(9, (208, 208)).image).save(place / "flood_9_pre_disaster.png")
    return place


def pixels(folder: Path, name: str) -> np.ndarray:
    return np.asarray(Image.open(folder / name))


def test_a_pair_lies_on_itself(folder):
    atlas = load_pairs(Pairs(pairs=folder), SIDE, CPU, Scales(unknown=(1.0,)))
    assert atlas is not None
    cut = atlas.cut(torch.tensor([1]), torch.tensor([5]), torch.tensor([9]), SIDE)[0].numpy()
    for channels, day in ((slice(0, 3), "pre"), (slice(3, 6), "post")):
        whole = pixels(folder, f"storm_1_{day}_disaster.png")
        assert np.array_equal(cut[..., channels], whole[5 : 5 + SIDE, 9 : 9 + SIDE])


def test_scales_at_which_a_pair_is_too_small_are_left_out(folder):
    atlas = load_pairs(Pairs(pairs=folder), SIDE, CPU, SCALES)
    assert atlas is not None
    assert sorted(atlas.height.tolist()) == [156, 156, 208, 208]
    larger = load_pairs(Pairs(pairs=folder), 200, CPU, SCALES)
    assert larger is not None
    assert larger.height.tolist() == [208, 208]


def test_pairs_are_drawn_as_often_as_asked_and_other_pictures_are_one_day_twice(folder):
    plain = Atlas.of([np.full((200, 200, 3), 7, dtype=np.uint8)], [1.0], CPU)
    pairs = load_pairs(Pairs(pairs=folder), SIDE, CPU, SCALES)
    assert pairs is not None
    torch.manual_seed(0)
    both = plain.beside(pairs, 0.25)
    which, top, left = both.draw(4000, SIDE)
    assert abs((which > 0).float().mean() - 0.25) < 0.03
    cuts = both.cut(which[:200], top[:200], left[:200], SIDE)
    alike = (cuts[..., :3] == cuts[..., 3:]).flatten(1).all(dim=1)
    assert torch.equal(alike, which[:200] == 0)


def test_goals_of_a_pair_come_from_the_other_day(folder):
    pairs = load_pairs(Pairs(pairs=folder), SIDE, CPU, SCALES)
    assert pairs is not None
    torch.manual_seed(0)
    puzzle = draw_puzzles(pairs, GRID, 8, 3, STILL)
    seen = torch.stack([puzzle.glimpses[area, cells] for area, cells in enumerate(puzzle.cell)])
    goal_jitter = (seen - puzzle.goals).abs().flatten(2).mean(dim=2)
    assert (goal_jitter > 0.02).float().mean() > 0.9


def test_procedural_pairs_need_no_folder():
    atlas = load_pairs(Pairs(disaster_pairs=2), SIDE, CPU, Scales(unknown=(1.0,)))
    assert atlas is not None
    assert atlas.pixels.shape[1] == 6
    assert len(atlas.first) == 2
    assert load_pairs(Pairs(), SIDE, CPU, SCALES) is None


def test_names_choose_pairs_and_terms_come_with_the_set(folder):
    one = load_pairs(Pairs(pairs=folder, pairs_only="storm_0*"), SIDE, CPU, Scales(unknown=(1.0,)))
    assert one is not None
    assert len(one.first) == 1
    assert Pairs().terms == ""
    assert Pairs(pairs=Path("data/xbd/images")).terms == "CC BY-NC-SA 4.0"


def test_bad_pairs_are_refused_with_a_cure(folder, tmp_path):
    with pytest.raises(AirlocError, match="no folder of pairs"):
        load_pairs(Pairs(pairs=tmp_path / "nowhere"), SIDE, CPU, SCALES)
    with pytest.raises(AirlocError, match="no pair called like 'flood"):
        load_pairs(Pairs(pairs=folder, pairs_only="flood*"), SIDE, CPU, SCALES)
    with pytest.raises(AirlocError, match="leaves none of the other pictures"):
        Pairs(pairs_share=1.0)
    for day, side in (("pre", 200), ("post", 210)):
        Image.new("RGB", (side, side)).save(tmp_path / f"a_{day}_disaster.png")
    with pytest.raises(AirlocError, match="differ in size"):
        load_pairs(Pairs(pairs=tmp_path), SIDE, CPU, SCALES)
