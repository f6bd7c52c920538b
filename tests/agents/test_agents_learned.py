import json
from pathlib import Path

import numpy as np
import pytest
import torch

from airloc.agents import pretrained as shipped_module
from airloc.agents.agent import AgentOptions
from airloc.agents.airloc import LocalAgent
from airloc.agents.checkpoint import load_checkpoint, save_checkpoint
from airloc.agents.policy import VARIANTS, Policy, Variant
from airloc.agents.pretrained import SHIPPED, load_airloc, load_units, save_airloc
from airloc.agents.registry import AGENTS, available_agents, make_agent
from airloc.errors import AirlocError
from untrained import Stage, untrained_airloc, untrained_encoder

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
def shipped(tmp_path, monkeypatch) -> Path:
    """A folder of weights in place of the package's."""
    monkeypatch.setattr(shipped_module, "weights_root", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["airloc", "airloc-no-residual-priv", "airloc-no-prior-no-sem-seg"])
def test_what_is_saved_plays_the_same_path_when_loaded(tmp_path, stage: Stage, name: str):
    agent = load_airloc(save(tmp_path / "best", name))
    assert agent.name == name
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


def test_a_stack_of_policies_is_no_agent(tmp_path):
    with pytest.raises(ValueError, match="one policy, not 3"):
        save_airloc(tmp_path / "x", untrained_encoder(), Policy(Variant(), 3), {}, "")


def test_a_checkpoint_folder_is_an_agent_called_by_its_path(tmp_path, monkeypatch, stage: Stage):
    folder = save(tmp_path / "best")
    agent = make_agent(str(folder))
    assert agent.name == str(folder)
    monkeypatch.chdir(tmp_path)
    assert make_agent("best").name == "best"
    with pytest.raises(AirlocError, match="no checkpoint folder 'no/where'"):
        make_agent("no/where")
    with pytest.raises(AirlocError, match="'nowhere'"):
        make_agent("nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AirlocError, match=r"no file 'weights\.safetensors'"):
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
        ({"kind": "glider"}, r"config\.json' is of the kind 'glider'"),
        ({"kind": None}, r"config\.json' is of the kind None"),
        (
            {"variant": {**FULL, "residual": False, "prior": False}},
            r"weights\.safetensors' has the tensor 'policy.read'",
        ),
        ({"variant": {**FULL, "sem_seg": False}}, r"weights\.safetensors' has the tensor 'eyes\.segmenter"),
        ({"variant": {**FULL, "prior": False}}, r"config\.json' names no variant"),
        ({"variant": {**FULL, "priv": 1}}, r"config\.json' does not say .*priv"),
        ({"variant": {"residual": True}}, r"config\.json' does not say"),
        ({"variant": "airloc"}, r"config\.json' does not say"),
    ],
)
def test_a_checkpoint_of_another_kind_or_variant_is_refused(tmp_path, config, message: str):
    folder = changed(save(tmp_path / "best"), **config)
    with pytest.raises(AirlocError, match=message) as caught:
        make_agent(str(folder))
    assert caught.value.cure


@pytest.mark.parametrize("grid", [5, None, [5, 5], "five", "0x0"])
def test_a_checkpoint_trained_on_no_grid_is_refused(tmp_path, grid):
    save_airloc(tmp_path, untrained_encoder(), Policy(VARIANTS["airloc"]), {"grid": grid}, "# card\n")
    with pytest.raises(AirlocError, match=r"config\.json' gives the grid that it was trained on as"):
        load_airloc(tmp_path)


def test_the_grid_of_training_is_read_from_the_checkpoint(tmp_path):
    save_airloc(tmp_path, untrained_encoder(), Policy(VARIANTS["airloc"]), {"grid": "7x7"}, "# card\n")
    assert load_airloc(tmp_path).trained.shape == (7, 7)


def test_another_format_a_truncated_file_and_a_foreign_tensor_are_refused(tmp_path):
    folder = save(tmp_path / "best")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "format": 99}))
    with pytest.raises(AirlocError, match="format 99"):
        load_airloc(folder)
    (folder / "config.json").write_text(json.dumps(config))
    whole = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(whole[:-100])
    with pytest.raises(AirlocError, match=r"weights\.safetensors' is truncated"):
        load_airloc(folder)
    (folder / "weights.safetensors").write_bytes(whole)
    tensors = {**load_checkpoint(folder).tensors, "policy.extra": torch.zeros(1)}
    save_checkpoint(folder, tensors, config, "")
    with pytest.raises(AirlocError, match=r"weights\.safetensors' has the tensor 'policy.extra', which"):
        load_airloc(folder)


def test_names_are_those_of_the_design():
    assert len(VARIANTS) == 12
    assert {"local", "priv-local", "local-no-sem-seg", "priv-local-no-sem-seg"} < set(AGENTS)
    assert {"airloc-no-residual-no-sem-seg-priv", "airloc-xbd-research", "priv-local-xbd-research"} < set(AGENTS)


def test_learned_agents_are_available_once_their_weights_are_there(shipped: Path):
    assert not set(SHIPPED) & set(available_agents())
    for name in SHIPPED:
        with pytest.raises(AirlocError, match=rf"weights of the agent '{name}' are not there.*airloc train airloc"):
            make_agent(name)
    save(shipped / "airloc")
    assert set(SHIPPED) & set(available_agents()) == {"airloc", "local", "priv-local"}


def test_shipped_agents_take_the_eyes_of_their_checkpoint(shipped: Path, stage: Stage):
    save(shipped / "airloc")
    save(shipped / "airloc-no-sem-seg", "airloc-no-sem-seg")
    for name in ("local", "priv-local", "local-no-sem-seg", "priv-local-no-sem-seg"):
        agent = make_agent(name)
        assert isinstance(agent, LocalAgent)
        assert (agent.name, agent.privileged) == (name, name.startswith("priv"))
        assert (agent.encoder.segmenter is None) == name.endswith("no-sem-seg")
    assert np.array_equal(stage.play(make_agent("airloc")).path, stage.play(untrained_airloc()).path)


def test_a_shipped_checkpoint_of_another_variant_is_refused(shipped: Path):
    save(shipped / "airloc-priv", "airloc")
    with pytest.raises(AirlocError, match=r"config\.json' is of the variant 'airloc', not 'airloc-priv'"):
        make_agent("airloc-priv")


def test_research_weights_say_their_terms_in_one_line(shipped: Path, capsys):
    save(shipped / "airloc-xbd-research", terms="CC BY-NC-SA 4.0")
    save(shipped / "airloc")
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
