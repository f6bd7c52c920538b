import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from airloc.agents import pretrained as pretrained_module
from airloc.agents.agent import AgentOptions
from airloc.agents.airloc import LocalAgent
from airloc.agents.belief import BeliefAgent
from airloc.agents.checkpoint import load_checkpoint, save_checkpoint
from airloc.agents.policy import VARIANTS, Policy, Variant
from airloc.agents.pretrained import (
    load_belief,
    load_relation,
    load_units,
    save_airloc,
    save_belief,
    share_vision,
    weights_root,
)
from airloc.agents.registry import AIRLOC_AGENTS, BELIEF_AGENTS, available_agents, load_agent, make_agent
from airloc.areas.area import SearchArea
from airloc.areas.folder import Folder
from airloc.errors import AirlocError
from airloc.evaluation.metrics import blind_optimum
from airloc.evaluation.scores import compare, evaluate
from airloc.grid import Grid
from airloc.task.photos import FlightConditions
from airloc.task.suites import Suite, all_pairs, per_distance
from airloc.vision.offsets import NUM_NEAR
from airloc.vision.relation import offsets_from
from untrained import Stage, earlier_weights, untrained_airloc, untrained_encoder, untrained_relation

pytestmark = pytest.mark.long

MOST_BYTES = 4_000_000


@pytest.fixture(scope="module")
def stage(toy_areas) -> Stage:
    return Stage(toy_areas)


def save(folder: Path, name: str = "airloc", dtype: torch.dtype = torch.float32, **extra: str) -> Path:
    policy = untrained_airloc(name).policy
    save_airloc(
        folder, untrained_encoder(VARIANTS[name].sem_seg), policy, {"grid": "5x5", **extra}, "# Card", dtype=dtype
    )
    return folder


@pytest.fixture
def weights(tmp_path, monkeypatch) -> Path:
    """An empty folder in place of the weights in the package."""
    monkeypatch.setattr(pretrained_module, "weights_root", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["airloc", "airloc-no-residual-priv", "airloc-no-prior-no-sem-seg"])
def test_a_saved_agent_plays_the_same_path_when_loaded(tmp_path, stage: Stage, name: str):
    agent = load_agent(save(tmp_path / "best", name), name="mine")
    assert agent.name == "mine"
    assert np.array_equal(stage.play(agent).path, stage.play(untrained_airloc(name)).path)


def test_half_precision_is_loaded_as_float32_and_is_half_as_large(tmp_path):
    full = save(tmp_path / "full") / "weights.safetensors"
    half = save(tmp_path / "half", dtype=torch.float16) / "weights.safetensors"
    assert half.stat().st_size < 0.51 * full.stat().st_size
    assert half.stat().st_size < MOST_BYTES
    units = load_units(half.parent)
    for network in (units.encoder, units.policy):
        assert {tensor.dtype for tensor in network.state_dict().values()} <= {torch.float32, torch.int64}
    assert units.config["grid"] == "5x5"
    assert units.config["variant"] == {"residual": True, "prior": True, "sem_seg": True, "priv": False}


def test_a_stack_of_policies_is_refused(tmp_path):
    with pytest.raises(ValueError, match="one policy, not 3"):
        save_airloc(tmp_path / "x", untrained_encoder(), Policy(Variant(), 3), {}, "")


