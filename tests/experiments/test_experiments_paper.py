"""The plan covers all that the paper reports, and its keys change only where they must."""

from pathlib import Path

import pytest

from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.paper import TABLES, Setup
from airloc.experiments import paper
from airloc.experiments.paper import PaperPlanner, Selection
from airloc.experiments.paper_data import PaperData
from airloc.experiments.store import Store
from small_reproduction import TINY, planner


def keys(made_by: PaperPlanner) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for task in made_by.plan(Selection.everything()).tasks:
        found.setdefault(task.kind.name, set()).add(task.key)
    return found


def test_every_row_of_every_table_has_its_task():
    plan = planner(seeds=5).plan(Selection.everything())
    rows = [Setup.of(table, row) for table in TABLES for row in table.rows if row.seed != "average"]
    assert set(rows) <= set(plan.evaluations)
    kinds = [task.kind.name for task in plan.tasks]
    assert (kinds.count("segmenter"), kinds.count("embedder"), kinds.count("policy")) == (1, 3, 13)
    assert len({task.key for task in plan.tasks}) == len(plan.tasks)


def test_local_agents_use_the_encoder_of_the_policy_that_was_trained_on_the_same_images():
    made_by = planner()
    for name, base in (("priv-local", "airloc"), ("local-no-sem-seg", "airloc-no-sem-seg")):
        task = made_by.evaluation(Setup(name, "masa", "val"))
        assert task is not None
        assert task.inputs["policy"].settings["variant"] == base
    trained = made_by.evaluation(Setup("priv-local", "xbd-disaster", "test", trained_on="xbd-pre"))
    assert trained is not None
    assert trained.inputs["policy"].name == "airloc on xbd-pre"
    assert trained.inputs["policy"].inputs["embedder"].inputs["segmenter"].name == "on masa"


def test_longer_policy_trainings_change_only_policies_and_their_evaluations():
    before, after = keys(planner()), keys(planner(episodes=64))
    assert {kind for kind in before if before[kind] != after[kind]} == {"policy", "evaluation"}
    blind = planner().evaluation(Setup("blind", "masa", "val"))
    assert blind is not None
    assert blind.key in after["evaluation"]


def test_a_longer_embedder_keeps_the_segmenter_and_a_longer_segmenter_keeps_the_areas():
    before = keys(planner())
    assert keys(planner(embedder_steps=3))["segmenter"] == before["segmenter"]
    after = keys(planner(segmenter_steps=2))
    assert before["segmenter"].isdisjoint(after["segmenter"])
    assert before["areas"] == after["areas"]


def test_fewer_seeds_plan_fewer_rows():
    plan = planner().plan(Selection(tables=(4,)))
    assert {setup.seed for setup in plan.evaluations} == {"median", "1"}


def test_agents_that_are_not_in_the_paper_are_planned_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(paper, "available_agents", lambda: ["blind", "airloc", "somebody-elses"])
    plan = planner().plan(Selection(tables=(1,)))
    assert Setup("somebody-elses", "masa", "test", "7x7") in plan.evaluations
    assert Setup("blind", "masa", "test") in plan.evaluations


def test_an_agent_of_ours_with_shipped_weights_is_not_trained():
    task = planner().evaluation(Setup("belief", "masa", "val"))
    assert task is not None
    assert set(task.inputs) == {"areas"}


def test_a_figure_that_cannot_be_reproduced_is_refused():
    with pytest.raises(AirlocError, match="Figure 1 "):
        Selection(figures=(1,))
    assert Selection(figures=(3, 19)).figures == (3, 19)


def test_with_shipped_weights_nothing_is_trained():
    plan = PaperPlanner(PaperData(None, TINY), weights="shipped").plan(Selection.everything())
    assert {task.kind.name for task in plan.tasks} == {"areas", "evaluation"}
    assert Setup("airloc", "masa", "test") in plan.evaluations
    assert Setup("airloc", "masa", "val", seed="1") not in plan.evaluations


def test_only_evaluations_with_data_are_planned(tmp_path: Path):
    (tmp_path / "dubai" / "Tile 1" / "images").mkdir(parents=True)
    picture = tmp_path / "dubai" / "Tile 1" / "images" / "a.jpg"
    picture.write_bytes(b"1")
    data = PaperData(tmp_path, TINY)
    assert [role for role in ("masa", "dubai", "xbd-disaster") if data.has(role)] == ["dubai"]
    assert any("Massachusetts" in remark for remark in data.remarks())
    plan = PaperPlanner(data, weights="shipped").plan(Selection.everything())
    assert {setup.data for setup in plan.evaluations} == {"dubai"}
    with pytest.raises(AirlocError, match=r"Table 1 .*data fetch masa"):
        data.require("masa", "Table 1")


def test_a_folder_without_any_of_the_datasets_is_refused(tmp_path: Path):
    with pytest.raises(AirlocError, match="dubai, masa, xbd"):
        PaperData(tmp_path, TINY)
    with pytest.raises(AirlocError, match="nowhere"):
        PaperData(tmp_path / "nowhere", TINY)


def test_policies_on_the_shipped_encoders_need_no_other_training():
    made_by = PaperPlanner(PaperData(None, TINY), weights="encoders")
    plan = made_by.plan(Selection(tables=(4,)))
    assert {task.kind.name for task in plan.tasks} == {"areas", "images", "policy", "evaluation"}
    policy = made_by.policy("airloc-no-residual", "masa")
    assert policy.settings["encoder"] == "airloc"
    assert set(policy.settings["weights"]) == {"airloc", "vision-sem-seg"}, "other weights are another task"
    assert made_by.policy("airloc-no-sem-seg", "masa").settings["encoder"] == "airloc-no-sem-seg"
    assert policy.key != planner().policy("airloc-no-residual", "masa").key


def test_learning_curves_of_trainings_that_are_not_in_the_store_are_left_out(tmp_path: Path):
    plan = planner().plan(Selection(tables=(4,)))
    assert plan.learning_curves(Store(tmp_path)) == []
    policy = next(task for task in plan.tasks if task.kind.name == "policy")
    folder = Store(tmp_path).result_folder(policy)
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text('{"step": 1, "val_success": 0.5}\n')
    [curve] = plan.learning_curves(Store(tmp_path))
    assert (curve.episodes, curve.success) == ((16,), (0.5,))
