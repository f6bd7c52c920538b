"""The plan has all that the paper reports, and changes only where it must."""

from pathlib import Path

import pytest

from airloc.errors import AirlocError
from airloc.evaluation.benchmarks.paper import TABLES
from airloc.experiments import paper as plan_module
from airloc.experiments.data import Sources
from airloc.experiments.paper import Asked, Planner
from airloc.reports.outcomes import Setup
from small_reproduction import TINY, planner


def keys(made_by: Planner) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for task in made_by.plan(Asked.everything()).tasks:
        found.setdefault(task.kind, set()).add(task.key)
    return found


def test_every_row_of_every_table_has_its_task():
    plan = Planner(Sources(None, TINY), TINY, seeds=5).plan(Asked.everything())
    rows = [Setup.of(table, row) for table in TABLES for row in table.rows if row.seed != "average"]
    assert set(rows) <= set(plan.scores)
    kinds = [task.kind for task in plan.tasks]
    assert (kinds.count("segmenter"), kinds.count("embedder"), kinds.count("policy")) == (1, 3, 13)
    assert len({task.key for task in plan.tasks}) == len(plan.tasks)


def test_local_agents_take_the_eyes_of_the_policy_that_was_trained_on_the_same_pictures():
    made_by = planner()
    for name, base in (("priv-local", "airloc"), ("local-no-sem-seg", "airloc-no-sem-seg")):
        task = made_by.score(Setup(name, "masa", "val"))
        assert task is not None
        assert task.inputs["policy"].settings["variant"] == base
    trained = made_by.score(Setup("priv-local", "xbd-disaster", "test", trained_on="xbd-pre"))
    assert trained is not None
    assert trained.inputs["policy"].name == "airloc on xbd-pre"
    assert trained.inputs["policy"].inputs["embedder"].inputs["segmenter"].name == "on masa"


def test_longer_policies_change_policies_and_what_they_play_alone():
    before, after = keys(planner()), keys(planner(episodes=64))
    assert {kind for kind in before if before[kind] != after[kind]} == {"policy", "score"}
    blind = planner().score(Setup("blind", "masa", "val"))
    assert blind is not None
    assert blind.key in after["score"]


def test_a_longer_embedder_keeps_the_segmenter_and_a_longer_segmenter_keeps_eyes_without_it():
    before = keys(planner())
    assert keys(planner(embedder_steps=3))["segmenter"] == before["segmenter"]
    after = keys(planner(segmenter_steps=2))
    assert before["segmenter"].isdisjoint(after["segmenter"])
    assert before["areas"] == after["areas"]


def test_fewer_seeds_have_fewer_rows_and_say_nothing_of_the_others():
    plan = planner().plan(Asked(tables=(4,)))
    assert {setup.seed for setup in plan.scores} == {"median", "1"}


def test_agents_that_the_paper_does_not_have_stand_beside_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plan_module, "available_agents", lambda: ["blind", "airloc", "somebody-elses"])
    plan = planner().plan(Asked(tables=(1,)))
    assert Setup("somebody-elses", "masa", "test", "7x7") in plan.scores
    assert Setup("blind", "masa", "test") in plan.scores


def test_an_agent_of_ours_with_shipped_weights_comes_as_it_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(plan_module.CHECKPOINTS, "belief", "belief")
    task = planner().score(Setup("belief", "masa", "val"))
    assert task is not None
    assert set(task.inputs) == {"areas"}


def test_a_figure_that_cannot_be_made_again_is_refused():
    with pytest.raises(AirlocError, match="Figure 1 of the paper"):
        Asked(figures=(1,))
    assert Asked(figures=(3, 19)).figures == (3, 19)


def test_with_shipped_weights_nothing_is_trained():
    plan = Planner(Sources(None, TINY), TINY, weights="shipped").plan(Asked.everything())
    assert plan.policies == []
    assert Setup("airloc", "masa", "test") in plan.scores
    assert Setup("airloc", "masa", "val", seed="1") not in plan.scores


def test_data_decides_what_is_planned_and_its_content_the_keys(tmp_path: Path):
    (tmp_path / "dubai" / "Tile 1" / "images").mkdir(parents=True)
    picture = tmp_path / "dubai" / "Tile 1" / "images" / "a.jpg"
    picture.write_bytes(b"1")
    sources = Sources(tmp_path, TINY)
    assert [role for role in ("masa", "dubai", "xbd-disaster") if sources.has(role)] == ["dubai"]
    assert any("Massachusetts" in remark for remark in sources.remarks())
    plan = Planner(sources, TINY, weights="shipped").plan(Asked.everything())
    assert {setup.data for setup in plan.scores} == {"dubai"}
    with pytest.raises(AirlocError, match="Table 1 needs Massachusetts"):
        sources.require("masa", "Table 1")


def test_a_folder_without_any_of_the_datasets_is_refused(tmp_path: Path):
    with pytest.raises(AirlocError, match="holds none of dubai, masa, xbd"):
        Sources(tmp_path, TINY)
    with pytest.raises(AirlocError, match="no data folder"):
        Sources(tmp_path / "nowhere", TINY)
