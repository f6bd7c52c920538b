"""The picture of the table: success on every suite for a handful of agents, beside the blind optimum."""

from collections.abc import Sequence

from airloc.drawing.charts import Bars, bar_chart
from airloc.reports.figures import style_of
from airloc.reports.suites.recipes import Recipe
from airloc.reports.suites.tables import Trials

CHARTED = ("belief", "airloc", "priv-local")
"""Who is drawn, if there."""

FLOOR = "blind optimum"


def chart(title: str, recipes: Sequence[Recipe], trials: Trials) -> str | None:
    """Draw one group of suites; None where none of the agents that are drawn has played any."""
    played = [recipe for recipe in recipes if any((agent, recipe.name) in trials for agent in CHARTED)]
    if not played:
        return None
    bars = []
    for place, agent in enumerate(CHARTED):
        found = [trials.get((agent, recipe.name)) for recipe in played]
        if any(found):
            low, high = zip(*((None, None) if each is None else each.interval for each in found), strict=True)
            values = [None if each is None else each.success for each in found]
            bars.append(Bars(agent, values, low, high, style=style_of(agent, place)))
    floors = [_floor(recipe, trials) for recipe in played]
    bars.append(Bars(FLOOR, floors, style=style_of("blind", len(CHARTED))))
    titles = [_unbroken(recipe.title) for recipe in played]
    return bar_chart(titles, bars, title=_unbroken(title), y_label="success", y_percent=True)


def _unbroken(text: str) -> str:
    """A text in which the size of a grid is one word."""
    return text.replace(" x ", "\N{NO-BREAK SPACE}x\N{NO-BREAK SPACE}")


def _floor(recipe: Recipe, trials: Trials) -> float:
    found = next(trial for (_, suite), trial in trials.items() if suite == recipe.name)
    return float(found.record["blind_optimum"])
