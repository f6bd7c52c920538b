"""Image pairs: the same places on two days, real and procedural."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.photos import MARGIN
from airloc.training.atlas import CropSampler, Imagery, Scales
from airloc.training.data import DataConfig, PairConfig, load_imagery, terms
from airloc.training.photos import PhotoAugmentation
from airloc.training.relation_batches import GoalAugmentation, sample_batch

CPU = torch.device("cpu")
GRID = Grid(3, 3)
SIDE = GRID.size[0]
NONE = DataConfig(synthetic=0)
ONE, TWO = Scales(resolutions=(1.0,)), Scales(resolutions=(1.0, 0.75))
EXACT = GoalAugmentation(exact_probability=1.0, shared_jitter=0.0)


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


def load_pairs(folder: Path, scales: Scales, **settings) -> Imagery:
    return load_imagery(NONE, PairConfig(pairs=(str(folder),), **settings), CPU, scales)


def stored(imagery: Imagery, number: int) -> np.ndarray:
    """Return both days of a pair, (H, W, 6)."""
    height, width = imagery.size[:, number].tolist()
    first = int(imagery.first[number])
    return imagery.pixels[first : first + height * width].view(height, width, 6).numpy()


def test_a_pair_lies_on_itself(folder):
    pair = stored(load_pairs(folder, ONE), 1)
    for channels, day in ((slice(0, 3), "pre"), (slice(3, 6), "post")):
        assert np.array_equal(pair[..., channels], read_pixels(folder, f"storm_1_{day}_disaster.png"))


def test_crops_of_a_pair_show_the_same_ground_on_both_days(folder):
    """The second day is the first one in other colours."""
    torch.manual_seed(0)
    crops = CropSampler(load_pairs(folder, TWO), SIDE, MARGIN).draw(torch.zeros(8))[0]
    first, second = (day.mean(dim=1).flatten(1) for day in (crops[:, :3], crops[:, 3:]))
    moved = crops[:, 3:].mean(dim=1).roll(6, dims=2).flatten(1)
    alike, otherwise = (
        torch.tensor([float(torch.corrcoef(torch.stack(pair))[0, 1]) for pair in zip(first, other, strict=True)])
        for other in (second, moved)
    )
    assert (alike > otherwise).all()


def test_crops_are_never_coarser_than_the_scales_or_the_image_allow(folder):
    imagery = load_pairs(folder, TWO)
    assert imagery.steps.tolist() == [[1.0, 1.0], pytest.approx([1 / 0.75] * 2)]
    assert imagery.largest_steps(SIDE, 0).tolist() == pytest.approx([1 / 0.75] * 2)
    assert imagery.largest_steps(200, 0).tolist() == pytest.approx([208 / 200] * 2)
    assert imagery.fits(208, 0)
    assert not imagery.fits(209, 0)


def test_finer_images_are_reduced_first(tmp_path):
    """Images of 0.5 m per pixel, of which no crop shows more than 50 / 52 m per pixel."""
    (tmp_path / "masa" / "images").mkdir(parents=True)
    image = generate(3, (400, 400)).image
    Image.fromarray(image).save(tmp_path / "masa" / "images" / "a.png")
    (tmp_path / "masa" / "windows.csv").write_text("image,side_m\na.png,200\n")
    imagery = load_imagery(DataConfig(root=tmp_path, synthetic=0), PairConfig(), CPU, Scales(cell_widths=(0.5, 1.5)))
    assert imagery.size.tolist() == [[208], [208]]
    assert imagery.steps.flatten().tolist() == pytest.approx([1.0, 3.0])
    reduced = np.asarray(Image.fromarray(image).resize((208, 208), Image.Resampling.LANCZOS))
    assert np.array_equal(stored(imagery, 0), np.concatenate([reduced, reduced], axis=2))


def test_pairs_are_sampled_with_their_share_and_other_images_are_paired_with_themselves(folder, tmp_path):
    for name in ("a", "b", "c"):
        Image.new("RGB", (200, 200), (7, 7, 7)).save(tmp_path / f"{name}.png")
    pairs = PairConfig(pairs=(str(folder),), pairs_share=0.25)
    imagery = load_imagery(DataConfig(root=tmp_path, synthetic=0), pairs, CPU, TWO)
    assert imagery.weights.tolist() == pytest.approx([0.25, 0.25, 0.25, 0.125, 0.125])
    torch.manual_seed(0)
    crops = CropSampler(imagery, SIDE, 0).draw(torch.zeros(200))[0]
    plain = (crops * 255 == 7).flatten(1).all(dim=1)
    assert float(plain.float().mean()) == pytest.approx(0.75, abs=0.08)
    alike = (crops[:, :3] == crops[:, 3:]).flatten(1).all(dim=1)
    assert torch.equal(alike, plain)


def test_datasets_are_sampled_by_weight_and_their_images_by_ground(tmp_path):
    for name, side, colour in (("masa", 200, 1), ("naip", 200, 2), ("naip", 400, 3)):
        (tmp_path / name).mkdir(exist_ok=True)
        Image.new("RGB", (side, side), (colour,) * 3).save(tmp_path / name / f"{colour}.png")
    data = DataConfig(root=tmp_path, datasets=("masa", "naip"), weights=(3.0, 1.0), synthetic=0)
    imagery = load_imagery(data, PairConfig(), CPU, TWO)
    shares = dict(zip(imagery.pixels[imagery.first, 0].tolist(), imagery.weights.tolist(), strict=True))
    assert shares == pytest.approx({1: 0.75, 2: 0.05, 3: 0.2})
    weightless = DataConfig(root=tmp_path, datasets=("masa", "naip"), weights=(0.0, 0.0), synthetic=0)
    for nothing in (NONE, weightless):
        with pytest.raises(AirlocError, match=r"no images.*--root"):
            load_imagery(nothing, PairConfig(), CPU, TWO)


def test_procedural_pairs_need_no_folder():
    imagery = load_imagery(NONE, PairConfig(disaster_pairs=2), CPU, ONE)
    assert imagery.pixels.shape[1] == 6
    assert len(imagery.first) == 2
    assert not np.array_equal(*np.split(stored(imagery, 0), 2, axis=2))


def test_patterns_select_pairs_and_terms_come_with_the_dataset(folder):
    assert len(load_pairs(folder, ONE, pairs_only=("storm_0*",)).first) == 1
    assert terms(DataConfig(), PairConfig()) == ""
    assert terms(DataConfig(), PairConfig(pairs=(str(folder),))) == "CC BY-NC-SA 4.0"


def test_bad_pairs_are_refused_with_a_cure(folder, tmp_path):
    with pytest.raises(AirlocError, match="nowhere"):
        load_pairs(tmp_path / "nowhere", TWO)
    with pytest.raises(AirlocError, match=str(folder)):
        load_pairs(folder, TWO, pairs_only=("flood*",))
    with pytest.raises(AirlocError, match="pairs_share = 1"):
        PairConfig(pairs_share=1.0)
    for day, side in (("pre", 200), ("post", 210)):
        Image.new("RGB", (side, side)).save(tmp_path / f"a_{day}_disaster.png")
    with pytest.raises(AirlocError, match=r"a_pre_disaster.*a_post_disaster"):
        load_pairs(tmp_path, TWO)


def test_goals_of_a_pair_come_from_the_other_day(folder):
    """Even in areas that are not augmented."""
    torch.manual_seed(0)
    crops = CropSampler(load_pairs(folder, TWO), SIDE, MARGIN)
    batch = sample_batch(crops, GRID, torch.arange(9).expand(8, -1), 3, EXACT, PhotoAugmentation())
    seen = torch.stack([batch.glimpses[area, cells] for area, cells in enumerate(batch.cell)])
    difference = (seen - batch.goals).abs().flatten(2).mean(dim=2)
    assert (difference > 0.02).float().mean() > 0.9


def test_pairs_are_read_from_a_dataset_of_the_data_folder_by_name(tmp_path):
    (tmp_path / "naip").mkdir()
    for year, colour in ((2016, 50), (2018, 90)):
        Image.new("RGB", (200, 200), (colour,) * 3).save(tmp_path / "naip" / f"fresno_{year}_1.png")
    data = DataConfig(root=tmp_path, datasets=("naip",), weights=(1.0,), synthetic=0)
    imagery = load_imagery(data, PairConfig(pairs=("naip",), pairs_share=0.5), CPU, ONE)
    assert np.unique(stored(imagery, 2).reshape(-1, 6), axis=0).tolist() == [[50, 50, 50, 90, 90, 90]]
    assert imagery.weights.tolist() == pytest.approx([0.25, 0.25, 0.5])


def test_the_pairs_of_years_of_a_place_have_one_number(tmp_path):
    (tmp_path / "naip").mkdir()
    for year, number in product((2016, 2018, 2020), (1, 2)):
        Image.new("RGB", (200, 200), (year % 100,) * 3).save(tmp_path / "naip" / f"fresno_{year}_{number}.png")
    data = DataConfig(root=tmp_path, datasets=("naip",), weights=(1.0,), synthetic=0)
    places = load_imagery(data, PairConfig(pairs=("naip",), disaster_pairs=2), CPU, ONE).place.tolist()
    assert len({*places[:6]}) == 6, "single images"
    assert len({*places[6:9]}) == len({*places[9:12]}) == 1
    assert len({*places}) == 6 + 2 + 2


def test_pairs_of_several_datasets_have_the_weights_of_their_datasets(folder):
    twice = PairConfig(
        pairs=(str(folder),) * 2,
        pairs_only=("*", "storm_0*"),
        pairs_weights=(1.0, 3.0),
        disaster_pairs=1,
        pairs_share=0.6,
    )
    weights = load_imagery(DataConfig(synthetic=1), twice, CPU, ONE).weights.tolist()
    assert weights == pytest.approx([0.4, 0.1, 0.1, 0.3, 0.1])


def test_patterns_and_weights_of_pairs_go_with_their_datasets():
    with pytest.raises(AirlocError, match=r"--pairs-only differ in number: 2 and 1.*or none"):
        PairConfig(pairs=("naip", "xbd"), pairs_only=("a*",))
    with pytest.raises(AirlocError, match=r"--pairs-weights differ in number: 1 and 2"):
        PairConfig(pairs=("naip",), pairs_weights=(1.0, 2.0))
