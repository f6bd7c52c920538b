"""The report of a search: images of the belief and the path, and the HTML pages that show them and all photos.

Legend: Pixels: uint8 RGB (H, W, 3); a belief is (rows, cols).
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from airloc.areas.area import Pixels
from airloc.drawing.canvas import Frame, Point
from airloc.drawing.heatmap import draw_belief
from airloc.drawing.page import Html, beside, command, figure, image_tag, link, page, paragraph, row, section, table
from airloc.drawing.trajectory import draw_team
from airloc.grid import Cell, Grid
from airloc.missions.flight import HEIGHT_LIMIT, Flight
from airloc.missions.patterns import Pattern
from airloc.missions.photos import Goal
from airloc.missions.plan import FieldSearch, format_position
from airloc.missions.searcher import Candidate
from airloc.missions.simulation import SearchRecord
from airloc.missions.units import format_cell

SIDE, GIF_SIDE = 1000, 480
"""Approximate longest side of images and of the animation, in pixels."""
SHADE = 0.3
"""Brightness of cells outside the search area."""
MAX_ROWS = 40
"""Photos listed on the page; path.json has all."""
MAX_CANDIDATES = 200
"""Photos shown on the page of candidates."""
BEST_CANDIDATES = 3
"""Photos named in the outcome of a search by words alone."""
ENLARGED, RING = 3, 7
"""Factor by which photos are enlarged, and the radius of the mark on them before that, in pixels."""
TERMS = (
    "Probability of area (POA): the probability that the goal is in a cell. Probability of detection (POD): the "
    "probability that the search recognises a goal in that cell. Probability of success (POS): POA before the search "
    "times POD, summed over all cells. Segment: a cell, photographed as a whole. Sortie: one flight of a drone "
    "with one battery. Clue: a photo that looks like the goal, for people to confirm or reject. Confidence: the "
    "probability that a photo shows the goal (match probability)."
)
CLUE, MAX_CLUES = 0.05, 3
"""Confidence from which a photo is a clue, and the number of clues that a summary lists."""

Row = list[str | float | None]


class SearchPainter:
    """Draws one search at one size.

    Args:
        record: The search.
        ground: Image of the ground under the whole grid.
        side: Approximate longest side of the drawings in pixels.
    """

    def __init__(self, record: SearchRecord, ground: Pixels, side: int) -> None:
        self._record = record
        layout = record.layout
        pitch = max(3, side // max(layout.grid.shape))
        gap = max(1, round(pitch * layout.gap_m / layout.pitch_m))
        self._grid = Grid(*layout.grid.shape, cell=pitch - gap, gap=gap)
        size = self._grid.size[::-1]
        self._ground = np.asarray(Image.fromarray(ground).resize(size, Image.Resampling.LANCZOS))

    def draw_final_belief(self) -> Pixels:
        """Draw the belief at the end of the search."""
        searcher = self._record.searcher
        belief = searcher.belief()
        top = min(1.0, max(float(belief.max()), 4 / self._record.layout.grid.count))
        declared = searcher.advice().declared
        return self._draw_belief(belief, list(searcher.glimpses), top, None if declared is None else declared.cell)

    def draw_prior(self) -> Pixels:
        """Draw the belief before the first photo."""
        prior = self._record.searcher.prior
        return self._draw_belief(prior, [], min(1.0, max(float(prior.max()), 4 / prior.size)), None)

    def draw_path(self) -> Pixels:
        """Draw the photos in their order, and the legs between them as they are flown."""
        record = self._record
        declared = record.searcher.advice().declared
        goal = record.true_cell or (None if declared is None else declared.cell)
        paths = [vehicle.flown for vehicle in record.searcher.vehicles.values()]
        legs = [_legs(record.search, path) for path in paths]
        return draw_team(self._shade(self._ground), self._grid, paths, goal, scale=1, legs=legs)

    def draw_frames(self) -> list[Pixels]:
        """Draw the recorded beliefs in order, all of one size."""
        photos = self._record.photos
        cells = [photo.cell for photo in photos]
        kept = [(number, photo.belief) for number, photo in enumerate(photos) if photo.belief is not None]
        top = min(1.0, max(0.02, *(float(belief.max()) for _, belief in kept)))
        return [self._draw_belief(belief, cells[: number + 1], top, cells[number]) for number, belief in kept]

    def _draw_belief(
        self, belief: npt.NDArray[np.floating], visited: Sequence[Cell], top: float, position: Cell | None
    ) -> Pixels:
        drawn = draw_belief(
            self._ground,
            self._grid,
            belief,
            position=position,
            goal=self._record.true_cell,
            visited=visited,
            top=top,
            scale=1,
            margin=0,
        )
        return self._shade(drawn)

    def _shade(self, drawn: Pixels) -> Pixels:
        """Darken the ground of cells outside the search area."""
        shaded = drawn.copy()
        frame = Frame.around(self._grid, (), 1, 0)
        for row_number, col in np.argwhere(~self._record.layout.searchable).tolist():
            part = frame.part((row_number, col))
            shaded[part] = (SHADE * self._ground[part]).astype(np.uint8)
        return shaded


def _legs(search: FieldSearch, path: Sequence[Cell]) -> list[list[Point]]:
    """Return the places (row, col) at which the leg to each cell of a path bends, and that of its photo."""
    bends = [[], *(search.bends(start, end).tolist() for start, end in pairwise(path))]
    return [
        [*map(search.layout.grid_position, leg), search.place(cell)] for leg, cell in zip(bends, path, strict=False)
    ]


def search_page(
    record: SearchRecord, belief: Pixels, path: Pixels, flight: Flight | None, files: Sequence[str], made_by: str
) -> str:
    """Return the HTML page about a search.

    Args:
        record: The search.
        belief: Drawing of the final belief.
        path: Drawing of the path.
        flight: The flight, if the image has a georeference.
        files: Names of the files beside the page.
        made_by: Command that reproduces the page.
    """
    body = [
        paragraph(summary(record)),
        section("Search", _facts(record, flight), paragraph(TERMS)),
        section(
            "Belief and path",
            row(
                figure(image_tag(belief, "Probability of area over the ground"), "Probability of area per cell"),
                figure(image_tag(path, "Cells in the order of the photos"), "Cells in the order of the photos"),
            ),
            _best_match(record),
        ),
        section("Photos", _photos(record)),
        section("Files", paragraph(*[part for name in files for part in (link(name, name), " ")])),
        section("Reproduce", command(made_by)),
    ]
    layout = record.layout
    subtitle = f"{layout.grid} cells of {layout.cell_m:g} {layout.unit}, {int(layout.searchable.sum())} searchable"
    return page("Aerial search", "\n".join(body), subtitle=subtitle)


def compare_patterns(record: SearchRecord) -> str:
    """Return the POS of fixed patterns beside that of the search in one sentence; empty if there are none."""
    if not record.patterns:
        return ""
    found = ", ".join(f"{pattern.name.replace('-', ' ')} {100 * pattern.pos:.1f} %" for pattern in record.patterns)
    return (
        f"Fixed patterns with the same {record.searcher.budget} moves have a probability of success (POS) of: {found}. "
        f"This search had {100 * record.searcher.pos:.1f} % when it ended, after {len(record.photos)} photos."
    )


def summary(record: SearchRecord) -> str:
    """Return the outcome of a search in one or two sentences."""
    advice, photos = record.searcher.advice(), len(record.photos)
    count = f"{photos} photo{'' if photos == 1 else 's'}"
    if advice.declared is None and _described_alone(record):
        return _ranked(record, count)
    if advice.declared is None:
        return (
            f"Not found in {count}. The probability of success (POS) is {100 * record.searcher.pos:.0f} %. "
            f"Most probable segment: {_place_name(record, advice.best)}, {100 * advice.best_probability:.1f} %. "
            f"{_clues(record)}"
        )
    verdict = "" if record.correct is None else _verdict(record)
    return (
        f"Declared after {count} at {_place_name(record, *advice.declared[:2])}, "
        f"confidence {100 * (advice.match_probability or 0):.0f} %.{verdict}"
    )


def _clues(record: SearchRecord) -> str:
    """Return the photos that look most like the goal in one sentence."""
    clues = [photo for photo in record.searcher.candidates() if photo.find.probability >= CLUE]
    if not clues:
        return "No photo is a clue."
    named = [
        f"photo {clue.number} ({format_cell(clue.find.cell)}), confidence {100 * clue.find.probability:.0f} %"
        for clue in clues[:MAX_CLUES]
    ]
    more = f"; {len(clues) - MAX_CLUES} more on candidates.html" if len(clues) > MAX_CLUES else ""
    return f"Clues: {'; '.join(named)}{more}."


def _described_alone(record: SearchRecord) -> bool:
    """Return True if the goal is described in words and has no picture."""
    return bool(record.goal.text) and not record.goal.pictured


def _ranked(record: SearchRecord, count: str) -> str:
    """Return the outcome of a search by words alone: a person decides, and the photos that fit best come first."""
    searcher = record.searcher
    seen = {photo.find.cell: photo.glimpse.coverage for photo in searcher.photos}
    covered = sum(float(searcher.prior[cell]) * coverage for cell, coverage in seen.items())
    photos = searcher.candidates()[:BEST_CANDIDATES]
    best = ", ".join(f"photo {photo.number} at {_place_name(record, *photo.find[:2])}" for photo in photos)
    unseen = searcher.belief().copy()
    unseen[tuple(np.array(list(seen), dtype=np.int64).reshape(-1, 2).T)] = 0
    row, col = (int(part) for part in np.unravel_index(unseen.argmax(), unseen.shape))
    left = f"{_place_name(record, (row, col))}, {100 * unseen[row, col]:.1f} %" if unseen.any() else "none"
    return (
        f"The cells on {count} had {100 * covered:.0f} % of the probability before the search. "
        f"A description alone does not prove a find: look at the photos, first at {best}. "
        f"Most probable cell without a photo: {left}."
    )


def _verdict(record: SearchRecord) -> str:
    place = f"{record.error_m:.0f} {record.layout.unit} from the goal's centre"
    return f" The find is correct, {place}." if record.correct else f" The find is wrong, {place}."


def _place_name(record: SearchRecord, cell: Cell, place: tuple[float, float] | None = None) -> str:
    """Return a place in a cell as text, by default its centre."""
    pixel = "pixel " if record.layout.plane is None else ""
    return f"{pixel}{format_position(record.layout, place or cell)} ({format_cell(cell)})"


def _facts(record: SearchRecord, flight: Flight | None) -> Html:
    searcher, layout = record.searcher, record.layout
    flown = sum(len(vehicle.flown) for vehicle in searcher.vehicles.values())
    rows: list[Row] = [["Segments flown", f"{flown} of {int(layout.searchable.sum())}"]]
    for name, vehicle in searcher.vehicles.items():
        drone, _, sortie = name.partition("-")
        whose = f" by drone {drone}{f', sortie {sortie}' * bool(sortie)}" if searcher.team_size > 1 else ""
        rows.append([f"Moves flown{whose}", f"{vehicle.moves_flown} of {vehicle.budget}"])
    if _described_alone(record):
        rows.append(["Probability of detection", "that of the person who looks at the photos"])
    else:
        rows.append(["Probability of detection in a photo of a whole segment", f"{100 * searcher.detection:.0f} %"])
        rows.append(["Probability of success", f"{100 * searcher.pos:.1f} %"])
    rows += [
        ["Grid heading", f"{layout.heading:g} degrees"],
        ["Known before the search", "; ".join(record.search.sources) or "nothing: all cells are equally probable"],
    ]
    rows += [[f"Pattern {one.name.replace('-', ' ')}", _pattern_facts(one)] for one in record.patterns]
    if flight is not None:
        rows += _flight_facts(record, flight)
    missing = sum(photo.coverage < 0.5 for photo in record.photos)
    if missing:
        rows.append(["Photos with less than half image data", str(missing)])
    return table(["Property", "Value"], rows)


def _pattern_facts(pattern: Pattern) -> str:
    return f"{len(pattern.cells)} photos, POD {100 * pattern.pod:.1f} %, POS {100 * pattern.pos:.1f} %"


def _flight_facts(record: SearchRecord, flight: Flight) -> list[Row]:
    longer, shorter = record.search.plan.camera.footprint(flight.height)
    pitch = record.layout.pitch_m
    height = f"{flight.height:.1f} m above take-off"
    if flight.height > HEIGHT_LIMIT:
        height += f", above the {HEIGHT_LIMIT:.0f} m that many countries allow"
    minutes = flight.seconds / 60
    return [
        ["Height", height],
        ["Footprint of a photo", f"{longer:.1f} x {shorter:.1f} m"],
        ["Overlap along the longer side", _overlap(longer, pitch)],
        ["Overlap along the shorter side", _overlap(shorter, pitch)],
        ["Flight, from home and back", f"{flight.metres:.0f} m, {minutes:.1f} min at {flight.speed:g} m/s"],
    ]


def _overlap(footprint: float, pitch: float) -> str:
    """Return the overlap of neighbouring photos, or the gap between them."""
    share = 1 - pitch / footprint
    return f"{100 * share:.0f} %" if share >= 0 else f"gap of {pitch - footprint:.1f} m"


def _best_match(record: SearchRecord) -> Html:
    """Show the goal beside the photo with the highest match probability."""
    best = record.searcher.candidates()[0]
    return row(
        _goal_figure(record.goal, "The goal"),
        figure(
            image_tag(_draw_photo(best, record.layout.grid.pitch), "The best match"),
            f"The best match. {_caption(best, record)}",
        ),
    )


def _goal_figure(goal: Goal, caption: str) -> Html:
    """Show the picture of a goal, its description in words, or both."""
    words = f"\N{LEFT DOUBLE QUOTATION MARK}{goal.text}\N{RIGHT DOUBLE QUOTATION MARK}"
    if not goal.pictured and goal.text:
        return figure(paragraph(words), "The goal, as described")
    return figure(image_tag(_enlarge(goal.picture), "The goal"), f"{caption}. {words}" if goal.text else caption)


def candidates_page(record: SearchRecord) -> str:
    """Return the HTML page that shows the goal beside all photos, the one most like the goal first."""
    ranked, pitch = record.searcher.candidates(), record.layout.grid.pitch
    captioned = [(photo, _caption(photo, record)) for photo in ranked]
    return ranking_page(record.goal, captioned, pitch, "turned like the grid", link("About the search", "index.html"))


def ranking_page(
    goal: Goal, ranked: Sequence[tuple[Candidate, str]], pitch: int, turned: str, more: Html | str = ""
) -> str:
    """Return the HTML page that shows a goal beside ranked photos with their captions.

    Args:
        goal: The goal.
        ranked: The photos, and what to write below them.
        pitch: Pixels between the middles of cells.
        turned: How the photos are turned.
        more: What the introduction ends with.
    """
    shown = [
        figure(image_tag(_draw_photo(photo, pitch), "Photo"), caption) for photo, caption in ranked[:MAX_CANDIDATES]
    ]
    count = f"{len(shown)} of {len(ranked)} photos" if len(shown) < len(ranked) else f"{len(ranked)} photos"
    picture = _goal_figure(goal, "The goal, to the scale of the photos")
    order = f"Photos in the order of their confidence, the best clue first, {turned}. A ring marks the goal's place."
    body = paragraph(order, " ", more) + beside(picture, row(*shown))
    return page("Photos most like the goal", body, subtitle=count)


def _caption(photo: Candidate, record: SearchRecord) -> str:
    confidence = f"confidence {100 * photo.find.probability:.1f} %"
    return f"Photo {photo.number}: {_place_name(record, *photo.find[:2])}, {confidence}"


def _draw_photo(photo: Candidate, pitch: int) -> Pixels:
    """Draw what a photo shows around its cell, with a ring where the goal was located."""
    view = photo.glimpse.whole_view()
    seen = np.argwhere(view.seen)
    top, left = seen.min(axis=0) if len(seen) else (0, 0)
    bottom, right = seen.max(axis=0) + 1 if len(seen) else view.seen.shape
    drawn = Image.fromarray(_enlarge((view.pixels * view.seen[..., None])[top:bottom, left:right]))
    find = photo.find
    if find.position != find.cell:
        y, x = (
            ENLARGED * (view.seen.shape[0] / 2 + pitch * (place - cell) - edge)
            for place, cell, edge in zip(find.position, find.cell, (top, left), strict=True)
        )
        draw = ImageDraw.Draw(drawn)
        for inset, width, colour in ((0, 5, "black"), (1.5, 2, "white")):
            draw.circle((x, y), ENLARGED * RING - inset, outline=colour, width=width)
    return np.asarray(drawn)


def _enlarge(patch: Pixels) -> Pixels:
    height, width = patch.shape[:2]
    return np.asarray(Image.fromarray(patch).resize((ENLARGED * width, ENLARGED * height), Image.Resampling.BICUBIC))


def _photos(record: SearchRecord) -> Html:
    rows: list[Row] = [
        [
            str(number),
            _place_name(record, photo.cell),
            f"{100 * photo.poa:.2f} %",
            f"{100 * photo.match_probability:.1f} %",
            f"{100 * photo.pos:.1f} %",
        ]
        for number, photo in enumerate(record.photos[:MAX_ROWS], start=1)
    ]
    listed = table(["Photo", "Segment", "POA before", "Confidence", "POS so far"], rows)
    more = len(record.photos) - MAX_ROWS
    return Html(listed + paragraph(f"path.json lists {more} more.")) if more > 0 else listed
