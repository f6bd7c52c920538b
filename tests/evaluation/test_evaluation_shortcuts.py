"""Shortcuts: the verdicts, the paired differences, and agents that read the block grid or do not."""

import numpy as np
import pytest
import torch

from airloc.agents.agent import AgentOptions
from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.areas.synthetic import generate as generate_area
from airloc.evaluation.conditions import CONDITIONS
from airloc.evaluation.shortcuts import (
    CHANCE,
    CLEAN,
    judge,
    phase_preference,
    play_conditions,
    playable,
    shortcut_record,
    size_spread,
)
from airloc.grid import Grid
from airloc.task.suites import per_distance

GRID = Grid(3, 3)


@pytest.fixture(scope="module")
def areas() -> list[SearchArea]:
    return [SearchArea(f"{n}.png", generate_area(n, size=(180, 180)).image) for n in range(4)]


class BlockReader:
    """Searches goals with steps at every eighth column, and flies away from the others: a learned shortcut."""

    name = "block-reader"
    search = make_agent("lawnmower", AgentOptions())

    def reset(self, episodes):
        steps = episodes.goal.float().diff(dim=2).abs().mean(dim=(1, 3))[:, :47]  # (B, S - 1)
        by_position = torch.stack([steps[:, position::8].mean(dim=1) for position in range(8)], dim=1)
        return by_position.argmax(dim=1) == 7, self.search.reset(episodes)

    def act(self, observation, state):
        blocks, inner = state
        action, inner = self.search.act(observation, inner)
        return torch.where(blocks, action, torch.zeros_like(action)), (blocks, inner)


@pytest.mark.parametrize(
    ("name", "difference", "ci95", "verdict"),
    [
        ("jpeg-75", 0.04, (0.01, 0.07), "raises"),
        ("jpeg-75", 0.04, (-0.01, 0.09), "holds"),
        ("jpeg-75", -0.031, (-0.08, 0.01), "lowers"),
        ("jpeg-75", -0.029, (-0.06, 0.00), "holds"),
        ("jpeg-50", -0.2, (-0.3, -0.1), "holds"),  # a person would notice it
        ("mirrored", -0.02, (-0.03, -0.01), "changes"),
        ("mirrored", -0.04, (-0.09, 0.01), "holds"),
    ],
)
def test_the_claim_is_judged_by_the_interval_and_by_what_a_person_would_notice(name, difference, ci95, verdict):
    assert judge(CONDITIONS[name], difference, ci95) == verdict


def test_an_agent_that_does_not_look_is_the_same_under_every_condition_but_mirrors(areas):
    suite = per_distance([area.name for area in areas], GRID, per_area=2)
    conditions = {name: CONDITIONS[name] for name in ("jpeg-75", "jpeg-50-cells-phase", "sharpened", "size-0.88")}
    outcomes = list(play_conditions(make_agent("lawnmower", AgentOptions()), suite, areas, conditions))
    assert [each.name for each in outcomes] == [CLEAN, *conditions]
    assert {each.difference for each in outcomes} == {0.0}
    assert {each.verdict for each in outcomes} == {"holds"}
    record = shortcut_record(outcomes, None)
    assert record["holds"]
    assert record["size_spread"] is None or record["size_spread"] == 0
    assert record["conditions"]["jpeg-75"]["success"] == record["conditions"][CLEAN]["success"]


def test_an_agent_that_reads_the_block_grid_is_found_out(areas):
    suite = per_distance([area.name for area in areas], GRID, per_area=8)
    conditions = {"jpeg-50-cells": CONDITIONS["jpeg-50-cells"]}
    _, compressed = play_conditions(BlockReader(), suite, areas, conditions)
    assert compressed.difference > 0
    assert compressed.verdict == "raises"
    assert not shortcut_record([compressed], None)["holds"]


def test_transposed_areas_need_a_square_grid():
    assert "transposed" in playable(list(CONDITIONS), GRID)
    assert "transposed" not in playable(list(CONDITIONS), Grid(3, 4))


def test_the_spread_of_sizes_is_between_the_best_and_the_worst(areas):
    suite = per_distance([area.name for area in areas], GRID)
    conditions = {name: CONDITIONS[name] for name in ("size-0.88", "size-1.04")}
    outcomes = list(play_conditions(make_agent("lawnmower", AgentOptions()), suite, areas, conditions))
    apart = [each._replace(difference=value) for each, value in zip(outcomes, (0.0, -0.05, 0.01), strict=True)]
    assert size_spread(apart) == pytest.approx(0.06)
    assert not shortcut_record(apart, None)["holds"]
    assert size_spread(outcomes[:1]) is None


def test_the_preference_of_an_agent_that_ignores_phases_is_exactly_chance(areas):
    agent = make_agent("belief", AgentOptions())
    with torch.no_grad():
        for weight in agent.network.parameters():
            weight.zero_()
    found = phase_preference(agent, areas, GRID, pairs=6)
    assert found.share == pytest.approx(CHANCE)
    assert found.verdict == "holds"


def test_agents_that_relate_no_patches_have_no_preference(areas):
    assert phase_preference(make_agent("blind", AgentOptions()), areas, GRID) is None
    assert phase_preference(make_agent("belief", AgentOptions()), areas[:1], GRID) is None


def test_the_prior_of_airloc_has_a_preference_too(areas):
    found = phase_preference(make_agent("airloc", AgentOptions()), areas, GRID, pairs=4)
    assert 0 <= found.share <= 1
    assert np.isfinite(found.record()["ci95"]).all()
