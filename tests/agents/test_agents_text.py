"""Descriptions are evidence: it adds to that of a picture, and an empty description says nothing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from airloc.agents.agent import EpisodeBatch
from airloc.agents.belief import BeliefAgent
from airloc.agents.pretrained import load_text
from airloc.agents.registry import make_agent
from airloc.areas.captions import describe_cells
from airloc.areas.synthetic import Synthetic
from airloc.errors import AirlocError
from airloc.evaluation.scores import evaluate
from airloc.evaluation.texts import DescribedGoals
from airloc.grid import Grid
from airloc.seeding import stream
from airloc.task.batch import Observation
from airloc.task.goal_texts import GoalText, texts_of
from airloc.task.suites import per_distance
from airloc.vision.sentences import DIM, ROWS
from untrained import untrained_relation, untrained_text

GRID = Grid(5, 5)


def reader() -> BeliefAgent:
    network = untrained_text()
    return BeliefAgent("belief", untrained_relation(), text_network=lambda: network)


def evidence(agent: BeliefAgent, goal: torch.Tensor, text: torch.Tensor | None, patch: torch.Tensor) -> torch.Tensor:
    """Return the evidence of one glimpse in the middle, without the prior."""
    count = len(goal)
    state = agent.reset(EpisodeBatch(goal, GRID, 10, torch.zeros(count, 10, 8), text=text))
    after = agent.observe(Observation(patch, torch.full((count, 2), 2), torch.full((count,), 10)), state)
    return after.evidence - after.prior


def patches(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 256, (count, 48, 48, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def rows(count: int) -> torch.Tensor:
    return torch.nn.functional.normalize(
        torch.randn(count, ROWS, DIM, generator=torch.Generator().manual_seed(1)), dim=2
    )


def test_the_evidence_of_words_and_picture_adds():
    agent, goal, glimpse, text = reader(), patches(3), patches(3, 1), rows(3)
    black = torch.zeros_like(goal)
    both = evidence(agent, goal, text, glimpse)
    picture = evidence(agent, goal, None, glimpse)
    words = evidence(agent, black, text, glimpse)
    alone, beside = agent.text_power
    assert torch.allclose(both, picture + words * (beside / alone), atol=1e-4)
    assert words.std() > 0.01


def test_an_empty_description_is_no_description():
    agent, goal, glimpse = reader(), patches(2), patches(2, 1)
    blank = torch.zeros(2, ROWS, DIM)
    assert torch.equal(evidence(agent, goal, blank, glimpse), evidence(agent, goal, None, glimpse))
    assert not evidence(agent, torch.zeros_like(goal), blank, glimpse).any()


def test_a_glimpse_that_shows_nothing_says_nothing_about_a_description():
    agent, black = reader(), torch.zeros(2, 48, 48, 3, dtype=torch.uint8)
    assert not evidence(agent, black, rows(2), black).any()


def test_an_agent_without_a_text_network_refuses_descriptions():
    agent = BeliefAgent("plain", untrained_relation())
    with pytest.raises(AirlocError, match="reads no descriptions"):
        evidence(agent, patches(1), rows(1), patches(1))


def test_a_checkpoint_of_another_kind_is_refused():
    with pytest.raises(AirlocError, match="kind 'belief', not 'text'"):
        load_text("belief")


def test_a_folder_named_text_does_not_replace_the_shipped_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "text").mkdir()
    monkeypatch.chdir(tmp_path)
    load_text.cache_clear()
    assert load_text("text").features == 192
    with pytest.raises(AirlocError, match="has no file"):
        load_text("./text")


@pytest.mark.slow
def test_words_find_more_than_chance_and_both_find_no_less_than_either_beyond_chance():
    areas, texts = [], {}
    for area, land in Synthetic(count=24, seed=4).land_covers(GRID):
        areas.append(area)
        for cell, caption, fits in describe_cells(land, GRID, stream(0, "goal texts", area.name)):
            texts[area.name, cell] = GoalText(caption.text, fits)
    suite = per_distance([area.name for area in areas], GRID, seed=0)
    described, agent = DescribedGoals(texts_of(suite, texts)), make_agent("belief")

    def found(goals: DescribedGoals | None) -> np.ndarray:
        return evaluate(agent, suite, areas, described=goals).log.found

    words, picture, both = found(described), found(None), found(replace(described, pictures=True))
    assert words.mean() > 0.57, "the blind optimum is 52.1 %"
    for alone in (words, picture):  # a sign test of the episodes that only one of them finds
        gained, lost = int((both & ~alone).sum()), int((alone & ~both).sum())
        assert lost - gained <= 2 * np.sqrt(gained + lost)
    assert both.mean() > words.mean()
    assert found(replace(described, control="wrong-text")).mean() < words.mean()
