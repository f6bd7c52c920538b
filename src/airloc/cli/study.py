"""`airloc study`: run the game as a study with people, and score them beside the agents."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from airloc.agents.registry import DEFAULT_AGENT, available_agents, make_agent
from airloc.areas.area import SearchArea
from airloc.areas.dataset import Dataset
from airloc.areas.registry import load_dataset
from airloc.cli.console import collect_game_areas, need, plural, say, writable_outputs
from airloc.cli.options import PROCEDURAL_AREAS, score_agents
from airloc.cli.play import check_agents, check_screen, time_limit
from airloc.errors import AirlocError
from airloc.evaluation.metrics import blind_optimum, blind_optimum_is_exact
from airloc.evaluation.scores import Score, compare, to_json, trajectory_lines
from airloc.files import write_atomically
from airloc.grid import Grid
from airloc.reports.tables import comparison_line, number, percent, percent_interval, score_table
from airloc.task.priors import check_size
from airloc.task.rules import check_budget
from airloc.task.suites import read_suite

if TYPE_CHECKING:
    from airloc import game

MAX_PEOPLE = 10_000
PRACTICE_AREAS = 8
PRACTICE_SEED = 999
"""Random seed of the procedural areas of practice; no other command uses it by default."""


@dataclass(frozen=True)
class Create:
    """Create a study: draw the games of every participant, and write one file that holds everything."""

    out: Positional[Path]
    """The file to write, such as study.db."""
    areas: Path | None = None
    """Folder of images, one area each, or a prepared dataset. Default: 100 procedural areas."""
    episodes: Annotated[Path | None, arg(metavar="FILE.csv")] = None
    """Take the games from this episode file. Default: per-distance draws on the areas."""
    practice: Path | None = None
    """Folder of images to practise on, other than the areas of the study. Default: procedural areas."""
    people: int = 19
    """Number of participants."""
    per_distance: int = 3
    """Games per distance for every participant: 3 give 12 games on 5 x 5."""
    seconds: float = 60.0
    """Time limit of a game in seconds; 0 for none."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    budget: int | None = None
    """Moves allowed. Default: twice the longer side."""
    split: str = ""
    """Use only the areas of this split, as windows.csv beside the images defines it."""
    consent: Path | None = None
    """Text file that participants agree to; empty lines separate paragraphs."""
    seed: int = 0
    """Random seed of the draws and of their assignment to participants."""

    def run(self) -> None:
        """Check the options, draw the games, and write the file."""
        from airloc import game

        grid = Grid.parse(self.grid)
        config = self._config(grid)
        with writable_outputs(self.out):
            areas, games = self._games(grid)
            study = game.create_study(self.out, config, areas, self._practice_areas(grid), games)
        each = f"{plural(len(games[0]), 'game')} each on {plural(len(areas), 'area')}"
        say(f"{self.out}: {plural(self.people, 'participant')}, {each}.")
        if shared := game.count_shared(games):
            print(f"There are too few episodes: {shared} games repeat an episode of another participant.")
        say(f"Start it with: airloc study serve {self.out}\nPrint the links with: airloc study links {self.out}")
        study.store.close()

    def _config(self, grid: Grid) -> "game.StudyConfig":
        """Check everything that needs no areas."""
        from airloc import game

        if self.people < 1 or self.per_distance < 1:
            raise AirlocError(
                f"A study of {self.people} participants with {self.per_distance} games per distance is empty",
                "Give --people and --per-distance of 1 or more",
            )
        if self.people > MAX_PEOPLE:
            problem = f"A study of {self.people} participants is too large"
            raise AirlocError(problem, f"Give --people of at most {MAX_PEOPLE}")
        check_screen(grid)
        check_size(grid)
        return game.StudyConfig(
            grid=str(grid),
            budget=check_budget(grid.default_budget if self.budget is None else self.budget),
            seconds=time_limit(self.seconds),
            seed=self.seed,
            consent=game.CONSENT if self.consent is None else _read_text(self.consent),
        )

    def _games(self, grid: Grid) -> tuple[list[SearchArea], list[list["game.Episode"]]]:
        """Read the areas, and draw every participant's games or take them from the episode file."""
        from airloc import game

        listed = None if self.episodes is None else read_suite(self.episodes, grid, budget=self.budget)
        areas = collect_game_areas(self._dataset(None if listed is None else listed.areas).areas(grid))
        if listed is None:
            names = [area.name for area in areas]
            return areas, game.draw_games(names, grid, self.people, self.per_distance, self.seed)
        by_name = {area.name: area for area in areas}
        missing = [name for name in listed.areas if name not in by_name]
        if missing:
            problem = f"The area {missing[0]!r} of the episode file {self.episodes} is not among the areas"
            raise AirlocError(problem, "Give the folder that holds it with --areas")
        games = game.assign_episodes(game.episodes_of(listed), self.people, self.per_distance, self.seed)
        return [by_name[name] for name in listed.areas], games

    def _dataset(self, names: tuple[str, ...] | None) -> Dataset:
        """Return the dataset of the areas, limited to these names if it is one of images."""
        if self.areas is None:
            return load_dataset("synthetic", split=self.split, count=PROCEDURAL_AREAS, seed=self.seed)
        return load_dataset(self.areas, split=self.split, names=names)

    def _practice_areas(self, grid: Grid) -> list[SearchArea]:
        if self.practice is None:
            return collect_game_areas(load_dataset("synthetic", count=PRACTICE_AREAS, seed=PRACTICE_SEED).areas(grid))
        return collect_game_areas(load_dataset(self.practice).areas(grid))


