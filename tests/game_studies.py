"""Small studies for tests, and people who play them."""

import random
from collections.abc import Sequence
from pathlib import Path

from airloc.cli.study import study_desk, study_worlds
from airloc.game.study import Rules, Study, create_study, draw_games
from airloc.game.study_lobby import StudyLobby
from airloc.game.worker_pool import ThreadWorkerPool
from airloc.grid import Grid
from game_hall import Client, move_towards, noise_areas


def small_study(
    path: Path, *, people: int = 2, each: int = 1, areas: int = 12, grid: str = "3x3", seconds: float = 60.0
) -> Study:
    """A study on areas of noise."""
    shape = Grid.parse(grid)
    shown = noise_areas(areas, shape)
    games = draw_games([area.name for area in shown], shape, people, each, seed=0)
    rules = Rules(grid, shape.default_budget, seconds, 0)
    return create_study(path, rules, shown, noise_areas(2, shape, seed=99), games)


def desk_of(study: Study, agents: Sequence[str] = ()) -> StudyLobby:
    """The desk of a study, with agents in this process."""
    worlds = study_worlds(study)
    return study_desk(study, worlds, ThreadWorkerPool(worlds), agents)


def joined(url: str, token: str) -> Client:
    """A participant who has opened their link."""
    client = Client(url)
    assert client.ask("GET", f"/join/{token}").status == 303
    return client


def take_part(study: Study, lobby: StudyLobby, seed: int = 0, skill: float = 0.5) -> None:
    """Everybody plays all of their games, some better and some worse."""
    dice = random.Random(seed)
    for person in study.people():
        lobby.agree(person.token, dice.randint(14, 42), dice.choice(["man", "woman", None]))
        lobby.end_practice(person.token)
        while lobby.stage(person.token) == "games":
            table, game = lobby.begin(person.token, recorded=True)
            while game.ending is None:
                move = move_towards(game.position, game.episode.goal) if dice.random() < skill else dice.randrange(8)
                game = table.referee.move(game.id, person.token, game.turn, move)
