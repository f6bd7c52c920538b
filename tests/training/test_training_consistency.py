from dataclasses import fields, replace
from functools import cache

import pytest
import torch

from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.pretrained import load_relation, save_belief
from airloc.areas.synthetic import generate
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.task.photos import MARGIN
from airloc.training.atlas import CropSampler, Imagery
from airloc.training.consistency import ConditionAugmentation, TwinBatch, sample_twins
from airloc.training.data import DataConfig
from airloc.training.relation import RelationConfig, load_teacher, train_belief
from airloc.training.relation_batches import GoalAugmentation
from airloc.vision.offsets import mirrored_offsets
from airloc.vision.relation import RelationNetwork

GRID = Grid(3, 3)
CPU = torch.device("cpu")
EVERY = torch.arange(GRID.count)
ON_GRID = GoalAugmentation(shared_jitter=0.0, off_grid_probability=0.0)
NAMES = [field.name for field in fields(ConditionAugmentation)]
NONE = ConditionAugmentation(**dict.fromkeys(NAMES, 0.0))
GOAL_ONLY = ("day_condition", "degraded_condition")
FLIGHT_ONLY = ("damage_condition",)


@cache
def crops() -> CropSampler:
    """Render areas of one procedural place on two days."""
    days = [generate(number, (320, 320), regime="suburb").image for number in (2, 3)]
    imagery = Imagery.from_pairs([tuple(days)], [(1.0, 1.0)], [1.0], "cpu", clean=[True])
    return CropSampler(imagery, GRID.size[0], MARGIN)


def sample(conditions: ConditionAugmentation, augmentation: GoalAugmentation = ON_GRID, areas: int = 3) -> TwinBatch:
    torch.manual_seed(1)
    return sample_twins(crops(), GRID, EVERY.expand(areas, -1), 4, augmentation, conditions)


@pytest.mark.parametrize("off_grid", [0.0, 1.0])
def test_without_conditions_both_networks_see_the_same(off_grid: float):
    batch = sample(NONE, replace(ON_GRID, off_grid_probability=off_grid))
    torch.testing.assert_close(batch.glimpses, batch.plain_glimpses, atol=1e-3, rtol=0)
    torch.testing.assert_close(batch.goals, batch.plain_goals, atol=1e-3, rtol=0)
    own = torch.stack([batch.plain_glimpses[area, cell] for area, cell in enumerate(batch.cell)])
    assert torch.allclose(batch.plain_goals, own, atol=1e-3) == (off_grid == 0)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "plain_condition"])
def test_every_condition_changes_what_the_network_sees_and_not_what_the_teacher_sees(name: str):
    batch, plain = sample(replace(NONE, **{name: 1.0})), sample(NONE).plain()
    torch.testing.assert_close(batch.plain_glimpses, plain.glimpses, atol=1e-3, rtol=0)
    torch.testing.assert_close(batch.plain_goals, plain.goals, atol=1e-3, rtol=0)
    for seen, exact, others in (
        (batch.goals, batch.plain_goals, FLIGHT_ONLY),
        (batch.glimpses, batch.plain_glimpses, GOAL_ONLY),
    ):
        differences = [float((one - other).abs().max()) for one, other in zip(seen, exact, strict=True)]
        assert max(differences) < 1e-2 if name in others else min(differences) > 1e-2


def test_a_teacher_answers_a_mirrored_pair_with_the_mirrored_offset(tmp_path):
    torch.manual_seed(3)
    save_belief(tmp_path / "agent", RelationNetwork(2), {}, "# belief")
    config = RelationConfig(init_from=str(tmp_path / "agent"), teacher=str(tmp_path / "agent"))
    teacher = load_teacher(config, CPU)
    assert teacher is not None
    batch = sample(NONE)
    flipped = batch._replace(plain_glimpses=batch.plain_glimpses.flip(4), plain_goals=batch.plain_goals.flip(4))
    (answers,), (mirrored,) = teacher([batch]), teacher([flipped])
    torch.testing.assert_close(answers, mirrored[..., mirrored_offsets()])
    assert not torch.allclose(answers, mirrored)


def test_areas_without_conditions_are_kept_as_they_are():
    always = ConditionAugmentation(**dict.fromkeys(NAMES, 1.0))
    batch = sample(always)
    assert torch.equal(batch.glimpses, batch.plain_glimpses)
    assert torch.equal(batch.goals, batch.plain_goals)


@pytest.mark.long
def test_a_student_comes_nearer_to_its_teacher_and_keeps_its_statistics(world, tmp_path):
    def train(name: str, **settings) -> dict[str, torch.Tensor]:
        logged: list[dict[str, float]] = []
        config = RelationConfig(
            DataConfig(root=world, synthetic=0), steps=6, areas=1, goals=3, width=2, validate_every=3, **settings
        )
        train_belief(tmp_path / name, config, device=CPU, command="c", on_step=lambda *step: logged.append(step[2]))
        assert logged[-1]["pair_loss"] < logged[0]["pair_loss"] or not settings
        return load_relation(load_checkpoint(tmp_path / name / "agent")).state_dict()

    first = train("first")
    teacher = str(tmp_path / "first" / "agent")
    student = train("student", init_from=teacher, teacher=teacher, learning_rate=1e-2, seed=4)
    assert torch.equal(student["edge.1.running_mean"], first["edge.1.running_mean"])
    assert not torch.equal(student["edge.0.weight"], first["edge.0.weight"])
    assert f"Teacher: `{teacher}`" in (tmp_path / "student" / "agent" / "card.md").read_text()


@pytest.mark.long
def test_a_student_carries_the_terms_of_its_teacher_and_an_unknown_teacher_is_refused_at_once(world, tmp_path):
    for name, terms in (("own", {}), ("research", {"terms": "CC BY-NC-SA 4.0"})):
        save_belief(tmp_path / name, RelationNetwork(2), terms, "# belief")
    config = RelationConfig(
        DataConfig(root=world, synthetic=0), steps=1, areas=1, goals=2, width=2, init_from=str(tmp_path / "own"),
        teacher=str(tmp_path / "research"),
    )  # fmt: skip
    train_belief(tmp_path / "student", config, device=CPU, command="c", on_step=lambda *_: None)
    assert load_checkpoint(tmp_path / "student" / "agent").config["terms"] == "CC BY-NC-SA 4.0"
    for teacher, problem in (("nobody", "nobody"), ("airloc", "not 'belief'")):
        with pytest.raises(AirlocError, match=problem):
            train_belief(
                tmp_path / "x", replace(config, teacher=teacher), device=CPU, command="c", on_step=lambda *_: None
            )
    assert not (tmp_path / "x").exists()


def test_a_teacher_needs_initial_weights():
    with pytest.raises(AirlocError, match=r"random weights.*--init-from belief"):
        RelationConfig(teacher="belief")


def test_a_probability_above_one_is_refused():
    with pytest.raises(AirlocError, match=r"lens_condition = 1\.5"):
        ConditionAugmentation(lens_condition=1.5)
