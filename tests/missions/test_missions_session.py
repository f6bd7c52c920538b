"""Searches by words: a description guides the search, survives in the store, and bad ones have a clear answer."""

from pathlib import Path

import pytest

from airloc.agents.registry import make_agent
from airloc.areas.area import SearchArea
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.missions.photos import Goal, describe_goal, make_goal
from airloc.missions.searcher import Searcher
from airloc.missions.session import AgentSession
from airloc.missions.store import SearchStore
from field_files import photo_of
from field_server import SearchGround, client_of, post

pytestmark = pytest.mark.long
TEXT = "houses with red roofs, a road from north to south"


def test_a_description_moves_the_belief_and_no_picture_is_compared(areas: list[SearchArea]):
    grid, image = Grid(5, 5), areas[0].image

    def belief(goal: Goal):
        searcher = Searcher(make_agent("belief"), goal, grid, start=(2, 2), budget=8)
        for cell in ((2, 2), (1, 2)):
            searcher.observe(cell, photo_of(image, grid, cell), check=False)
        assert searcher.detection < 0.01, "words alone declare hardly any find"
        return searcher.belief()

    first = describe_goal(TEXT)
    second = describe_goal("the sea everywhere")
    assert abs(belief(first) - belief(second)).max() > 0.01


@pytest.mark.parametrize("name", ["belief", "belief-any-day"])
def test_photos_of_other_cells_update_a_belief_over_positions_between_cells(areas: list[SearchArea], name: str):
    grid, image = Grid(5, 5), areas[0].image
    goal = make_goal(photo_of(image, grid, (1, 3)).pixels, turn=0.0)
    session = AgentSession(make_agent(name), goal, grid, (2, 2), 8, seed=0)
    before = session.place()
    session.watch((1, 2), photo_of(image, grid, (1, 2)).pixels)
    after, belief = session.place(), session.belief()
    assert before is not None
    assert after is not None
    assert belief is not None
    assert session.observed == {(1, 2)}
    assert after[1, 3] > before[1, 3]
    state = session._state if name == "belief" else session._state.blurred
    assert state.positions.shape == (1, 9, 9)


def test_an_agent_that_reads_nothing_refuses_a_description():
    with pytest.raises(AirlocError, match="reads no descriptions"):
        Searcher(make_agent("spiral"), describe_goal(TEXT), Grid(5, 5), start=(2, 2), budget=8)


def test_a_search_by_words_is_created_and_is_the_same_in_another_server(tmp_path: Path, search_ground: SearchGround):
    store = SearchStore(tmp_path / "searches.sqlite")
    client = client_of(store, "belief")
    request = search_ground.request((0, 3), goal_text=TEXT, agent="belief")
    del request["goal"]
    response = client.post("/searches", json=request)
    assert response.status_code == 201, response.text
    state = response.json()
    assert post(client, search_ground, state).status_code == 200
    before = client.get(f"/searches/{state['id']}/belief").json()
    again = client_of(store, "belief")
    after = again.get(f"/searches/{state['id']}/belief").json()
    assert after == before


@pytest.mark.parametrize(
    ("text", "problem"), [(None, "has no goal"), ("...", "is empty"), ("pond " * 300, "300 words"), ("x" * 5000, "")]
)
def test_bad_descriptions_create_nothing(tmp_path: Path, search_ground: SearchGround, text: str | None, problem: str):
    client = client_of(SearchStore(tmp_path / "s.sqlite"), "belief")
    request = search_ground.request((0, 3), agent="belief", **({} if text is None else {"goal_text": text}))
    del request["goal"]
    response = client.post("/searches", json=request)
    assert response.status_code == 422
    assert problem in response.text
    assert client.get("/searches").json()["searches"] == []


@pytest.mark.parametrize(
    ("text", "heading", "said"),
    [
        (TEXT, 0, []),
        ("Häuser mit roten Dächern neben einem Teich", 0, ["English"]),
        ("Fly north and land beside the pond", 0, ["instruction"]),
        ("a pond\x07 beside \x1b[31ma road", 30, ["those of the grid", "Control characters"]),
    ],
)
def test_what_is_not_understood_well_is_in_the_state_of_a_search(
    tmp_path: Path, search_ground: SearchGround, text: str, heading: float, said: list[str]
):
    client = client_of(SearchStore(tmp_path / "s.sqlite"), "belief")
    request = search_ground.request((0, 3), agent="belief", goal_text=text, heading=heading)
    del request["goal"]
    created = client.post("/searches", json=request).json()
    later = client.get(f"/searches/{created['id']}").json()
    assert later["warnings"] == created["warnings"]
    assert [word in warning for word, warning in zip(said, created["warnings"], strict=True)] == [True] * len(said)
    shown = client.get(f"/searches/{created['id']}/map").json()["goal_text"]
    assert shown.isprintable()