def test_a_checkpoint_folder_is_an_agent_called_by_its_path(tmp_path, monkeypatch, stage: Stage):
    folder = save(tmp_path / "best")
    agent = make_agent(str(folder))
    assert agent.name == str(folder)
    monkeypatch.chdir(tmp_path)
    assert make_agent("best").name == "best"
    with pytest.raises(AirlocError, match="'no/where'"):
        make_agent("no/where")
    with pytest.raises(AirlocError, match="'nowhere'"):
        make_agent("nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AirlocError, match=r"empty.*weights\.safetensors"):
        make_agent("empty")


def test_sampling_follows_the_options(tmp_path, stage: Stage):
    folder = save(tmp_path / "best")
    plain, drawn = (make_agent(str(folder), AgentOptions(sample=sample)) for sample in (False, True))
    assert not np.array_equal(stage.play(plain).path, stage.play(drawn).path)


def changed(folder: Path, **config: object) -> Path:
    """Save the same tensors again under another config."""
    checkpoint = load_checkpoint(folder)
    save_checkpoint(folder, checkpoint.tensors, {**checkpoint.config, **config}, checkpoint.card)
    return folder


FULL = {"residual": True, "prior": True, "sem_seg": True, "priv": False}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"kind": "glider"}, r"config\.json.*'glider'"),
        ({"kind": None}, r"config\.json.*None"),
        (
            {"variant": {**FULL, "residual": False, "prior": False}},
            r"weights\.safetensors.*'policy\.read'",
        ),
        ({"variant": {**FULL, "sem_seg": False}}, r"weights\.safetensors.*'eyes\.segmenter"),
        ({"variant": {**FULL, "prior": False}}, r"'variant' in .*config\.json"),
        ({"variant": {**FULL, "priv": 1}}, r"config\.json.*priv"),
        ({"variant": {"residual": True}}, r"'variant' in .*config\.json"),
        ({"variant": "airloc"}, r"'variant' in .*config\.json"),
    ],
)
def test_a_checkpoint_of_another_kind_or_variant_is_refused(tmp_path, config, message: str):
    folder = changed(save(tmp_path / "best"), **config)
    with pytest.raises(AirlocError, match=message) as caught:
        make_agent(str(folder))
    assert caught.value.cure


@pytest.mark.parametrize("grid", [5, None, [5, 5], "five", "0x0"])
def test_an_invalid_training_grid_is_refused(tmp_path, grid):
    save_airloc(tmp_path, untrained_encoder(), Policy(VARIANTS["airloc"]), {"grid": grid}, "# card\n")
    with pytest.raises(AirlocError, match=rf"config\.json.*{re.escape(repr(grid))}"):
        load_units(tmp_path)


def test_the_training_grid_is_read_from_the_checkpoint(tmp_path):
    save_airloc(tmp_path, untrained_encoder(), Policy(VARIANTS["airloc"]), {"grid": "7x7"}, "# card\n")
    assert load_units(tmp_path).training_grid.shape == (7, 7)


def test_another_format_a_truncated_file_and_an_unknown_tensor_are_refused(tmp_path):
    folder = save(tmp_path / "best")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "format": 99}))
    with pytest.raises(AirlocError, match="99"):
        load_units(folder)
    (folder / "config.json").write_text(json.dumps(config))
    whole = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(whole[:-100])
    with pytest.raises(AirlocError, match=r"weights\.safetensors"):
        load_units(folder)
    (folder / "weights.safetensors").write_bytes(whole)
    tensors = {**load_checkpoint(folder).tensors, "policy.extra": torch.zeros(1)}
    save_checkpoint(folder, tensors, config, "")
    with pytest.raises(AirlocError, match=r"weights\.safetensors.*'policy\.extra'"):
        load_units(folder)


def test_agents_are_available_if_their_weights_are_installed(weights: Path):
    assert not set(AIRLOC_AGENTS) & set(available_agents())
    for name in AIRLOC_AGENTS:
        with pytest.raises(AirlocError, match=rf"'{name}'.*{re.escape(str(weights))}.*airloc train"):
            make_agent(name)
    save(weights / "airloc")
    assert set(AIRLOC_AGENTS) & set(available_agents()) == {"airloc", "local", "priv-local"}


def test_local_agents_use_the_patch_encoder_of_their_checkpoint(weights: Path, stage: Stage):
    save(weights / "airloc")
    save(weights / "airloc-no-sem-seg", "airloc-no-sem-seg")
    for name in ("local", "priv-local", "local-no-sem-seg", "priv-local-no-sem-seg"):
        agent = make_agent(name)
        assert isinstance(agent, LocalAgent)
        assert (agent.name, agent.privileged) == (name, name.startswith("priv"))
        assert (agent.encoder.segmenter is None) == name.endswith("no-sem-seg")
    assert np.array_equal(stage.play(make_agent("airloc")).path, stage.play(untrained_airloc()).path)


