import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.agents.registry import make_agent, weight_hashes
from airloc.areas.synthetic import generate
from airloc.cli import train as train_module
from airloc.cli.train import Train, _progress
from airloc.training import data as data_module
from airloc.training.pipeline import PRESETS

pytestmark = pytest.mark.long

TINY = (
    *("--segmenter-steps", 1, "--embedder-steps", 1, "--embedder-pairs", 4, "--areas", 1, "--seeds", 1),
    *("--episodes", 8, "--batch", 8, "--synthetic", 0),
)


@pytest.fixture
def calls(monkeypatch) -> list[Train]:
    """Options that `airloc train` is called with, without training."""
    options: list[Train] = []
    monkeypatch.setattr(train_module, "run", lambda given, command: options.append(given))
    return options


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    """A data folder with one image for training and one for validation, both with masks."""
    root = tmp_path_factory.mktemp("world")
    (root / "images").mkdir()
    (root / "masks").mkdir()
    for seed in range(2):
        area = generate(seed, (280, 280), regime="suburb")
        Image.fromarray(area.image).save(root / "images" / f"{seed}.png")
        Image.fromarray(area.mask).save(root / "masks" / f"{seed}.png")
    (root / "windows.csv").write_text("image,mask,split\n0.png,0.png,train\n1.png,1.png,val\n")
    return root


def test_the_paper_is_the_preset_unless_another_is_named(airloc, calls):
    assert airloc("train").code == 0
    assert airloc("train", "airloc", "--preset", "fast").code == 0
    assert airloc("train", "--preset=tuned", "policy").code == 0
    assert [options.settings for options in calls] == [PRESETS["paper"], PRESETS["fast"], PRESETS["tuned"]]
    assert [options.stage for options in calls] == ["airloc", "airloc", "policy"]


def test_a_fold_may_be_left_out(airloc, calls):
    assert airloc("train", "segmenter", "--fold", 1, "--folds", 3).code == 0
    assert (calls[0].settings.data.fold, calls[0].settings.data.folds) == (1, 3)
    assert airloc("train", "segmenter", "--fold", 4).refused("fold 4 of 4", "--folds")


def test_options_change_a_preset(airloc, calls, tmp_path):
    airloc("train", "embedder", "--seeds", 2, "--preset", "fast", "--root", tmp_path, "--out", tmp_path / "run")
    (options,) = calls
    assert (options.settings.seeds, options.settings.episodes) == (2, PRESETS["fast"].episodes)
    assert (options.settings.data.root, options.settings.data.synthetic) == (tmp_path, PRESETS["fast"].data.synthetic)
    assert (options.out, options.preset) == (tmp_path / "run", "fast")


@pytest.mark.parametrize("arguments", [("--preset", "slow"), ("--preset=slow",)])
def test_an_unknown_preset_is_refused(airloc, calls, arguments):
    assert airloc("train", *arguments).refused("'slow'", "paper, tuned, fast")
    assert calls == []


def test_help_names_stages_presets_and_options(airloc):
    outcome = airloc("train", "--help")
    assert outcome.code == 0
    for word in ("segmenter", "embedder", "policy", "tuned", "--root", "--seeds", "--no-residual"):
        assert word in outcome.out


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ((), "airloc"),
        (("--no-residual",), "airloc-no-residual"),
        (("--no-residual", "--no-prior", "--priv"), "airloc-no-prior-priv"),
        (("--no-sem-seg", "--priv"), "airloc-no-sem-seg-priv"),
    ],
)
def test_flags_name_the_variant(airloc, calls, flags, name):
    assert airloc("train", *flags).code == 0
    assert calls[0].settings.variant.name == name


def test_a_variant_that_cannot_be_is_refused(airloc, calls):
    assert airloc("train", "--no-prior").refused("residual")
    assert calls == []


