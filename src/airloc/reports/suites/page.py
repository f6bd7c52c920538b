"""The page of all agents on all suites: Markdown, charts as SVG beside it, and everything as JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from airloc.drawing.files import write_atomically
from airloc.reports.suites.chart import chart
from airloc.reports.suites.recipes import GROUPS, Recipe
from airloc.reports.suites.tables import LEGEND, Trials, group_table, sizes, summary
from airloc.reports.suites.trials import Skipped, Trial

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
