import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from airloc.agents.policy import Variant
from airloc.agents.pretrained import load_units, share_vision
from airloc.agents.registry import make_agent
from airloc.errors import AirlocError
from airloc.training import data as data_module
from airloc.training import embedder, reinforce, segmenter
from airloc.training.data import DataConfig
from airloc.training.embedder import EmbedderConfig
from airloc.training.pipeline import PRESETS, AirlocConfig, train_stages
from airloc.training.reinforce import PolicyConfig
from airloc.training.segmenter import SegmenterConfig
from airloc.vision.embedder import Layers
from airloc.vision.position import PositionEncoding

pytestmark = pytest.mark.long

TINY = replace(
    PRESETS["tuned"],
    segmenter_steps=1,
    embedder_steps=2,
    embedder_blocks=1,
    areas=1,
    episodes=32,
    batch=8,
    validate_every=2,
    seeds=3,
)


PAPER_LAYERS = Layers(batch_norm=False, branches="paper", unet="paper", mask="binary")
STAGES = ("segmenter", "embedder", "policy")


class KilledError(Exception):
    """Stands for a kill."""


def silent(stage, done, metrics):
    del stage, done, metrics


def train(folder: Path, config: AirlocConfig, until="airloc", on_step=silent) -> None:
    train_stages(folder, config, until, device=torch.device("cpu"), command="airloc train airloc", on_step=on_step)


@pytest.fixture(scope="module")
def config(world) -> AirlocConfig:
    return replace(TINY, data=DataConfig(root=world, synthetic=0))


@pytest.fixture(scope="module")
def whole(config, tmp_path_factory) -> Path:
    """The folder of a whole training."""
    folder = tmp_path_factory.mktemp("whole")
    train(folder, config)
    return folder


def weights(folder: Path) -> bytes:
    return (folder / "agent" / "weights.safetensors").read_bytes()


def test_it_gives_an_agent_that_can_be_evaluated(whole, airloc, world, tmp_path):
    arguments = ("--areas", world / "masa" / "images", "--episodes", "per-distance", "--json", tmp_path / "out.json")
    outcome = airloc("evaluate", whole / "agent", *arguments)
    assert outcome.code == 0, outcome
    record = json.loads((tmp_path / "out.json").read_text())
    assert record["episodes"] == 12
    units = load_units(whole / "agent")
    assert units.config["grid"] == "5x5"
    assert units.policy.variant == Variant()