def test_the_checkpoint_has_the_variant_of_the_flags_and_can_be_evaluated(airloc, world, tmp_path):
    flags = ("--no-residual", "--no-sem-seg", "--priv")
    outcome = airloc("train", "airloc", "--root", world, *TINY, *flags, "--out", tmp_path / "run")
    assert outcome.code == 0, outcome
    agent = tmp_path / "run" / "agent"
    assert f"The agent: {agent}" in outcome.out
    config = json.loads((agent / "config.json").read_text())
    assert config["variant"] == {"residual": False, "prior": True, "sem_seg": False, "priv": True}
    lines = outcome.err.splitlines()
    metrics = [line for line in lines if "val_" in line]
    assert ["embedder" in metrics[0], "policy" in metrics[1]] == [True, True]
    assert "val_success" in metrics[1]
    assert any(str(world) in line and "1 images" in line for line in lines[:2]), "the start is not silent"
    assert any("4 areas" in line for line in lines), "nor is the computation of features"
    assert f"--root {world}" in (agent / "card.md").read_text()
    assert airloc("evaluate", agent, "--areas", world / "images", "--json", tmp_path / "out.json").code == 0


def test_the_config_and_the_reward_function_of_a_training_are_fed_back(airloc, world, tmp_path, monkeypatch):
    (tmp_path / "rewards_to_train_with.py").write_text(
        "def closer(found, before, after):\n    return 3 * found + before - after\n"
    )
    monkeypatch.chdir(tmp_path)
    first, again, plain = (tmp_path / name for name in ("first", "again", "plain"))
    given = ("--root", world, *TINY, "--no-sem-seg", "--seed", 3)
    assert airloc("train", "airloc", *given, "--reward", "rewards_to_train_with:closer", "--out", first).code == 0
    fed = airloc("train", "--config", first / "config.json", "--out", again)
    assert fed.code == 0, fed
    assert (again / "config.json").read_bytes() == (first / "config.json").read_bytes()
    hashes = [weight_hashes(str(folder / "agent")) for folder in (first, again)]
    assert hashes[0] == hashes[1]
    assert airloc("train", "--config", first / "config.json", "--reward", "", "--out", plain).code == 0
    losses = [json.loads((folder / "policy" / "metrics.jsonl").read_text())["loss"] for folder in (first, again, plain)]
    assert losses[0] == losses[1] != losses[2]


def test_bad_configs_and_rewards_are_refused_before_anything_is_written(airloc, tmp_path):
    out = tmp_path / "run"
    assert airloc("train", "--config", tmp_path / "none.json", "--out", out).refused("none.json")
    assert airloc("train", "belief", "--config", tmp_path / "none.json", "--out", out).refused("none.json")
    assert airloc("train", "--config", tmp_path / "none.json", "--preset", "fast", "--out", out).refused("--preset")
    assert airloc("train", "--reward", "nowhere:reward", "--out", out).refused("nowhere:reward")
    assert not out.exists()


def test_weights_from_xbd_carry_its_terms_and_say_them_when_used(airloc, tmp_path):
    """A fake of the published layout: the event trained on before and after it, and an event for testing."""
    images = tmp_path / "data" / "xbd" / "images"
    images.mkdir(parents=True)
    for n, name in enumerate(("michael_0_pre", "michael_1_pre", "michael_2_pre", "michael_0_post", "matthew_0_pre")):
        Image.fromarray(generate(n, (280, 280)).image).save(images / f"hurricane-{name}_disaster.png")
    data = ("--root", tmp_path / "data", "--datasets", "xbd", "--weights", 1, "--fold", 0, "--folds", 3)
    only, out = ("--only", "hurricane-michael_*_pre_disaster*"), tmp_path / "run"
    done = airloc("train", "airloc", *data, *only, "--segmenter", "airloc", "--unet", "light", *TINY, "--out", out)
    assert done.code == 0, done
    assert "segmenter " not in done.err
    card = (out / "agent" / "card.md").read_text()
    assert "CC BY-NC-SA 4.0" in card
    assert "hurricane-michael_*_pre_disaster*" in card
    used = airloc("evaluate", out / "agent", "--areas", images)
    assert used.code == 0
    assert str(out / "agent") in used.err
    assert "CC BY-NC-SA 4.0" in used.err