@dataclass(frozen=True)
class Serve:
    """Let participants play. You can stop and restart the server at any time; nothing is lost."""

    study: Positional[Path]
    """The study's file."""
    agents: tuple[str, ...] = (DEFAULT_AGENT,)
    """Agents whose paths are shown after a game."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    public: bool = False
    """Allow access from other machines; required for any address except loopback."""
    port: int = 8766
    """Port to listen on; 0 for any free port."""
    names: tuple[str, ...] = ()
    """Further host names that the server answers to, such as that of a proxy in front of it."""

    def run(self) -> None:
        """Serve until Ctrl-C."""
        from airloc import game, web

        check_agents(self.agents)
        study = game.Study(self.study)
        with web.bind(self.host, self.port, public=self.public) as bound, study.served():
            samplers = study.samplers()
            worker_pool = game.ProcessWorkerPool(samplers, self.agents)
            lobby = game.StudyLobby.open(study, samplers, worker_pool, self.agents)
            hosts = None if self.public else (*game.LOOPBACK_HOSTS, *self.names)
            url = web.url_of(bound)
            say(f"The study runs at {url}. Print the participants' links with: airloc study links {self.study}")
            print(f"See their progress at {url}admin with the token {study.admin_token}", flush=True)
            game.serve(game.make_app(lobby, routers=[game.study_routes(lobby)], hosts=hosts), bound)
            worker_pool.close()


@dataclass(frozen=True)
class Links:
    """Print every participant's personal link."""

    study: Positional[Path]
    """The study's file."""
    base: str = "http://localhost:8766"
    """URL under which participants reach the server."""

    def run(self) -> None:
        """Print one line per participant."""
        from airloc import game

        for person in game.Study(self.study).participants():
            print(f"{person.number}\t{self.base.rstrip('/')}/join/{person.token}")


@dataclass(frozen=True)
class Backup:
    """Copy a study to a new file. You can do that at any time, also while the server runs."""

    study: Positional[Path]
    """The study's file."""
    out: Positional[Path]
    """The file to write, which must not exist."""

    def run(self) -> None:
        """Copy the file and print what the copy holds."""
        from airloc import game

        with writable_outputs(self.out):
            study = game.Study(self.study)
            study.backup(self.out)
            study.store.close()
        games = game.Study(self.out).store.recorded()
        moves = sum(one.turn for one in games)
        say(f"{self.out}: {plural(len(games), 'game')} with {plural(moves, 'move')}.")


