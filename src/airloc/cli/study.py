"""The people of a study for the terminal: everybody's success, and who took part."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from airloc.agents.registry import DEFAULT_AGENT, available_agents, make_agent
from airloc.areas.area import SearchArea
from airloc.areas.registry import choose_source
from airloc.areas.synthetic import Synthetic
from airloc.cli.console import bar, promised, reading
from airloc.cli.play import check_agents, check_screen, limit, say
from airloc.errors import AirlocError
from airloc.evaluation.evaluate import Score, compare, evaluate, to_json, trajectory_lines
from airloc.evaluation.metrics import blind_optimum, blind_optimum_is_exact
from airloc.files import write_atomically
from airloc.game.app import LOOPBACK_NAMES, listen, make_app, serve
from airloc.game.baselines import Baselines
from airloc.game.lobby import FreeTable
from airloc.game.lobby import Table as GameTable
from airloc.game.match import Episode
from airloc.game.referee import Referee
from airloc.game.results import People, Results, results_of
from airloc.game.routes import study_routes
from airloc.game.store import Store
from airloc.game.study import CONSENT, Rules, Study, assign, create_study, draw_games, episodes_of, overlaps
from airloc.game.study_lobby import StudyLobby
from airloc.game.worker_pool import ProcessWorkerPool, WorkerPool
from airloc.grid import Grid
from airloc.reports.tables import comparison_line, number, percent, percent_interval, score_table
from airloc.task.priors import check_size
from airloc.task.rules import check_budget
from airloc.task.suites import read_suite
from airloc.task.world import World
from airloc.web import url_of


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


# ---------- `airloc study`: the game as a study with people, from the links to the Human row beside all agents.
# ~

PRACTICE_AREAS = 8
PRACTICE_SEED = 999
"""Procedural areas for practice that no other command draws by default."""


@dataclass(frozen=True)
class Create:
    """Make a study: draw the games of every participant, and write one file that holds everything."""

    out: Positional[Path]
    """The file to write, such as study.db."""
    areas: Path | None = None
    """Folder of pictures, each an area, or a prepared cache; 100 procedural areas unless given."""
    episodes: Annotated[Path | None, arg(metavar="FILE.csv")] = None
    """Draw the games from this episode file; from per-distance draws on the areas unless given."""
    practice: Path | None = None
    """Folder of pictures to practise on, none of which is an area of the study; procedural areas unless given."""
    people: int = 19
    """How many participants."""
    per_distance: int = 3
    """Games of each distance for every participant: 3 make 12 games on 5 x 5."""
    seconds: float = 60.0
    """Time limit of a game; 0 for none."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    budget: int | None = None
    """Moves allowed; twice the longer side unless given."""
    split: str = ""
    """Only the areas that windows.csv beside the pictures puts into this split."""
    consent: Path | None = None
    """A text file with what participants agree to, paragraphs separated by empty lines."""
    seed: int = 0
    """Decides who plays what."""

    def run(self) -> None:
        """Draw and write."""
        self._check()
        grid = Grid.parse(self.grid)
        budget = check_budget(grid.default_budget if self.budget is None else self.budget)
        text = CONSENT if self.consent is None else _read(self.consent)
        with promised([self.out]):
            areas, games = self._games(grid)
            practice = self._practice(grid)
            rules = Rules(str(grid), budget, limit(self.seconds), self.seed, text)
            study = create_study(self.out, rules, areas, practice, games)
        say(f"{self.out}: {self.people} participants, {len(games[0])} games each on {len(areas)} areas.")
        if twice := overlaps(games):
            say(f"The episodes did not last: {twice} of the games are played by somebody else too.")
        say(f"Start it with: airloc study serve {self.out}\nShow the links with: airloc study links {self.out}")
        study.store.close()

    def _check(self) -> None:
        if self.people < 1 or self.per_distance < 1:
            raise AirlocError("A study needs people and games", "Give --people and --per-distance of 1 or more")
        check_screen(Grid.parse(self.grid))
        check_size(Grid.parse(self.grid))

    def _games(self, grid: Grid) -> tuple[list[SearchArea], list[list[Episode]]]:
        """Read the areas and draw everybody's games, or take them from the file."""
        listed = None if self.episodes is None else read_suite(self.episodes, grid, budget=self.budget)
        only = None if listed is None else listed.areas
        areas = reading(choose_source(self.areas, split=self.split, only=only, seed=self.seed).areas(grid))
        if listed is None:
            names = [area.name for area in areas]
            return areas, draw_games(names, grid, self.people, self.per_distance, self.seed)
        by_name = {area.name: area for area in areas}
        missing = [name for name in listed.areas if name not in by_name]
        if missing:
            problem = f"The episode file {self.episodes} names the area {missing[0]!r}, which is not among the areas"
            raise AirlocError(problem, "Give the folder that holds it with --areas")
        games = assign(episodes_of(listed), self.people, self.per_distance, self.seed)
        return [by_name[name] for name in listed.areas], games

    def _practice(self, grid: Grid) -> list[SearchArea]:
        if self.practice is None:
            return reading(Synthetic(count=PRACTICE_AREAS, seed=PRACTICE_SEED).areas(grid))
        return reading(choose_source(self.practice).areas(grid))


