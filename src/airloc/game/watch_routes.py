"""The routes of watching: areas, searches as data, searches as an animation."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from airloc.agents.registry import available_agents
from airloc.drawing.palette import heat, hex_of
from airloc.game.files import page_files, respond
from airloc.game.refusal import RefusedError
from airloc.game.watch import MAX_AGENTS, Watch
from airloc.grid import Cell

Name = Annotated[str, Query(max_length=300)]
CellText = Annotated[str, Query(pattern=r"^\d{1,2},\d{1,2}$")]
_COLOURS = 33
"""Steps of the colours of a belief on the page."""
_CACHE = {"cache-control": "private, max-age=3600"}


def watch_routes(watch: Watch, chosen: Sequence[str]) -> APIRouter:
    """Make the routes.

    Args:
        watch: The searches.
        chosen: The agents that the page shows at first.
    """
    router, files = APIRouter(), page_files()
    listing: dict[str, Any] = {
        "areas": watch.world.names,
        "rows": watch.world.grid.rows,
        "cols": watch.world.grid.cols,
        "budget": watch.world.budget,
        "agents": available_agents(),
        "chosen": [name for name in chosen if name in available_agents()][:MAX_AGENTS],
        "most": MAX_AGENTS,
        "heat": [hex_of((r, g, b)) for r, g, b in heat(np.linspace(0, 1, _COLOURS)).tolist()],
    }

    @router.get("/watch")
    async def page(request: Request) -> Response:
        return respond(files["watch.html"], request)

    @router.get("/api/watch")
    async def what() -> Response:
        return JSONResponse(listing)

    @router.get("/api/watch/area.png")
    async def picture(area: Name) -> Response:
        if area not in watch.world.names:
            raise RefusedError(404, "no-area", "There is no area of that name to watch")
        content = await watch.picture(watch.world.names.index(area))
        return Response(content, media_type="image/png", headers=_CACHE)

    @router.get("/api/watch/search")
    async def search(area: Name, start: CellText, goal: CellText, agent: Name) -> Response:
        (name,) = watch.agents(agent)[:1]
        episode = watch.episode(area, _cell(start), _cell(goal))
        track = await watch.track(name, episode)
        return JSONResponse(asdict(track), headers=_CACHE)

    @router.get("/api/watch/search.gif")
    async def animation(
        area: Name, start: CellText, goal: CellText, agents: Name, ms: Annotated[int, Query(ge=100, le=2000)] = 700
    ) -> Response:
        episode = watch.episode(area, _cell(start), _cell(goal))
        content = await watch.animation(watch.agents(agents), episode, ms)
        headers = {**_CACHE, "content-disposition": 'attachment; filename="search.gif"'}
        return Response(content, media_type="image/gif", headers=headers)

    return router


def _cell(text: str) -> Cell:
    row, col = text.split(",")
    return int(row), int(col)
