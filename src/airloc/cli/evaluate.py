"""`airloc evaluate`: score an agent on areas, with intervals and beside the blind optimum."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from tyro.conf import Positional, UseAppendAction, arg

from airloc import __version__
from airloc.agents.matching import declaration_threshold
from airloc.agents.registry import DEFAULT_AGENT, AgentOptions, make_agent
from airloc.areas.area import SearchArea
from airloc.areas.pairs import Names
from airloc.areas.registry import choose_source, load_pairs
from airloc.cli.console import bar, promised, reading
from airloc.errors import AirlocError
from airloc.evaluation.controls import Change, check_control
from airloc.evaluation.evaluate import Score, check_device, compare, evaluate, to_json, trajectory_lines
from airloc.files import write_atomically
from airloc.grid import Grid
from airloc.reports.tables import comparison_line, goals_line, score_table
from airloc.task.priors import check_size
from airloc.task.rules import check_budget
from airloc.task.suites import GENERATED, Suite, declared, generate, read_suite

MOST_PER_AREA = 10_000


@dataclass(frozen=True)
class Evaluate:
    """Score an agent on areas: the paper's five metrics with 95 % intervals, beside the blind optimum."""

    agent: Positional[str] = DEFAULT_AGENT
    """Name of an agent, or a checkpoint folder."""
    areas: Path | None = None
    """Folder of pictures, each an area, or a prepared cache; 100 procedural areas unless given."""
    goals: Path | None = None
    """Folder to take the goals' pictures from: the same file name, or its pre_disaster/post_disaster partner."""
    episodes: str = "per-distance"
    """An episode file (.csv), or per-distance, all-pairs, uniform or far-pairs."""
    per_area: Annotated[int | None, arg(metavar="EPISODES")] = None
    """Episodes drawn for each area: at each distance 1 (per-distance) or 5 (far-pairs), 4 (uniform) unless given."""
    grid: str = "5x5"
    """Rows and columns of cells."""
    budget: int | None = None
    """Moves allowed; twice the longer side unless given."""
    moves: Literal[8, 4] = 8
    """The king's eight moves, or the four straight ones within a closed border."""
    split: str = ""
    """Only the areas that windows.csv beside the pictures puts into this split."""
    only: UseAppendAction[Annotated[tuple[str, ...], arg(metavar="PATTERN")]] = ()
    """Only the areas whose file names match a pattern such as 'santa-rosa-*'; may be given several times."""
    without: UseAppendAction[Annotated[tuple[str, ...], arg(name="except", metavar="PATTERN")]] = ()
    """Not the areas whose file names match a pattern; may be given several times."""
    cell_metres: float | None = None
    """Crop areas of known ground size so that each cell stands for this many metres."""
    equal_distances: bool = False
    """With all-pairs: weigh pairs so that every distance counts the same, as per-distance draws them."""
    control: Literal["wrong-goal", "mean-goal"] | None = None
    """Swap the goal's picture, to see how much of the score is vision."""
    change: str | None = None
    """Let the goal's picture differ from what the flight sees: photometric, blur, coarse, off-grid, turned or all."""
    change_strength: float = 1.0
    """How much it differs, from 0 (not at all) to 1."""
    false_alarm_cost: Annotated[float | None, arg(metavar="FINDS")] = None
    """Let episodes end by declaration: the agent says "here" where that pays, a false alarm costing this many finds."""
    against: str | None = None
    """Another agent to compare with on the same episodes, in pairs."""
    sample: bool = False
    """Draw moves by their probability instead of taking the most probable one."""
    exact: bool = False
    """Compute in full precision even where the CPU is faster with less, so that all machines give the same answers."""
    device: str = "cpu"
    """Where to compute, such as cpu or cuda."""
    batch: int = 1024
    """Episodes played in step; 1 plays one at a time."""
    seed: int = 0
    """Decides the drawn episodes and every random choice."""
    json: Annotated[Path | None, arg(metavar="OUT.json")] = None
    """Write the score here."""
    trajectories: Annotated[Path | None, arg(metavar="OUT.jsonl")] = None
    """Write every episode's path here, one JSON object a line."""
    save_episodes: Annotated[Path | None, arg(metavar="OUT.csv")] = None
    """Write the episodes here, as an episode file."""
    timing: bool = True
    """Write the runtime; without it the same seed gives the same bytes."""


def main(arguments: Sequence[str]) -> None:
    """Run `airloc evaluate`."""
    run(tyro.cli(Evaluate, args=arguments, prog="airloc evaluate"))


def run(options: Evaluate) -> None:
    """Evaluate as the options say: check everything cheap first, then read, play, write and show."""
    with promised([path for path in (options.json, options.trajectories, options.save_episodes) if path]):
        scores = _score(options)
        record = _record(scores, options)
        _write(options, scores[0], record)
    _show(scores, record, options)


def _score(options: Evaluate) -> list[Score]:
    """Let the agents play the same episodes."""
    check(options)
    check_device(options.device)
    makers = AgentOptions(seed=options.seed, device=options.device, sample=options.sample, full_precision=options.exact)
    agents = [make_agent(name, makers) for name in (options.agent, options.against) if name]

    suite, areas, goal_areas = load(options)
    suite = suite if options.false_alarm_cost is None else declared(suite)
    with bar("playing", len(suite) * len(agents)) as advance:
        return [
            evaluate(
                agent,
                areas,
                suite,
                goal_areas=goal_areas,
                control=options.control,
                change=_change(options),
                threshold=declaration_threshold(options.false_alarm_cost or 0.0),
                seed=options.seed,
                batch=options.batch,
                device=options.device,
                on_batch=advance,
            )
            for agent in agents
        ]