@dataclass(frozen=True)
class Serve:
    """Let participants play; stop and start it as you like, nothing is lost."""

    study: Positional[Path]
    """The study's file."""
    agents: tuple[str, ...] = (DEFAULT_AGENT,)
    """Whose paths are shown when a game is over."""
    host: str = "127.0.0.1"
    """The address to listen on."""
    public: bool = False
    """Let other machines in; needed for any address but loopback."""
    port: int = 8766
    """The port to listen on; 0 for any that is free."""
    names: tuple[str, ...] = ()
    """Further names that the server answers to, such as that of a proxy in front of it."""

    def run(self) -> None:
        """Serve until interrupted."""
        study = Study(self.study)
        with listen(self.host, self.port, public=self.public) as taken:
            check_agents(self.agents)
            worlds = study_worlds(study)
            worker_pool = ProcessWorkerPool(worlds, self.agents)
            lobby = study_desk(study, worlds, worker_pool, self.agents)
            hosts = None if self.public else (*LOOPBACK_NAMES, *self.names)
            url = url_of(taken)
            say(f"The study is at {url}. Participants open their own links: airloc study links {self.study}")
            say(f"See how far they are at {url}admin with the token {study.admin}")
            serve(make_app(lobby, hosts=hosts, more=[study_routes(lobby)]), taken)
            worker_pool.close()
        study.store.close()


@dataclass(frozen=True)
class Links:
    """Print every participant's own link."""

    study: Positional[Path]
    """The study's file."""
    base: str = "http://localhost:8766"
    """Where participants reach the server."""

    def run(self) -> None:
        """Print one line a person."""
        for person in Study(self.study).people():
            say(f"{person.number}\t{self.base.rstrip('/')}/join/{person.token}")


@dataclass(frozen=True)
class ShowResults:
    """Score people, beside agents that play exactly the same episodes."""

    study: Positional[Path]
    """The study's file."""
    agents: tuple[str, ...] | None = None
    """Which agents play the same episodes; all unless given."""
    csv: Annotated[Path | None, arg(metavar="OUT.csv")] = None
    """Write every game here, one line each."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write the record of the row Human here, as `airloc evaluate --json` writes an agent's."""
    records: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Write the records of Human and of every agent into this folder, one file each."""
    trajectories: Annotated[Path | None, arg(metavar="OUT.jsonl")] = None
    """Write every game's path here, one JSON object a line, as `airloc evaluate` writes an agent's."""
    save_episodes: Annotated[Path | None, arg(metavar="OUT.csv")] = None
    """Write the episodes that were played here, as an episode file."""

    def run(self) -> None:
        """Read, let the agents play, write and show."""
        results = results_of(Study(self.study))
        names = available_agents() if self.agents is None else list(self.agents)
        folder = [] if self.records is None else [self.records / f"{name}.json" for name in ("Human", *names)]
        outputs = (self.csv, self.json, self.trajectories, self.save_episodes, *folder)
        with promised([path for path in outputs if path]):
            human = results.score()
            agents = _agents(names, results)
            self._write(results, human, agents)
        _show(results, human, agents)

    def _write(self, results: Results, human: Score, agents: list[Score]) -> None:
        record = human.record() | {"study": asdict(results.of_people(human))}
        record["comparisons"] = [compare(human, score) for score in agents]
        if self.csv is not None:
            write_atomically(self.csv, results.csv())
        if self.json is not None:
            write_atomically(self.json, to_json(record))
        if self.trajectories is not None:
            write_atomically(self.trajectories, trajectory_lines(human))
        if self.save_episodes is not None:
            write_atomically(self.save_episodes, results.suite.file())
        if self.records is not None:
            for name, content in [(human.agent, record), *((score.agent, score.record()) for score in agents)]:
                write_atomically(self.records / f"{name}.json", to_json(content))


Command: TypeAlias = (
    Annotated[Create, tyro.conf.subcommand("create")]
    | Annotated[Serve, tyro.conf.subcommand("serve")]
    | Annotated[Links, tyro.conf.subcommand("links")]
    | Annotated[ShowResults, tyro.conf.subcommand("results")]
)


def main(arguments: Sequence[str]) -> None:
    """Run `airloc study`."""
    command: Create | Serve | Links | ShowResults = tyro.cli(
        Command,
        args=list(arguments),
        prog="airloc study",
        description="Run the game as a study with people, and get the Human row.",
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )
    command.run()


def study_worlds(study: Study) -> dict[str, World]:
    """What a study is played on: the areas of its games, and those of practice."""
    areas = {"games": study.areas(), "practice": study.areas(practice=True)}
    return {
        name: World.build(some, study.grid, study.rules.budget, "per-distance", None) for name, some in areas.items()
    }


def study_desk(study: Study, worlds: Mapping[str, World], worker_pool: WorkerPool, agents: Sequence[str]) -> StudyLobby:
    """Set the tables of a study: one for its games, one for practice."""
    stores = {"games": study.store, "practice": Store()}
    referees = {name: Referee(worlds[name], stores[name], study.rules.seconds) for name in worlds}
    baselines = {name: Baselines(agents, worker_pool, name) for name in worlds}
    recorded = GameTable(referees["games"], baselines["games"])
    return StudyLobby(study, recorded, FreeTable(referees["practice"], baselines["practice"]))


def _agents(names: Sequence[str], results: Results) -> list[Score]:
    """Let agents play the episodes that people played, best last."""
    agents = [make_agent(name) for name in names]
    with bar("playing", len(results.suite) * len(agents)) as advance:
        scores = [evaluate(agent, results.suite, results.areas, on_batch=advance) for agent in agents]
    return sorted(scores, key=lambda score: score.value("success") or 0.0)


def _show(results: Results, human: Score, agents: list[Score]) -> None:
    console, facts = Console(), results.of_people(human)
    floor, exact = blind_optimum(results.suite), blind_optimum_is_exact(results.suite)
    console.print(score_table([*agents, human], floor, exact=exact))
    console.print(people_table(facts))
    for line in people_lines(facts):
        say(line)
    for score in agents[-1:]:
        say(comparison_line(human.agent, compare(human, score)))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AirlocError(f"Cannot read the text {str(path)!r}: {error}", "Give a text file in UTF-8") from error
