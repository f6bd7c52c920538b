import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from airloc.areas.synthetic import generate
from airloc.cli import train as train_module
from airloc.cli.train import Train, _watch
from airloc.training.pipeline import PRESETS

TINY = (
    *("--segmenter-steps", 1, "--embedder-steps", 1, "--embedder-blocks", 1, "--areas", 1, "--seeds", 1),
    *("--episodes", 8, "--batch", 8, "--synthetic", 0),
)


@pytest.fixture
def asked(monkeypatch) -> list[Train]:
    """What `airloc train` would have trained, without training it."""
    options: list[Train] = []
    monkeypatch.setattr(train_module, "run", lambda given, command: options.append(given))
    return options


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    """A data folder with a picture to train on and one to validate on, both with masks."""
    root = tmp_path_factory.mktemp("world")
    (root / "images").mkdir()
    (root / "masks").mkdir()
    for seed in range(2):
        area = generate(seed, (280, 280), regime="suburb")
        Image.fromarray(area.image).save(root / "images" / f"{seed}.png")
        Image.fromarray(area.mask).save(root / "masks" / f"{seed}.png")
    (root / "windows.csv").write_text("image,mask,split\n0.png,0.png,train\n1.png,1.png,val\n")
    return root


def test_the_paper_is_the_preset_unless_another_is_named(airloc, asked):
    assert airloc("train").code == 0
    assert airloc("train", "airloc", "--preset", "fast").code == 0
    assert airloc("train", "--preset=large", "policy").code == 0
    assert [options.settings for options in asked] == [PRESETS["paper"], PRESETS["fast"], PRESETS["large"]]
    assert [options.stage for options in asked] == ["airloc", "airloc", "policy"]


def test_a_fold_may_be_left_out(airloc, asked):
    assert airloc("train", "segmenter", "--fold", 1, "--folds", 3).code == 0
    assert (asked[0].settings.data.fold, asked[0].settings.data.folds) == (1, 3)
    assert airloc("train", "segmenter", "--fold", 4).refused("no fold 4 among 4", "--folds")


def test_options_change_a_preset(airloc, asked, tmp_path):
    airloc("train", "embedder", "--seeds", 2, "--preset", "fast", "--root", tmp_path, "--out", tmp_path / "run")
    (options,) = asked
    assert (options.settings.seeds, options.settings.episodes) == (2, PRESETS["fast"].episodes)
    assert (options.settings.data.root, options.settings.data.synthetic) == (tmp_path, PRESETS["fast"].data.synthetic)
    assert (options.out, options.preset) == (tmp_path / "run", "fast")


@pytest.mark.parametrize("arguments", [("--preset", "slow"), ("--preset=slow",)])
def test_an_unknown_preset_is_refused(airloc, asked, arguments):
    assert airloc("train", *arguments).refused("'slow'", "paper, large, fast")
    assert asked == []


def test_help_names_stages_presets_and_options(airloc):
    outcome = airloc("train", "--help")
    assert outcome.code == 0
    for word in ("segmenter", "embedder", "policy", "paper, large or fast", "--root", "--seeds", "--no-residual"):
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
def test_flags_name_the_variant(airloc, asked, flags, name):
    assert airloc("train", *flags).code == 0
    assert asked[0].settings.variant.name == name


def test_a_variant_that_cannot_be_is_refused(airloc, asked):
    assert airloc("train", "--no-prior").refused("residual")
    assert asked == []


def test_the_checkpoint_is_of_the_variant_asked_for_and_can_be_evaluated(airloc, world, tmp_path):
    flags = ("--no-residual", "--no-sem-seg", "--priv")
    outcome = airloc("train", "airloc", "--root", world, *TINY, *flags, "--out", tmp_path / "run")
    assert outcome.code == 0, outcome
    agent = tmp_path / "run" / "agent"
    assert f"The agent: {agent}" in outcome.out
    config = json.loads((agent / "config.json").read_text())
    assert config["variant"] == {"residual": False, "prior": True, "sem_seg": False, "priv": True}
    lines = outcome.err.splitlines()
    assert ["embedder" in lines[0], "policy" in lines[1]] == [True, True]
    assert "val_success" in lines[1]
    assert f"--root {world}" in (agent / "card.md").read_text()
    assert airloc("evaluate", agent, "--areas", world / "images", "--json", tmp_path / "out.json").code == 0