def stored(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor after a checkpoint, which keeps half precision."""
    return tensor.half().float()


def test_the_agent_is_the_median_policy_with_the_trained_encoder(whole, config):
    units = load_units(whole / "agent")
    state = torch.load(whole / "policy" / "state.pt", weights_only=True)["state"]
    median = sorted(range(3), key=lambda k: (float(state["success"][k]), k))[1]
    assert torch.equal(units.policy.read[0], stored(state["best"]["read"][median]))
    encoder = torch.load(whole / "embedder" / "state.pt", weights_only=True)["state"]["learner"]
    assert torch.equal(units.encoder.embedder.join.weight, stored(encoder["network.join.weight"]))
    unet = torch.load(whole / "segmenter" / "state.pt", weights_only=True)["state"]["learner"]
    assert torch.equal(units.encoder.segmenter.leave.weight, stored(unet["network.leave.weight"]))
    card = (whole / "agent" / "card.md").read_text()
    assert "`airloc train airloc`" in card
    assert "this is the median one" in card


def test_a_second_time_nothing_is_trained_or_read(whole, config, monkeypatch):
    before = weights(whole)
    for module in (segmenter, embedder, reinforce):
        monkeypatch.setattr(module, "load_atlas", None)
        monkeypatch.setattr(module, "validation_areas", None)
    logged = []
    train(whole, config, on_step=lambda *step: logged.append(step))
    assert logged == []
    assert weights(whole) == before


def test_trained_stage_by_stage_and_killed_in_each_it_resumes_to_the_same_agent(whole, config, tmp_path):
    def kill(stage, done, metrics):
        raise KilledError

    for stage in STAGES:
        assert not (tmp_path / stage).exists()
        with pytest.raises(KilledError):
            train(tmp_path, config, on_step=kill)
        torch.manual_seed(77)
        assert not (tmp_path / "agent").exists()
        train(tmp_path, config, until=stage)
    train(tmp_path, config)
    assert weights(tmp_path) == weights(whole)


def test_tables_on_disk_lead_to_the_same_agent(whole, config, tmp_path):
    for done in ("segmenter", "embedder"):
        shutil.copytree(whole / done, tmp_path / done)
    train(tmp_path, replace(config, table_bytes=0))
    assert weights(tmp_path) == weights(whole)
    assert list((tmp_path / "policy").glob(".airloc-*")) == []


def test_a_segmentation_unit_may_be_taken_from_another_agent_and_stays_as_it_is(whole, config, tmp_path):
    logged = []
    settings = replace(config, seed=5, segmenter=str(whole / "agent"))
    train(tmp_path, settings, on_step=lambda stage, *_: logged.append(stage))
    assert set(logged) == {"embedder", "policy"}
    assert not (tmp_path / "segmenter").exists()
    before, after = (load_units(folder / "agent").encoder for folder in (whole, tmp_path))
    for one, other in zip(*(encoder.segmenter.state_dict().values() for encoder in (before, after)), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(before.embedder.join.weight, after.embedder.join.weight)
    with pytest.raises(AirlocError, match="segmenter = "):
        train(tmp_path, replace(settings, segmenter="airloc"))


def test_the_shipped_segmentation_unit_is_taken_by_name(config, tmp_path):
    train(tmp_path, replace(config, segmenter="airloc"), until="embedder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "embedder"]


def test_a_segmentation_unit_that_cannot_be_taken_is_refused(whole, config, tmp_path):
    with pytest.raises(AirlocError, match="'airloc-no-sem-seg'"):
        train(tmp_path, replace(config, segmenter="airloc-no-sem-seg"))
    with pytest.raises(AirlocError, match="'no/where'"):
        train(tmp_path, replace(config, segmenter="no/where"))
    for settings, until in ((config, "segmenter"), (replace(config, variant=Variant(sem_seg=False)), "airloc")):
        with pytest.raises(AirlocError, match="--segmenter"):
            train(tmp_path, replace(settings, segmenter="airloc"), until=until)
    assert list(tmp_path.iterdir()) == []


def test_an_embedder_can_start_with_that_of_another_agent(whole, config, tmp_path):
    settings = replace(config, init_from=str(whole / "agent"), embedder_learning_rate=1e-9, rescale=False, seed=5)
    train(tmp_path, settings)
    before, after = (load_units(folder / "agent").encoder.embedder for folder in (whole, tmp_path))
    torch.testing.assert_close(after.join.weight, before.join.weight)
    assert "Initial embedder" in (tmp_path / "agent" / "card.md").read_text()


def test_an_initial_embedder_that_does_not_fit_is_refused(config, tmp_path):
    for settings, until in ((config, "segmenter"), (replace(config, layers=Layers(batch_norm=False)), "embedder")):
        with pytest.raises(AirlocError, match="--init-from"):
            train(tmp_path, replace(settings, init_from="airloc"), until=until)
    with pytest.raises(AirlocError, match="--init-from"):
        train(tmp_path, replace(config, init_from="airloc-no-sem-seg"), until="embedder")
    assert not list(tmp_path.iterdir())


def test_without_any_images_it_trains_on_procedural_areas(tmp_path, monkeypatch):
    monkeypatch.setattr(data_module, "VALIDATION_COUNT", 1)
    data_module._procedural_validation_areas.cache_clear()
    logged = []
    config = replace(TINY, data=DataConfig(synthetic=2), variant=Variant(sem_seg=False, priv=True), seeds=1)
    train(tmp_path, config, on_step=lambda stage, done, metrics: logged.append((stage, done)))
    data_module._procedural_validation_areas.cache_clear()
    assert logged == [("embedder", 1), ("embedder", 2), ("policy", 16), ("policy", 32)]
    assert load_units(tmp_path / "agent").policy.variant.name == "airloc-no-sem-seg-priv"
    assert not (tmp_path / "segmenter").exists()


def test_the_seed_decides_the_weights_from_the_first_on(config, tmp_path):
    first, other = (replace(config, seed=seed) for seed in (0, 1))
    begun = []
    for name, settings in (("a", first), ("b", first), ("c", other)):
        torch.manual_seed(len(begun))
        train(tmp_path / name, settings, until="segmenter")
        state = torch.load(tmp_path / name / "segmenter" / "state.pt", weights_only=True)["state"]
        begun.append(state["learner"]["network.leave.weight"])
    assert torch.equal(begun[0], begun[1])
    assert not torch.equal(begun[0], begun[2])


def test_other_settings_in_the_same_folder_are_refused_by_the_field(whole, config):
    with pytest.raises(AirlocError, match="blocks = 1"):
        train(whole, replace(config, embedder_blocks=2))
    with pytest.raises(AirlocError, match="seeds = 3"):
        train(whole, replace(config, seeds=5))


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        ({"episodes": 1}, "--episodes"),
        ({"segmenter_steps": 0}, "segmenter_steps = 0"),
        ({"embedder_steps": 0}, "embedder_steps = 0"),
        ({"embedder_blocks": -3}, "embedder_blocks = -3"),
        ({"seeds": 0}, "seeds = 0"),
        ({"learning_rate": math.nan}, "learning_rate = nan"),
        ({"table_bytes": -1}, "table_bytes = -1"),
        ({"data": DataConfig(root=Path("/no/such/folder"))}, "/no/such/folder"),
    ],
)
def test_invalid_settings_are_refused_before_anything_is_written(config, tmp_path, settings, facts):
    with pytest.raises(AirlocError, match=facts):
        train(tmp_path, replace(config, **settings))
    assert list(tmp_path.iterdir()) == []


def test_the_preset_paper_has_the_values_of_the_paper():
    paper = PRESETS["paper"]
    data, unit, embedder, policy = paper.data, paper.for_segmenter, paper.for_embedder, paper.for_policy
    assert (data.datasets, data.synthetic) == (("masa",), 0), "Massachusetts alone"
    assert (unit.batch, unit.learning_rate, unit.schedule, unit.building_weight) == (128, 1e-4, "constant", 1.0)
    assert (embedder.batches, embedder.pairs, embedder.learning_rate) == ("pairs", 256, 1e-3)
    assert (embedder.schedule, embedder.rescale, embedder.photos) == ("constant", False, 0.0)
    assert {unit.crops, embedder.crops, policy.crops} == {"grid"}
    assert {unit.augmentation, embedder.augmentation} == {"flips"}
    assert (unit.unet, embedder.layers) == ("paper", PAPER_LAYERS)
    assert (policy.areas, policy.grid, policy.budget, policy.gamma) == (832, "5x5", 10, 0.9)
    assert (policy.batch, policy.steps, policy.learning_rate, policy.anneal) == (64, 50_000, 1e-4, False)
    assert (policy.position, policy.validation) == (PositionEncoding("restarted", "raw"), "episodes")
    assert {unit.keep, embedder.keep} == {"best"}, "until convergence on the validation set"
    assert policy.patience * policy.validate_every >= policy.steps, "about 50,000 batches"
    assert (policy.normalise, policy.reward, policy.select, policy.seeds) == ("returns", "", "own", 5)


def test_the_preset_tuned_is_the_recipe_of_the_shipped_weights():
    """The defaults of the stages are that recipe, as the cards of the weights state it."""
    tuned, data = PRESETS["tuned"], DataConfig(weights=(6.0, 2.0, 1.0))
    assert data == DataConfig(None, ("masa", "naip", "austin"), (6.0, 2.0, 1.0), synthetic=1500)
    assert tuned.for_segmenter == SegmenterConfig(
        data, 20_000, 128, 1e-4, "cosine", "last", 3.0, "random", "full", 0.8, "light", 2000, 0
    )
    assert tuned.for_embedder == EmbedderConfig(data, steps=30_000, batches="blocks", blocks=28, learning_rate=2e-3)
    assert EmbedderConfig() == EmbedderConfig(
        schedule="cosine",
        crops="random",
        augmentation="full",
        jitter=0.6,
        rescale=True,
        layers=Layers(True, "wide", "light"),
    )
    assert tuned.for_policy == PolicyConfig(
        data,
        areas=3000,
        crops="random",
        position=PositionEncoding("restarted", "border"),
        episodes=10_240_000,
        batch=256,
        learning_rate=3e-4,
        anneal=True,
        validation="all-pairs",
        patience=15,
        seeds=3,
    )


def test_the_preset_paper_trains_an_agent_that_keeps_its_form(world, tmp_path, airloc):
    config = replace(
        PRESETS["paper"],
        data=replace(PRESETS["paper"].data, root=world),
        segmenter_steps=1,
        embedder_steps=2,
        embedder_pairs=4,
        episodes=32,
        batch=8,
        validate_every=4,
        seeds=1,
    )
    train(tmp_path / "run", config)
    units = load_units(tmp_path / "run" / "agent")
    assert units.encoder.layers == config.layers
    assert units.position_encoding == config.position
    share_vision(tmp_path / "run" / "agent", tmp_path / "run" / "vision")
    assert load_units(tmp_path / "run" / "agent").encoder.layers == config.layers
    agent = make_agent(str(tmp_path / "run" / "agent"))
    assert (agent.position_encoding, agent.encoder.layers) == (config.position, config.layers)
    images = world / "masa" / "images"
    assert airloc("evaluate", tmp_path / "run" / "agent", "--areas", images, "--grid", "6x6").code == 0


def test_a_segmentation_unit_of_another_form_is_refused(world, tmp_path):
    config = replace(PRESETS["paper"], data=DataConfig(root=world, synthetic=0), segmenter="airloc")
    with pytest.raises(AirlocError, match="--unet light"):
        train(tmp_path, config)
    assert list(tmp_path.iterdir()) == []


def test_policies_may_be_trained_on_the_encoder_of_another_agent(whole, config, tmp_path):
    logged = []
    settings = replace(config, encoder=str(whole / "agent"), variant=Variant(residual=False))
    train(tmp_path, settings, on_step=lambda stage, *_: logged.append(stage))
    assert set(logged) == {"policy"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent", "config.json", "policy"]
    before, after = (load_units(folder / "agent").encoder.state_dict() for folder in (whole, tmp_path))
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert "those of" in (tmp_path / "agent" / "card.md").read_text()
    with pytest.raises(AirlocError, match="encoder = "):
        train(tmp_path, replace(settings, encoder="airloc"))


def test_an_encoder_that_cannot_be_taken_is_refused(config, tmp_path):
    without = replace(config, variant=Variant(sem_seg=False))
    paper = replace(config, layers=PRESETS["paper"].layers)
    for settings, until, named in (
        (config, "embedder", "--encoder"),
        (replace(config, segmenter="airloc"), "airloc", "--encoder"),
        (without, "airloc", "--sem-seg"),
        (paper, "airloc", "--preset tuned"),
    ):
        with pytest.raises(AirlocError, match=named):
            train(tmp_path, replace(settings, encoder="airloc"), until=until)
    assert list(tmp_path.iterdir()) == []
