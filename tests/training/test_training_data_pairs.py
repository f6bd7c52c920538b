"""Image pairs: the same places on two days, real and procedural."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.training.atlas import Atlas, Scales
from airloc.training.data import DataConfig, PairConfig, load_pair_atlas, terms
from airloc.training.relation_batches import GoalAugmentation, sample_batch

CPU = torch.device("cpu")
GRID = Grid(3, 3)
SIDE = GRID.size[0]
ONE, TWO = Scales(resolutions=(1.0,)), Scales(resolutions=(1.0, 0.75))
STILL = GoalAugmentation(shared_jitter=0.0, goal_jitter_probability=0.0, off_grid_probability=0.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pairs of one storm, one image of another without its partner."""
    place = tmp_path_factory.mktemp("pairs") / "xbd" / "images"
    place.mkdir(parents=True)
    for seed in range(2):
        for day, disaster in (("pre", None), ("post", "burnt")):
            area = generate(seed, (208, 216), disaster=disaster, regime="suburb")
            Image.fromarray(area.image).save(place / f"storm_{seed}_{day}_disaster.png")
    Image.fromarray(generate(9, (208, 208)).image).save(place / "flood_9_pre_disaster.png")
    return place


def read_pixels(folder: Path, name: str) -> np.ndarray:
    return np.asarray(Image.open(folder / name))


def test_a_pair_lies_on_itself(folder):
    atlas = load_pair_atlas(PairConfig(pairs=str(folder)), None, SIDE, CPU, ONE)
    assert atlas is not None
    cut = atlas.crop(torch.tensor([1]), torch.tensor([5]), torch.tensor([9]), SIDE)[0].numpy()
    for channels, day in ((slice(0, 3), "pre"), (slice(3, 6), "post")):
        whole = read_pixels(folder, f"storm_1_{day}_disaster.png")
        assert np.array_equal(cut[..., channels], whole[5 : 5 + SIDE, 9 : 9 + SIDE])


def test_scales_at_which_a_pair_is_too_small_are_left_out(folder):
    atlas = load_pair_atlas(PairConfig(pairs=str(folder)), None, SIDE, CPU, TWO)
    assert atlas is not None
    assert sorted(atlas.height.tolist()) == [156, 156, 208, 208]
    larger = load_pair_atlas(PairConfig(pairs=str(folder)), None, 200, CPU, TWO)
    assert larger is not None
    assert larger.height.tolist() == [208, 208]


def test_pairs_are_sampled_with_their_share_and_other_images_are_paired_with_themselves(folder):
    plain = Atlas.from_images([np.full((200, 200, 3), 7, dtype=np.uint8)], [1.0], CPU)
    pairs = load_pair_atlas(PairConfig(pairs=str(folder)), None, SIDE, CPU, TWO)
    assert pairs is not None
    torch.manual_seed(0)
    both = plain.with_pairs(pairs, 0.25)
    which, top, left = both.sample(4000, SIDE)
    assert abs((which > 0).float().mean() - 0.25) < 0.03
    cuts = both.crop(which[:200], top[:200], left[:200], SIDE)
    alike = (cuts[..., :3] == cuts[..., 3:]).flatten(1).all(dim=1)
    assert torch.equal(alike, which[:200] == 0)


def test_procedural_pairs_need_no_folder():
    atlas = load_pair_atlas(PairConfig(disaster_pairs=2), None, SIDE, CPU, ONE)
    assert atlas is not None
    assert atlas.pixels.shape[1] == 6
    assert len(atlas.first) == 2
    assert load_pair_atlas(PairConfig(), None, SIDE, CPU, TWO) is None


def test_patterns_select_pairs_and_terms_come_with_the_dataset(folder):
    one = load_pair_atlas(PairConfig(pairs=str(folder), pairs_only="storm_0*"), None, SIDE, CPU, ONE)
    assert one is not None
    assert len(one.first) == 1
    assert terms(DataConfig(), PairConfig()) == ""
    assert terms(DataConfig(), PairConfig(pairs=str(folder))) == "CC BY-NC-SA 4.0"


def test_bad_pairs_are_refused_with_a_cure(folder, tmp_path):
    with pytest.raises(AirlocError, match="nowhere"):
        load_pair_atlas(PairConfig(pairs=str(tmp_path / "nowhere")), None, SIDE, CPU, TWO)
    with pytest.raises(AirlocError, match=str(folder)):
        load_pair_atlas(PairConfig(pairs=str(folder), pairs_only="flood*"), None, SIDE, CPU, TWO)
    with pytest.raises(AirlocError, match="pairs_share = 1"):
        PairConfig(pairs_share=1.0)
    for day, side in (("pre", 200), ("post", 210)):
        Image.new("RGB", (side, side)).save(tmp_path / f"a_{day}_disaster.png")
    with pytest.raises(AirlocError, match=r"a_pre_disaster.*a_post_disaster"):
        load_pair_atlas(PairConfig(pairs=str(tmp_path)), None, SIDE, CPU, TWO)


def test_goals_of_a_pair_come_from_the_other_day(folder):
    pairs = load_pair_atlas(PairConfig(pairs=str(folder)), None, SIDE, CPU, TWO)
    assert pairs is not None
    torch.manual_seed(0)
    batch = sample_batch(pairs, GRID, 8, 3, STILL)
    seen = torch.stack([batch.glimpses[area, cells] for area, cells in enumerate(batch.cell)])
    goal_jitter = (seen - batch.goals).abs().flatten(2).mean(dim=2)
    assert (goal_jitter > 0.02).float().mean() > 0.9


def test_pairs_are_read_from_a_dataset_of_the_data_folder_by_name(tmp_path):
    (tmp_path / "naip").mkdir()
    for year, colour in ((2016, 50), (2018, 90)):
        Image.new("RGB", (200, 200), (colour,) * 3).save(tmp_path / "naip" / f"fresno_{year}_1.png")
    atlas = load_pair_atlas(PairConfig(pairs="naip"), tmp_path, SIDE, CPU, ONE)
    assert atlas is not None
    assert atlas.pixels.unique(dim=0).tolist() == [[50, 50, 50, 90, 90, 90]]