def check(options: Evaluate) -> None:
    """Refuse what makes no sense before anything is read."""
    if options.batch < 1:
        raise AirlocError(f"A batch of {options.batch} plays nothing", "Give a batch of 1 or more")
    if _change(options) is not None:
        check_control(options.control)
    if options.equal_distances and options.episodes != "all-pairs":
        raise AirlocError("Only all pairs can be weighed to equal distances", "Add --episodes all-pairs")
    if options.per_area is not None:
        _check_per_area(options.per_area, options.episodes)
    if options.episodes not in GENERATED and not Path(options.episodes).exists():
        raise AirlocError(
            f"There is no episode file {options.episodes}", f"Check the path, or use one of {', '.join(GENERATED)}"
        )
    if options.false_alarm_cost is not None:
        declaration_threshold(options.false_alarm_cost)
    if options.budget is not None:
        check_budget(options.budget)
    check_size(Grid.parse(options.grid, moves=options.moves))


def _check_per_area(per_area: int, episodes: str) -> None:
    if episodes not in GENERATED or episodes == "all-pairs":
        raise AirlocError(f"Nothing is drawn for --episodes {episodes}", "Leave out --per-area")
    if not 1 <= per_area <= MOST_PER_AREA:
        raise AirlocError(f"{per_area} episodes for each area cannot be drawn", f"Give 1 to {MOST_PER_AREA:,}")


def _change(options: Evaluate) -> Change | None:
    """The change that the options name."""
    if options.change is not None:
        return Change(options.change, options.change_strength)
    if options.change_strength != 1:
        raise AirlocError("There is no change to give a strength to", "Add --change, such as --change all")
    return None


def load(options: Evaluate) -> tuple[Suite, list[SearchArea], list[SearchArea] | None]:
    """Read the episodes and exactly the areas they need, in their order."""
    grid = Grid.parse(options.grid, moves=options.moves)
    listed = None
    if options.episodes not in GENERATED:
        listed = read_suite(Path(options.episodes), grid, budget=options.budget)
        listed = listed.over(_names(options).choose(listed.areas, Path(options.episodes)))
    only = None if listed is None else listed.areas
    areas, goal_areas = _read_areas(options, grid, only)
    if listed is None:
        return _generate(options, grid, areas), areas, goal_areas
    number = {area.name: index for index, area in enumerate(areas)}
    missing = [name for name in listed.areas if name not in number]
    if missing:
        raise AirlocError(
            f"The episode file {options.episodes} names the area {missing[0]!r}, which is not among the areas",
            "Give the folder that holds it with --areas",
        )
    order = [number[name] for name in listed.areas]
    return listed, [areas[i] for i in order], goal_areas and [goal_areas[i] for i in order]


def _read_areas(
    options: Evaluate, grid: Grid, only: Sequence[str] | None
) -> tuple[list[SearchArea], list[SearchArea] | None]:
    split, cell_metres, names = options.split, options.cell_metres, _names(options)
    if options.goals is not None:
        if options.areas is None:
            raise AirlocError("Goals from a folder need areas from a folder", "Give --areas too")
        return load_pairs(
            options.areas, options.goals, grid, split=split, cell_metres=cell_metres, only=only, names=names
        )
    source = choose_source(
        options.areas, split=split, cell_metres=cell_metres, only=only, names=names, seed=options.seed
    )
    return reading(source.areas(grid)), None


def _names(options: Evaluate) -> Names:
    return Names(options.only, options.without)


def _generate(options: Evaluate, grid: Grid, areas: list[SearchArea]) -> Suite:
    return generate(
        options.episodes,
        [area.name for area in areas],
        grid,
        per_area=options.per_area,
        equal_distances=options.equal_distances,
        seed=options.seed,
        budget=options.budget,
    )


def _record(scores: list[Score], options: Evaluate) -> dict[str, Any]:
    record = scores[0].record(timing=options.timing)
    record["control"] = options.control
    record["change"] = options.change
    record["options"] = {
        "areas": None if options.areas is None else str(options.areas),
        "goals": None if options.goals is None else str(options.goals),
        "split": options.split,
        "only": list(options.only),
        "except": list(options.without),
        "change_strength": None if options.change is None else options.change_strength,
        "cell_metres": options.cell_metres,
        "equal_distances": options.equal_distances,
        "per_area": options.per_area,
        "false_alarm_cost": options.false_alarm_cost,
        "sample": options.sample,
        "exact": options.exact,
        "seed": options.seed,
        "airloc": __version__,
    }
    if len(scores) > 1:
        record["against"] = compare(scores[0], scores[1])
    return record


def _write(options: Evaluate, score: Score, record: dict[str, Any]) -> None:
    if options.save_episodes is not None:
        write_atomically(options.save_episodes, score.suite.file())
    if options.trajectories is not None:
        write_atomically(options.trajectories, trajectory_lines(score))
    if options.json is not None:
        write_atomically(options.json, to_json(record))


def _show(scores: list[Score], record: dict[str, Any], options: Evaluate) -> None:
    console = Console()
    goals = goals_line(
        change=options.change, strength=options.change_strength, control=options.control, folder=options.goals
    )
    console.print(score_table(scores, record["blind_optimum"], exact=record["blind_optimum_exact"], goals=goals))
    if "against" in record:
        console.print(comparison_line(scores[0].agent, record["against"]))
