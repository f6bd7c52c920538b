"""What tests do on the page of a game, and what the server then holds."""

import time
from typing import Any

from airloc.game.lobby import FreeTable
from airloc.game.match import Game
from airloc.grid import MOVES


def held(table: FreeTable) -> Game:
    """The game that the server holds."""
    (game,) = [
        game
        for (player,) in table.referee.store.db.execute("SELECT DISTINCT player FROM games").fetchall()
        for game in table.referee.store.games_of(player)[-1:]
    ]
    return game


def start(page: Any) -> None:
    """Begin a game."""
    page.click("#start")
    page.wait_for_selector("#game:not([hidden])")


def click_move(page: Any, table: FreeTable, move: int, tap: bool = False) -> None:
    """Click the cell that a move leads to, and wait until the server has made it."""
    game = held(table)
    target = (game.position[0] + int(MOVES[move][0]), game.position[1] + int(MOVES[move][1]))
    cell = page.locator("#board .cell").nth(table.referee.world.grid.index(target))
    cell.tap() if tap else cell.click()
    await_turn(table, game.turn + 1)
    if held(table).ending is None:
        page.wait_for_selector(f"#board .cell.here >> text='{game.turn + 1}'")


def await_turn(table: FreeTable, turn: int) -> None:
    """Wait until the server has come to a turn."""
    until = time.monotonic() + 10
    while held(table).turn < turn:
        assert time.monotonic() < until, "the move did not arrive"
        time.sleep(0.01)
