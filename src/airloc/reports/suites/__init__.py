"""The suites that every agent is measured on, as data (`suites.toml`), and the page of all agents on all of them.

A suite here is a recipe: what an `airloc evaluate` command says but for the agent. The command of every cell of the
tables follows from it.
"""

from airloc.reports.suites.page import About, Page, make_page
from airloc.reports.suites.recipes import GROUPS, RECIPES, Group, Prepare, Recipe, find
from airloc.reports.suites.trials import Skipped, Trial, pack_episodes

__all__ = [
    "GROUPS",
    "RECIPES",
    "About",
    "Group",
    "Page",
    "Prepare",
    "Recipe",
    "Skipped",
    "Trial",
    "find",
    "make_page",
    "pack_episodes",
]
