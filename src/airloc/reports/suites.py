"""How agents did on suites: what the tables are made from."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from airloc.drawing.charts import Bars, bar_chart
from airloc.evaluation.benchmarks.suites import GROUPS, Group, Recipe
from airloc.evaluation.intervals import Bootstrap, Interval
from airloc.evaluation.metrics import Metric
from airloc.files import write_atomically
from airloc.reports.figures import style_of
from airloc.reports.tables import DASH, floor_name, percent, percent_interval


@dataclass(frozen=True, eq=False)
class Trial:
    """How one agent did on one suite."""

    agent: str
    recipe: Recipe
    record: dict[str, Any]
    """The record of the `evaluate` contract."""
    episodes: Path
    """Which episodes were found, how much each counts and what its area was cut from; see `pack_episodes`."""
    made_from: dict[str, str] = field(default_factory=dict)
    """Digests of the data, the weights and the code, and the address of the result."""

    @property
    def success(self) -> float:
        """Share of goals found."""
        return float(self.record["success"])

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the success."""
        low, high = self.record["ci95"]["success"]
        return low, high

    @property
    def seed(self) -> int:
        """What the episodes were drawn by."""
        return int(self._packed["seed"])

    @cached_property
    def _packed(self) -> dict[str, Any]:
        packed: dict[str, Any] = json.loads(self.episodes.read_bytes())
        return packed

    def minus(self, other: "Trial") -> tuple[float, Interval]:
        """By how much this agent found more than another on the same episodes, and the paired interval."""
        mine, theirs = self._packed, other._packed
        weight = np.array(mine["weight"])
        found = [weight * [letter == "1" for letter in packed["found"]] for packed in (mine, theirs)]
        metrics = [Metric(each, weight) for each in found]
        bootstrap = Bootstrap([mine["tiles"][area] for area in mine["area"]], self.seed)
        return self.success - other.success, bootstrap.difference(*metrics)


@dataclass(frozen=True)
class Skipped:
    """A suite that could not be played here."""

    recipe: Recipe
    why: str


def pack_episodes(
    found: Sequence[bool], area: Sequence[int], tiles: Sequence[str], weight: Sequence[float], seed: int
) -> str:
    """The text of a trial's `episodes` file.

    Args:
        found: Whether each goal was found, (E,).
        area: Number of each episode's area, (E,).
        tiles: What each area was cut from.
        weight: How much each episode counts, (E,).
        seed: Decides the bootstrap.
    """
    letters = "".join("1" if one else "0" for one in found)
    packed = {"found": letters, "area": list(area), "tiles": list(tiles), "weight": list(weight), "seed": seed}
    return json.dumps(packed) + "\n"


# ---------- Tables of agents and suites in Markdown: success in percent with its 95 % interval.
# ~

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


# ---------- The picture of the table: success on every suite for a handful of agents, beside the blind optimum.
# ~

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
    floors = [_floor_chart(recipe, trials) for recipe in played]
    bars.append(Bars(FLOOR, floors, style=style_of("blind", len(CHARTED))))
    titles = [_unbroken_chart(recipe.title) for recipe in played]
    return bar_chart(titles, bars, title=_unbroken_chart(title), y_label="success", y_percent=True)


def _unbroken_chart(text: str) -> str:
    """A text in which the size of a grid is one word."""
    return text.replace(" x ", "\N{NO-BREAK SPACE}x\N{NO-BREAK SPACE}")


def _floor_chart(recipe: Recipe, trials: Trials) -> float:
    found = next(trial for (_, suite), trial in trials.items() if suite == recipe.name)
    return float(found.record["blind_optimum"])


# ---------- The page of all agents on all suites: Markdown, charts as SVG beside it, and everything as JSON.
# ~

INTRODUCTION = (
    "One command lets every agent that can be had here play every suite, and writes this page. A suite is what an "
    "`airloc evaluate` command says but for the agent; all are declared in `airloc/reports/suites/suites.toml`. "
    "Results are addressed by the content of data, weights and code: run again, the command plays what has changed "
    "and no more."
)

PAGE, DATA, PICTURES = "suites.md", "suites.json", "img"


@dataclass(frozen=True)
class About:
    """What the page says about itself."""

    command: str
    """Makes everything again, as typed."""
    made_with: str
    """Version, code and machine."""
    recipes: Sequence[Recipe]
    """The suites that were asked for."""
    agents: Sequence[str]
    """The agents that were asked for, in the order of the rows."""
    skipped: Sequence[Skipped] = ()
    seed: int = 0
    most: int | None = None
    """How many areas of each suite were played at most; None for all of them."""


@dataclass(frozen=True)
class Page:
    """The page as the content of its files."""

    markdown: str
    pictures: dict[str, str]
    """SVG by file name."""
    data: str
    """All records as JSON."""

    def write(self, folder: Path) -> Path:
        """Write all files; give the page."""
        for name, content in self.pictures.items():
            write_atomically(folder / PICTURES / name, content)
        write_atomically(folder / DATA, self.data)
        return write_atomically(folder / PAGE, self.markdown)


def make_page(played: Sequence[Trial], about: About) -> Page:
    """Make the page of what was played."""
    trials = {(trial.agent, trial.recipe.name): trial for trial in played}
    pictures: dict[str, str] = {}
    text = "".join(_text(trials, about, pictures))
    return Page(text, pictures, json.dumps(list(map(_datum, played)), indent=1, allow_nan=False) + "\n")


def _text(trials: Trials, about: About, pictures: dict[str, str]) -> Iterator[str]:
    yield "# Every agent on every suite\n\n"
    yield f"{INTRODUCTION}\n\n    {about.command}\n\nSeed {about.seed}. {about.made_with}\n\n{LEGEND}\n\n"
    yield from (f"**{remark}**\n\n" for remark in _remarks(about))
    yield f"## At a glance\n\n{summary(about.recipes, trials)}\n"
    for number, group in enumerate(GROUPS, start=1):
        if table := group_table(group, about.agents, trials, about.skipped):
            yield f"## {group.title}\n\n{table}\n"
            drawn = chart(group.title, group.recipes, trials)
            if drawn is not None:
                pictures[name := f"suites-{number}.svg"] = drawn
                yield f"![Success on each suite beside the blind optimum]({PICTURES}/{name})\n\n"
    yield "## The suites and their commands\n\n"
    yield from (_described(recipe, about.seed, trials) for recipe in about.recipes)


def _remarks(about: About) -> Iterator[str]:
    if about.most is not None:
        yield (
            f"At most {about.most} areas of each suite were played, to see that everything runs: the figures mean "
            "nothing, and the commands below play all areas."
        )
    for skip in about.skipped:
        yield f"{skip.recipe.name} was not played: {skip.why}."


def _described(recipe: Recipe, seed: int, trials: Trials) -> str:
    commands = "".join(f"    {command}\n" for command in recipe.commands(seed=seed))
    told = f"{recipe.what} {sizes(recipe, trials)}".rstrip()
    return f"**{recipe.name}**: {told}\n\n{commands}\n"


def _datum(trial: Trial) -> dict[str, object]:
    recipe = trial.recipe
    commands = recipe.commands(trial.agent, seed=trial.seed)
    return {"suite": recipe.name, "agent": trial.agent, "commands": commands, **trial.made_from, "record": trial.record}