@dataclass(frozen=True)
class Results:
    """Score people beside agents that play exactly the same episodes."""

    study: Positional[Path]
    """The study's file."""
    agents: tuple[str, ...] | None = None
    """Agents that play the same episodes. Default: all."""
    csv: Annotated[Path | None, arg(metavar="OUT.csv")] = None
    """Write one row per game to this file."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write the record of Human to this file, in the format of `airloc evaluate --json`."""
    records: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Write the records of Human and of every agent to this folder, one file each."""
    trajectories: Annotated[Path | None, arg(metavar="OUT.jsonl")] = None
    """Write the path of every game to this file, one JSON object per line, as `airloc evaluate` does."""
    save_episodes: Annotated[Path | None, arg(metavar="OUT.csv")] = None
    """Write the episodes that were played to this episode file."""

    def run(self) -> None:
        """Read the games, let the agents play, write the files and print the tables."""
        from airloc import game

        study = game.Study(self.study)
        names = available_agents() if self.agents is None else list(self.agents)
        players = [make_agent(name) for name in names]  # a wrong name is an error before the areas are read
        results = game.Results.read(study)
        folder = [] if self.records is None else [self.records / f"{name}.json" for name in ("Human", *names)]
        with writable_outputs(self.csv, self.json, self.trajectories, self.save_episodes, *folder):
            human = results.score()
            agents = score_agents(players, results.suite, results.areas)
            self._write(results, human, agents)
        _print_results(results, human, agents)

    def _write(self, results: "game.Results", human: Score, agents: list[Score]) -> None:
        record = human.record() | {"study": asdict(results.summary(human))}
        record["comparisons"] = [compare(human, score) for score in agents]
        if self.csv is not None:
            write_atomically(self.csv, results.csv())
        if self.json is not None:
            write_atomically(self.json, to_json(record))
        if self.trajectories is not None:
            write_atomically(self.trajectories, trajectory_lines(human))
        if self.save_episodes is not None:
            write_atomically(self.save_episodes, results.suite.to_bytes())
        if self.records is not None:
            for name, content in [(human.agent, record), *((score.agent, score.record()) for score in agents)]:
                write_atomically(self.records / f"{name}.json", to_json(content))


def main(arguments: Sequence[str]) -> None:
    """Run `airloc study`."""
    command: Create | Serve | Links | Backup | Results = tyro.extras.subcommand_cli_from_dict(
        {"create": Create, "serve": Serve, "links": Links, "backup": Backup, "results": Results},
        args=arguments,
        prog="airloc study",
        description="Run the game as a study with people, and score them beside the agents.",
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )
    need("web", "fastapi", "uvicorn")
    command.run()


def _print_results(results: "game.Results", human: Score, agents: list[Score]) -> None:
    console, summary = Console(), results.summary(human)
    floor, exact = blind_optimum(results.suite), blind_optimum_is_exact(results.suite)
    console.print(score_table([*agents, human], floor, exact=exact))
    console.print(_participants_table(summary))
    for line in _summary_lines(summary):
        print(line)
    for score in agents[-1:]:
        print(comparison_line(human.agent, compare(human, score)))


def _participants_table(summary: "game.StudySummary") -> Table:
    """Return the success of every participant, overall and by distance."""
    rows = summary.success_by_person
    distances = sorted({away for row in rows for away in row.success_by_distance}, key=int)
    table = Table("Person", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for heading in ("Games", "Success", *(f"d = {away}" for away in distances)):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        rates = [row.success, *(row.success_by_distance.get(away) for away in distances)]
        table.add_row(str(row.person), str(row.games), *map(percent, rates))
    return table


def _summary_lines(summary: "game.StudySummary") -> list[str]:
    """Return the facts about the participants, one sentence each."""
    interval = percent_interval(summary.success_ci95_over_people) or "undefined"
    lines = [
        f"{plural(summary.people, 'person', 'people')}, {plural(summary.games, 'game')}; "
        f"95 % interval of success over people: {interval}",
        f"{summary.seconds_a_game:.1f} s per game, {plural(summary.lost_by_time, 'game')} out of time",
        f"Not counted: {plural(summary.left, 'game')} whose page was closed, "
        f"{plural(summary.disconnected, 'game')} whose connection was lost, "
        f"{plural(summary.unfinished, 'game')} unfinished",
        "Gender: " + ", ".join(f"{count} {name}" for name, count in summary.gender.items()),
    ]
    age = summary.age
    if age.span is not None:
        low, high = age.span
        mean, median = number(age.mean, 1), number(age.median, 1)
        lines.append(f"Age: {low} to {high}, mean {mean}, median {median} ({age.said} of {summary.people} answered)")
    return lines


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AirlocError(f"Cannot read the text {str(path)!r}: {error}", "Give a text file in UTF-8") from error