def test_a_gpu_that_is_not_there_is_refused(airloc, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert airloc("train", "--device", "cuda", "--out", tmp_path / "run").refused("'cuda'", "--device cpu")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("stage", ["airloc", "belief", "locator"])
def test_a_training_without_a_data_folder_needs_procedural_areas_as_its_help_says(airloc, tmp_path, stage):
    shown = " ".join(airloc("train", stage, "--help").out.replace("│", " ").split())
    assert "without it only the procedural areas of --synthetic are used, and there must be some" in shown
    assert airloc("train", stage, "--out", tmp_path / "run").refused("--synthetic 500")
    assert not (tmp_path / "run").exists()


def test_images_without_masks_cannot_train_the_segmenter(airloc, tmp_path):
    Image.fromarray(np.zeros((200, 200, 3), dtype=np.uint8)).save(tmp_path / "a.png")
    outcome = airloc("train", "segmenter", "--root", tmp_path, *TINY, "--out", tmp_path / "run")
    assert outcome.refused("--synthetic 500")


@pytest.mark.parametrize("stage", ["segmenter", "embedder", "airloc", "belief"])
def test_a_data_folder_that_is_not_there_is_refused_and_leaves_no_run_folder(airloc, tmp_path, stage):
    root = tmp_path / "none"
    assert airloc("train", stage, "--root", root, "--out", tmp_path / "run").refused(str(root))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("stage", ["embedder", "belief"])
def test_data_without_images_leaves_no_run_folder(airloc, tmp_path, stage):
    options = ("--no-sem-seg",) if stage == "embedder" else ("--steps", 1)
    outcome = airloc("train", stage, "--synthetic", 0, *options, "--out", tmp_path / "run")
    assert outcome.refused("--synthetic")
    assert not (tmp_path / "run").exists()


def test_other_settings_in_the_same_folder_are_refused_by_the_field(airloc, world, tmp_path):
    arguments = ("train", "segmenter", "--root", world, *TINY, "--out", tmp_path / "run")
    assert airloc(*arguments).code == 0
    assert airloc(*arguments).code == 0
    assert airloc(*arguments, "--seed", 3).refused("seed = 0", "3")


def test_a_second_run_into_one_folder_is_refused(airloc, world, tmp_path):
    arguments = ["train", "segmenter", "--root", world, *TINY, "--segmenter-steps", 10_000, "--out", tmp_path / "run"]
    command = [sys.executable, "-m", "airloc.cli.main", *map(str, arguments)]
    lock = tmp_path / "run" / "segmenter" / "lock"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"}) as first:
        try:
            until = time.monotonic() + 60
            while not (lock.exists() and lock.read_text()):
                assert first.poll() is None
                assert time.monotonic() < until
                time.sleep(0.05)
            second = airloc(*arguments)
        finally:
            first.send_signal(signal.SIGKILL)
    assert second.refused(str(first.pid), str(tmp_path / "run"))


def test_metrics_are_lines_on_the_error_stream_with_the_speed_of_policies(capsys):
    with _progress({"segmenter": 10, "embedder": 20, "policy": 128}, seeds=2) as on_step:
        on_step("segmenter", 10, {"loss": 0.5})
        on_step("embedder", 20, {"loss": 0.5, "val_accuracy": 0.25})
        on_step("policy", 64, {"val_success": 0.5})
        on_step("policy", 128, {"val_success": 0.75})
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 4
    assert [line.split()[2] for line in lines] == ["segmenter", "embedder", "policy", "policy"]
    assert "val_accuracy 0.2500" in lines[1]
    assert "episodes/s" in lines[3]
    assert "episodes/s" not in lines[2]
    assert "\x1b" not in err


def test_a_belief_agent_is_trained_from_procedural_areas_alone(airloc, tmp_path, monkeypatch):
    monkeypatch.setattr(data_module, "VALIDATION_COUNT", 2)
    data_module._procedural_validation_areas.cache_clear()
    tiny = ("--steps", 1, "--areas", 2, "--goals", 2, "--width", 2, "--synthetic", 2, "--validate-every", 1)
    finished = airloc("train", "belief", *tiny, "--out", tmp_path / "run")
    data_module._procedural_validation_areas.cache_clear()
    assert finished.code == 0, finished
    assert str(tmp_path / "run" / "agent") in finished.out
    assert "relation" in finished.err
    assert "2 procedural areas" in finished.err, "the start is not silent"
    assert make_agent(str(tmp_path / "run" / "agent")).network.width == 2
    again = airloc("train", "belief", *tiny, "--learning-rate", 0.5, "--out", tmp_path / "run")
    assert again.refused("learning_rate = 0.003")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("steps", 0),
        ("width", 0),
        ("width", 1_000_000),
        ("areas", -1),
        ("small-share", 1.0),
        ("learning-rate", "nan"),
        ("learning-rate", -1.0),
        ("weight-decay", "nan"),
        ("weight-decay", -0.5),
        ("goal-jitter-probability", "nan"),
        ("off-grid-probability", -0.5),
        ("shared-jitter", 2.0),
        ("turn", "inf"),
        ("pairs-share", 1.0),
        ("disaster-pairs", -1),
    ],
)
def test_invalid_settings_of_belief_are_refused_before_anything_is_written(airloc, tmp_path, option, value):
    outcome = airloc("train", "belief", f"--{option}={value}", "--synthetic", 2, "--out", tmp_path / "run")
    assert outcome.refused(f"{option.replace('-', '_')} = {value}", f"--{option}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("learning-rate", "nan"),
        ("learning-rate", -1.0),
        ("table-bytes", -1),
        ("segmenter-steps", 0),
        ("embedder-blocks", 0),
        ("synthetic-weight", "nan"),
    ],
)
def test_invalid_settings_of_airloc_are_refused_before_anything_is_written(airloc, tmp_path, option, value):
    outcome = airloc("train", "airloc", f"--{option}={value}", "--out", tmp_path / "run")
    assert outcome.refused(f"{option.replace('-', '_')} = {value}", f"--{option}")
    assert not (tmp_path / "run").exists()


