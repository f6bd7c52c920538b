"""The human game: a server on which people search for the goal themselves, take part in a study, or watch agents.

Reading order: `store` (games in SQLite), `room` (games on sampled episodes, with a clock), `lobby`
(who plays what), `routes` and `app` (HTTP). `study` and `results` are the study with people, `watch` shows agents,
`worker_pool` runs them. Needs the extra `web` (FastAPI and uvicorn).
"""

from airloc.game.app import LOOPBACK_HOSTS, Limits, make_app, serve
from airloc.game.lobby import Lobby, PlayLobby, StudyLobby
from airloc.game.results import Results, StudySummary
from airloc.game.room import PlayRoom, Room
from airloc.game.routes import study_routes, watch_routes
from airloc.game.store import Episode, Game, RefusedError, Store
from airloc.game.study import (
    CONSENT,
    Participant,
    Study,
    StudyConfig,
    assign_episodes,
    count_shared,
    create_study,
    draw_games,
    episodes_of,
)
from airloc.game.watch import SearchRecord, WatchService
from airloc.game.worker_pool import Baselines, ProcessWorkerPool, WorkerPool

__all__ = [
    "CONSENT",
    "LOOPBACK_HOSTS",
    "Baselines",
    "Episode",
    "Game",
    "Limits",
    "Lobby",
    "Participant",
    "PlayLobby",
    "PlayRoom",
    "ProcessWorkerPool",
    "RefusedError",
    "Results",
    "Room",
    "SearchRecord",
    "Store",
    "Study",
    "StudyConfig",
    "StudyLobby",
    "StudySummary",
    "WatchService",
    "WorkerPool",
    "assign_episodes",
    "count_shared",
    "create_study",
    "draw_games",
    "episodes_of",
    "make_app",
    "serve",
    "study_routes",
    "watch_routes",
]