def test_weights_from_xbd_carry_its_terms_and_say_them_when_used(airloc, tmp_path):
    """A fake of the published layout: the event trained on before and after it, and an event for testing."""
    images = tmp_path / "data" / "xbd" / "images"
    images.mkdir(parents=True)
    for n, name in enumerate(("michael_0_pre", "michael_1_pre", "michael_2_pre", "michael_0_post", "matthew_0_pre")):
        Image.fromarray(generate(n, (280, 280)).image).save(images / f"hurricane-{name}_disaster.png")
    asked = ("--sets", "xbd", "--weights", 1, "--only", "hurricane-michael_*_pre_disaster*", "--fold", 0, "--folds", 3)
    out = tmp_path / "run"
    done = airloc("train", "airloc", "--root", tmp_path / "data", *asked, "--segmenter", "airloc", *TINY, "--out", out)
    assert done.code == 0, done
    assert "segmenter " not in done.err
    card = (out / "agent" / "card.md").read_text()
    assert "Terms: CC BY-NC-SA 4.0, not the licence of airloc" in card
    assert "hurricane-michael_*_pre_disaster*" in card
    used = airloc("evaluate", out / "agent", "--areas", images)
    assert used.code == 0
    assert f"the weights of {out / 'agent'} are under CC BY-NC-SA 4.0" in used.err


def test_no_gpu_when_asked_for_one(airloc, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert airloc("train", "--device", "cuda", "--out", tmp_path / "run").refused("'cuda'", "--device cpu")
    assert not (tmp_path / "run").exists()


def test_pictures_without_masks_cannot_train_the_segmenter(airloc, tmp_path):
    Image.fromarray(np.zeros((200, 200, 3), dtype=np.uint8)).save(tmp_path / "a.png")
    outcome = airloc("train", "segmenter", "--root", tmp_path, *TINY, "--out", tmp_path / "run")
    assert outcome.refused("building mask", "--synthetic 500")


def test_a_data_folder_that_is_not_there_is_refused(airloc, tmp_path):
    outcome = airloc("train", "embedder", "--root", tmp_path / "none", *TINY, "--out", tmp_path / "run")
    assert outcome.refused(str(tmp_path / "none"))


def test_other_settings_in_the_same_folder_are_refused_by_the_field(airloc, world, tmp_path):
    arguments = ("train", "segmenter", "--root", world, *TINY, "--out", tmp_path / "run")
    assert airloc(*arguments).code == 0
    assert airloc(*arguments).code == 0
    assert airloc(*arguments, "--seed", 3).refused("seed = 0, and not with 3", "another folder")


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
    assert second.refused(f"Another process ({first.pid}) trains in", "choose another folder")


def test_figures_are_lines_on_the_error_stream_with_the_speed_of_policies(capsys):
    with _watch({"segmenter": 10, "embedder": 20, "policy": 128}, seeds=2) as say:
        say("segmenter", 10, {"loss": 0.5})
        say("embedder", 20, {"loss": 0.5, "val_accuracy": 0.25})
        say("policy", 64, {"val_success": 0.5})
        say("policy", 128, {"val_success": 0.75})
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 4
    assert [line.split()[2] for line in lines] == ["segmenter", "embedder", "policy", "policy"]
    assert "val_accuracy 0.2500" in lines[1]
    assert "episodes/s" in lines[3]
    assert "episodes/s" not in lines[2]
    assert "\x1b" not in err


def test_a_belief_searcher_is_trained_from_nothing_but_procedural_areas(airloc, tmp_path):
    tiny = ("--steps", 1, "--areas", 2, "--goals", 2, "--width", 2, "--synthetic", 2, "--validate-every", 1)
    ended = airloc("train", "belief", *tiny, "--out", tmp_path / "run")
    assert ended.code == 0
    assert str(tmp_path / "run" / "agent") in ended.out
    assert "relation" in ended.err
    scored = airloc("evaluate", tmp_path / "run" / "agent", "--json", tmp_path / "score.json")
    assert scored.code == 0
    again = airloc("train", "belief", *tiny, "--learning-rate", 0.5, "--out", tmp_path / "run")
    assert again.refused("rate = 0.003")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--steps", 0, "steps = 0"),
        ("--width", 0, "width = 0"),
        ("--areas", -1, "areas = -1"),
        ("--small", 1.0, "share"),
    ],
)
def test_a_belief_searcher_that_cannot_be_trained_is_refused_before_anything_is_written(
    airloc, tmp_path, option: str, value: float, said: str
):
    assert airloc("train", "belief", option, value, "--synthetic", 2, "--out", tmp_path / "run").refused(said)
    assert not (tmp_path / "run").exists()