def draw_ground(seed: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Bright buildings on dark noise, and their mask."""
    chance = np.random.default_rng(seed)
    mask = chance.random((side // 20, side // 20)).repeat(20, axis=0).repeat(20, axis=1) < 0.3
    return (np.where(mask, 200, 60)[..., None] + chance.integers(0, 40, (side, side, 3))).astype(np.uint8), mask


def save(pixels: np.ndarray, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def write_masa(root: Path) -> None:
    """A tile of four pieces of 500 m, with labels, as `airloc data fetch masa` writes them."""
    image, mask = draw_ground(0, 1000)
    save(image, root / "train" / "22670_15.tiff")
    save(mask, root / "train_labels" / "22670_15.tif")


def write_dubai(root: Path) -> None:
    """Two scenes, each with an image and its class mask."""
    for number in (1, 2):
        image, mask = draw_ground(number, 520)
        save(image, root / f"Tile {number}" / "images" / "image_part_001.jpg")
        classes = np.where(mask[..., None], (0x3C, 0x10, 0x98), (0, 0, 0)).astype(np.uint8)
        save(classes, root / f"Tile {number}" / "masks" / "image_part_001.png")


def write_xbd(root: Path) -> None:
    """Two images of hurricane Michael before the event, with the outline of a building."""
    square = {"properties": {"feature_type": "building"}, "wkt": "POLYGON ((20 20, 90 20, 90 90, 20 90, 20 20))"}
    labels = {"metadata": {"width": 300, "height": 300}, "features": {"xy": [square]}}
    for number in range(2):
        name = f"hurricane-michael_0000000{number}_pre_disaster"
        save(draw_ground(number, 300)[0], root / "tier1" / "images" / f"{name}.png")
        (root / "tier1" / "labels").mkdir(exist_ok=True)
        (root / "tier1" / "labels" / f"{name}.json").write_text(json.dumps(labels))


@pytest.mark.parametrize(
    ("name", "write", "options", "images"),
    [
        ("masa", write_masa, (), ["2", "1"]),
        ("dubai", write_dubai, ("--split", "test"), ["2"]),
        ("xbd", write_xbd, (), ["2"]),
    ],
)
def test_published_layouts_are_trained_on_with_their_masks_and_splits(
    airloc, name: str, write, options: tuple[str, ...], images: list[str], tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(data_module, "VALIDATION_COUNT", 2)
    write(tmp_path / name)
    trained = airloc("train", "embedder", "--root", tmp_path / name, *TINY, *options, "--out", tmp_path / "run")
    assert trained.code == 0, trained
    assert re.findall(rf"Reading (\d+) images of {tmp_path / name}", trained.err)[: len(images)] == images
    assert (tmp_path / "run" / "segmenter" / "state.pt").is_file(), "the segmentation unit needs the masks"
