"""Tables of agents and suites in Markdown: success in percent with its 95 % interval."""

from collections.abc import Mapping, Sequence

from airloc.reports.suites.recipes import Group, Recipe
from airloc.reports.suites.trials import Skipped, Trial
from airloc.reports.tables import DASH, floor_name, percent, percent_interval

TRAINED = "†"
"""Marks agents that were trained on these very areas."""

AHEAD, BEHIND = "belief", "airloc"
"""Whose difference the summary tells."""

Trials = Mapping[tuple[str, str], Trial]
"""By names of agent and suite."""


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column is to the left, the others to the right."""
    rule = ["---", *["--:"] * (len(header) - 1)]
    return "".join("| " + " | ".join(row) + " |\n" for row in (header, rule, *rows))


def group_table(group: Group, agents: Sequence[str], trials: Trials, skipped: Sequence[Skipped]) -> str:
    """One group: agents as rows, suites as columns, the floor last; empty where none of its suites was asked for."""
    missing = {skip.recipe.name for skip in skipped}
    asked = {suite for _, suite in trials} | missing
    shown = [recipe for recipe in group.recipes if recipe.name in asked]
    if not shown:
        return ""
    rows = []
    for agent in agents:
        cells = [_cell(agent, recipe, trials) for recipe in shown]
        if any(cells):
            rows.append([f"`{agent}`", *(cell or DASH for cell in cells)])
    rows.append(["*blind optimum*", *(_floor(recipe, trials) for recipe in shown)])
    titles = [f"{recipe.title} (no data)" if recipe.name in missing else recipe.title for recipe in shown]
    return markdown(["agent", *titles], rows)


def summary(recipes: Sequence[Recipe], trials: Trials) -> str:
    """One row a suite: the belief searcher beside the floor and the paper's agent."""
    header = ["suite", "blind optimum", f"`{AHEAD}`", "minus blind optimum", f"minus `{BEHIND}`, paired"]
    rows = [
        [recipe.name, _floor(recipe, trials), *_ahead(recipe, trials)]
        for recipe in recipes
        if any(suite == recipe.name for _, suite in trials)
    ]
    return markdown(header, rows)


def sizes(recipe: Recipe, trials: Trials) -> str:
    """How large a suite is, in one sentence; empty where nobody has played it."""
    record = next((trial.record for (_, suite), trial in trials.items() if suite == recipe.name), None)
    if record is None:
        return ""
    areas = f"{record['areas']} areas"
    if record["clusters"] < record["areas"]:
        areas += f" of {record['clusters']} tiles"
    grid = record["grid"].replace("x", " x ")
    return f"{grid} cells, {record['budget']} moves, {areas}, {record['episodes']:,} episodes."


def _ahead(recipe: Recipe, trials: Trials) -> list[str]:
    ours, theirs = (trials.get((agent, recipe.name)) for agent in (AHEAD, BEHIND))
    if ours is None:
        return [DASH] * 3
    low, high = ours.interval
    floor = ours.record["blind_optimum"]
    over = _signed(ours.success - floor, (None, None) if low is None or high is None else (low - floor, high - floor))
    return [_cell(AHEAD, recipe, trials), over, DASH if theirs is None else _signed(*ours.minus(theirs))]


def _cell(agent: str, recipe: Recipe, trials: Trials) -> str:
    trial = trials.get((agent, recipe.name))
    if trial is None:
        return ""
    mark = TRAINED if recipe.has_trained(agent) else ""
    return f"{percent(trial.success)}{mark} {_unbroken(percent_interval(trial.interval))}".rstrip()


def _floor(recipe: Recipe, trials: Trials) -> str:
    for (_, suite), trial in trials.items():
        if suite == recipe.name:
            exact = trial.record["blind_optimum_exact"]
            return ("" if exact else "≥ ") + percent(trial.record["blind_optimum"])
    return DASH


def _signed(value: float, interval: tuple[float | None, float | None]) -> str:
    low, high = interval
    span = "" if low is None or high is None else f" [{100 * low:+.1f}, {100 * high:+.1f}]"
    return f"{100 * value:+.1f}{_unbroken(span)}"


def _unbroken(interval: str) -> str:
    """An interval that stays on one line where a column is narrow."""
    return interval.replace(", ", ",\N{NO-BREAK SPACE}")


LEGEND = (
    "Success in percent, with its 95 % interval by bootstrap over areas, or over the tiles that areas were cut from. "
    f"{TRAINED} was trained on these very areas. Blind optimum: what the best path that looks at nothing finds in "
    f"expectation; ≥ where that is not proven to be the best ({floor_name(False)!r} in `airloc evaluate`)."
)