def test_research_weights_print_their_terms_in_one_line(weights: Path, capsys):
    save(weights / "airloc-xbd-research", terms="CC BY-NC-SA 4.0")
    save(weights / "airloc")
    for name in ("airloc-xbd-research", "priv-local-xbd-research"):
        agent = make_agent(name)
        assert agent.name == name
        assert (isinstance(agent, LocalAgent) and agent.privileged) == (name == "priv-local-xbd-research")
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
        assert name in said.err
        assert "CC BY-NC-SA 4.0" in said.err
    make_agent("airloc")
    make_agent("local")
    assert capsys.readouterr().err == ""


@pytest.fixture
def shared(tmp_path) -> Path:
    """A policy that refers to a vision checkpoint beside it."""
    share_vision(save(tmp_path / "best"), tmp_path / "vision", "# Vision")
    return tmp_path / "best"


def test_a_checkpoint_with_shared_vision_plays_the_same_and_holds_the_policy_alone(shared: Path, stage: Stage):
    assert all(name.startswith("policy.") for name in load_checkpoint(shared).tensors)
    assert not any(name.startswith("policy.") for name in load_checkpoint(shared.parent / "vision").tensors)
    agent = make_agent(str(shared))
    assert np.array_equal(stage.play(agent).path, stage.play(untrained_airloc()).path)


def test_another_policy_can_share_the_vision_only_if_its_patch_encoder_is_the_same(shared: Path, tmp_path):
    share_vision(save(tmp_path / "priv", "airloc-priv"), tmp_path / "vision")
    assert load_units(tmp_path / "priv").policy.variant.priv
    other = save(tmp_path / "other", "airloc-no-sem-seg")
    with pytest.raises(AirlocError, match=r"other.*vision"):
        share_vision(other, tmp_path / "vision")
    assert load_units(other).encoder.segmenter is None


def test_a_vision_checkpoint_with_other_weights_is_refused(shared: Path):
    vision = load_checkpoint(shared.parent / "vision")
    tensors = {**vision.tensors, "embedder.prior.bias": vision.tensors["embedder.prior.bias"] + 1}
    save_checkpoint(vision.folder, tensors, vision.config, "")
    with pytest.raises(AirlocError, match=r"vision.*config\.json"):
        load_units(shared)


def test_a_missing_vision_checkpoint_is_named(shared: Path):
    (shared.parent / "vision").rename(shared.parent / "elsewhere")
    with pytest.raises(AirlocError, match="vision"):
        load_units(shared)


@pytest.mark.parametrize("reference", [None, "vision", {"name": "../vision"}, {"name": 3}])
def test_an_invalid_reference_to_a_vision_checkpoint_is_refused(shared: Path, reference):
    with pytest.raises(AirlocError, match=r"config\.json"):
        load_units(changed(shared, vision=reference))


def test_a_copied_policy_finds_its_vision_in_the_package(tmp_path):
    shutil.copytree(weights_root() / "airloc-priv", tmp_path / "copy")
    copied, original = load_units(tmp_path / "copy"), load_units(weights_root() / "airloc-priv")
    assert torch.equal(copied.encoder.embedder.join.weight, original.encoder.embedder.join.weight)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_in_the_package_is_the_one_of_its_name(name: str):
    assert load_units(weights_root() / name).policy.variant == VARIANTS[name]


def test_the_weights_in_the_package_take_less_than_46_mb():
    assert sum(path.stat().st_size for path in weights_root().rglob("*.safetensors")) < 46_000_000


@pytest.fixture
def belief_folder(tmp_path):
    save_belief(tmp_path / "agent", untrained_relation(), {}, "# card\n")
    return tmp_path / "agent"


