"""The people of a study for the terminal: everybody's success, and who took part."""

from rich.box import SIMPLE_HEAD
from rich.table import Table

from airloc.game.results import People
from airloc.reports.tables import number, percent, percent_interval


def people_table(facts: People) -> Table:
    """Success of every participant, in all and by distance."""
    rows = facts.success_by_person
    distances = sorted({away for row in rows for away in row.success_by_distance}, key=int)
    table = Table("Person", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for heading in ("Games", "Success", *(f"d = {away}" for away in distances)):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        shares = [row.success, *(row.success_by_distance.get(away) for away in distances)]
        table.add_row(str(row.person), str(row.games), *map(percent, shares))
    return table


def people_lines(facts: People) -> list[str]:
    """Who took part, in words."""
    spread = percent_interval(facts.success_ci95_over_people) or "undefined"
    lines = [
        f"{facts.people} people, {facts.games} games; 95 % interval of success over people: {spread}",
        f"{facts.seconds_a_game:.1f} s a game, {facts.lost_by_time} lost by time, "
        f"{facts.unfinished} unfinished and not counted",
        "Gender: " + ", ".join(f"{count} {name}" for name, count in facts.gender.items()),
    ]
    age = facts.age
    if age.span is not None:
        low, high = age.span
        mean, median = number(age.mean, 1), number(age.median, 1)
        lines.append(f"Age: {low} to {high}, mean {mean}, median {median} ({age.said} said)")
    return lines