def test_a_saved_relation_network_computes_the_same(belief_folder):
    network = load_relation(load_checkpoint(belief_folder))
    glimpse, goal = torch.randn(2, 3, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(network(glimpse, goal), untrained_relation()(glimpse, goal))


def test_residual_blocks_are_saved(tmp_path):
    save_belief(tmp_path / "agent", untrained_relation(blocks=2), {}, "")
    network = load_relation(load_checkpoint(tmp_path / "agent"))
    glimpse, goal = torch.randn(2, 3, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    assert network.blocks == 2
    with torch.inference_mode():
        torch.testing.assert_close(network(glimpse, goal), untrained_relation(blocks=2)(glimpse, goal))


def test_the_scale_of_chroma_is_saved_and_is_full_in_checkpoints_without_one(belief_folder):
    assert load_relation(load_checkpoint(belief_folder)).chroma_scale == 1
    network = untrained_relation()
    network.chroma_scale = 2
    save_belief(belief_folder, network, {}, "")
    assert load_relation(load_checkpoint(belief_folder)).chroma_scale == 2
    config = json.loads((belief_folder / "config.json").read_text())
    del config["chroma_scale"]
    (belief_folder / "config.json").write_text(json.dumps(config))
    assert load_relation(load_checkpoint(belief_folder)).chroma_scale == 1


@pytest.mark.parametrize("scale", [None, 0, 5, "2", 2.0, True, 48])
def test_an_invalid_scale_of_chroma_is_refused(belief_folder, scale):
    config = json.loads((belief_folder / "config.json").read_text())
    (belief_folder / "config.json").write_text(json.dumps({**config, "chroma_scale": scale}))
    with pytest.raises(AirlocError, match="chroma_scale"):
        load_relation(load_checkpoint(belief_folder))


@pytest.mark.parametrize("grid", [Grid(5, 5), Grid(7, 7), Grid(12, 12)])
def test_a_checkpoint_of_an_earlier_version_gives_the_same_belief(tmp_path, grid: Grid):
    """It knew offsets up to four cells, and took the farthest in the same direction for those beyond."""
    original = untrained_relation()
    save_checkpoint(tmp_path / "agent", earlier_weights(original), {"kind": "belief", "width": original.width}, "")
    network = load_relation(load_checkpoint(tmp_path / "agent"))
    glimpse, goal = torch.randn(2, 3, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        logits, near = network(glimpse, goal), original(glimpse, goal)[:, :NUM_NEAR]
    torch.testing.assert_close(logits[:, :NUM_NEAR], near)
    here = (0, 1)
    offsets = [(row - here[0], col - here[1]) for row, col in grid.cells()]
    scales = [min(1.0, 4 / max(abs(row), abs(col), 1)) for row, col in offsets]
    earlier = [
        9 * (round(row * scale) + 4) + round(col * scale) + 4 for (row, col), scale in zip(offsets, scales, strict=True)
    ]
    by_cell = logits[:, offsets_from(torch.tensor([here]), grid)[0]]
    torch.testing.assert_close(by_cell.softmax(dim=1), near[:, earlier].softmax(dim=1))


def test_the_network_of_a_belief_agent_has_no_batch_norm_left(belief_folder):
    frozen = load_belief(load_checkpoint(belief_folder), "mine", AgentOptions(full_precision=True)).network
    glimpse, goal = torch.randn(2, 3, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(frozen(glimpse, goal), untrained_relation()(glimpse, goal), rtol=1e-3, atol=1e-3)
    kinds = {type(part).__name__ for part in frozen.modules()}
    assert not {kind for kind in kinds if kind.startswith("BatchNorm")}


def test_a_checkpoint_folder_of_the_kind_belief_is_a_belief_agent(belief_folder):
    agent = make_agent(str(belief_folder))
    assert isinstance(agent, BeliefAgent)
    assert agent.name == str(belief_folder)


def test_float16_halves_the_file(tmp_path):
    for name, dtype in (("whole", torch.float32), ("half", torch.float16)):
        save_belief(tmp_path / name, untrained_relation(), {}, "", dtype=dtype)
    sizes = [(tmp_path / name / "weights.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.7 * sizes[0]


@pytest.mark.parametrize("width", [None, 0, "32", 4.0, True, 10_000])
def test_an_invalid_width_is_refused(belief_folder, width):
    config = json.loads((belief_folder / "config.json").read_text())
    (belief_folder / "config.json").write_text(json.dumps({**config, "width": width}))
    with pytest.raises(AirlocError, match="width"):
        load_relation(load_checkpoint(belief_folder))


@pytest.mark.parametrize("blocks", [None, -1, "2", 1.0, True, 10_000])
def test_an_invalid_number_of_blocks_is_refused(belief_folder, blocks):
    config = json.loads((belief_folder / "config.json").read_text())
    (belief_folder / "config.json").write_text(json.dumps({**config, "blocks": blocks}))
    with pytest.raises(AirlocError, match="blocks"):
        load_relation(load_checkpoint(belief_folder))


def test_weights_of_another_width_are_refused(belief_folder):
    config = json.loads((belief_folder / "config.json").read_text())
    (belief_folder / "config.json").write_text(json.dumps({**config, "width": 8}))
    with pytest.raises(AirlocError, match="tensor"):
        make_agent(str(belief_folder))


def test_a_relation_network_is_not_loaded_from_another_kind(tmp_path):
    save_airloc(tmp_path / "agent", untrained_encoder(), untrained_airloc().policy, {"grid": "5x5"}, "")
    with pytest.raises(AirlocError, match="'airloc'"):
        load_relation(load_checkpoint(tmp_path / "agent"))


def test_terms_are_printed_when_an_agent_is_loaded(tmp_path, capsys):
    save_belief(tmp_path / "agent", untrained_relation(), {"terms": "CC BY-NC-SA 4.0"}, "")
    make_agent(str(tmp_path / "agent"))
    assert "CC BY-NC-SA 4.0" in capsys.readouterr().err


def test_missing_belief_weights_name_the_folder_and_the_command(monkeypatch, tmp_path):
    monkeypatch.setattr("airloc.agents.pretrained.weights_root", lambda: tmp_path)
    assert not set(BELIEF_AGENTS) & set(available_agents())
    with pytest.raises(AirlocError, match="airloc train"):
        make_agent("belief")


def test_the_pretrained_belief_is_small_and_public():
    folder = weights_root() / "belief"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 8_000_000
    config = json.loads((folder / "config.json").read_text())
    assert "terms" not in config
    assert set(BELIEF_AGENTS) <= set(available_agents())


@pytest.fixture(scope="module")
def windows(data_root: Path) -> list[SearchArea]:
    """The validation windows of Massachusetts at the paper's scale."""
    return list(Folder(data_root / "masa" / "images", split="val", cell_metres=100).areas(Grid(5, 5)))


@pytest.fixture(scope="module")
def suite(windows: list[SearchArea]) -> Suite:
    return all_pairs([area.name for area in windows], Grid(5, 5), equal_distances=True)


@pytest.mark.slow
def test_airloc_finds_more_than_priv_local_and_far_more_than_blind(windows, suite):
    airloc, local = (evaluate(make_agent(name), suite, windows) for name in ("airloc", "priv-local"))
    assert airloc.value("success") > 0.80
    assert airloc.value("success") > blind_optimum(suite) + 0.25
    low, _ = compare(airloc, local)["metrics"]["success"]["ci95"]
    assert low > 0.03


@pytest.mark.slow
def test_local_without_privileges_is_far_below_priv_local(windows, suite):
    alone, privileged = (evaluate(make_agent(name), suite, windows) for name in ("local", "priv-local"))
    assert privileged.value("success") > alone.value("success") + 0.3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["airloc", "priv-local"])
def test_with_a_wrong_goal_learned_agents_find_no_more_than_blind(windows, suite, name: str):
    assert evaluate(make_agent(name), suite, windows, control="wrong-goal").value("success") < blind_optimum(suite)


@pytest.mark.slow
def test_belief_finds_almost_all_goals_and_hardly_fewer_in_flight(windows):
    suite = per_distance([area.name for area in windows], Grid(5, 5), per_area=6)
    exact, flight = (evaluate(make_agent("belief"), suite, windows, flight=f) for f in (None, FlightConditions()))
    assert exact.value("success") > 0.92
    assert flight.value("success") > 0.83
