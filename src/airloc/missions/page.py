"""The one page about a search that people print and pass on."""

import numpy as np

from airloc.areas.area import Pixels
from airloc.drawing.page import Html, command, figure, image_tag, link, page, paragraph, row, section, table
from airloc.missions.flight import USUAL_CEILING, Camera, Flight
from airloc.missions.search import Photo, Search

ROWS = 40
"""Photos that the page lists; path.json has all."""
_TERMS = (
    "Probability of area (POA): that the goal is in a cell. Probability of detection (POD): that it would have been "
    "recognised there. Probability of success (POS): POA before the search times POD, summed over all cells flown."
)


def search_page(
    search: Search, belief: Pixels, path: Pixels, flight: Flight | None, camera: Camera, files: list[str], made_by: str
) -> str:
    """Make the page.

    Args:
        search: The search.
        belief: The picture of the belief after it.
        path: The picture of the path.
        flight: The flight, where the image has a georeference.
        camera: What it is photographed with.
        files: Names of the files beside the page.
        made_by: The command that makes all this again.
    """
    body = [
        paragraph(verdict(search)),
        section("The search", _facts(search, flight, camera), paragraph(_TERMS)),
        section(
            "Where it is, and the way there",
            row(
                figure(image_tag(belief, "The probability of area over the ground"), "Probability of area per cell"),
                figure(image_tag(path, "The cells in the order of the photos"), "Cells in the order of the photos"),
            ),
            _likeness(search),
        ),
        section("Photos", _photos(search)),
        section("Files", paragraph(*[part for name in files for part in (link(name, name), " ")])),
        section("Make it again", command(made_by)),
    ]
    layout = search.layout
    subtitle = f"{layout.grid} cells of {layout.cell_m:g} {layout.unit}, {int(layout.searchable.sum())} searched"
    return page("A search from above", "\n".join(body), subtitle=subtitle)


def verdict(search: Search) -> str:
    """Say in one sentence how the search ended."""
    advice, photos = search.searcher.advice(), len(search.photos)
    count = f"{photos} photo{'' if photos == 1 else 's'}"
    if advice.declared is None:
        best = place_name(search, advice.best)
        return (
            f"Not found in {count}; the flight would have found the goal with a probability of "
            f"{100 * search.searcher.pos:.0f} %. Most probable now: {best}, {100 * advice.best_probability:.1f} %."
        )
    judged = {None: "", True: ", and that is where it is", False: ", but it is not there"}[search.correct]
    where = place_name(search, advice.declared)
    return f"Declared after {count} at {where}, sure to {100 * (advice.here or 0):.0f} %{judged}."


def place_name(search: Search, cell: tuple[int, int]) -> str:
    """Say where a cell is: in degrees, or in pixels where there is no georeference."""
    if search.layout.plane is None:
        x, y = search.layout.place(cell) * (1, -1)
        return f"pixel {x:.0f},{y:.0f} (row {cell[0]}, column {cell[1]})"
    lat, lon = search.layout.degrees(cell)
    return f"{lat:.6f},{lon:.6f} (row {cell[0]}, column {cell[1]})"


def _facts(search: Search, flight: Flight | None, camera: Camera) -> Html:
    searcher, layout = search.searcher, search.layout
    rows: list[list[str | float | None]] = [
        ["Cells flown", f"{len(searcher.flown)} of {int(layout.searchable.sum())}"],
        ["Moves flown", f"{searcher.moves_flown} of {searcher.budget}"],
        ["Probability of success", f"{100 * searcher.pos:.1f} %"],
        ["Grid heading", f"{layout.heading:g} degrees"],
    ]
    if flight is not None:
        longer, shorter = camera.footprint(flight.height)
        height = f"{flight.height:.1f} m above the start"
        if flight.height > USUAL_CEILING:
            height += f", above the {USUAL_CEILING:.0f} m that many countries allow"
        rows += [
            ["Height", height],
            ["A photo shows", f"{longer:.1f} x {shorter:.1f} m"],
            ["Overlap along the longer side", _overlap(longer, layout.pitch_m)],
            ["Overlap along the shorter side", _overlap(shorter, layout.pitch_m)],
            [
                "Way, from home and back",
                f"{flight.metres:.0f} m, {flight.seconds / 60:.1f} min at {flight.speed:g} m/s",
            ],
        ]
    unseen = sum(photo.seen < 0.5 for photo in search.photos)
    if unseen:
        rows.append(["Photos with more hole than ground", str(unseen)])
    return table(["What", "Value"], rows)


def _overlap(footprint: float, pitch: float) -> str:
    """The overlap of neighbouring photos, or what is left out between them."""
    share = 1 - pitch / footprint
    return f"{100 * share:.0f} %" if share >= 0 else f"{pitch - footprint:.1f} m left out"


def _likeness(search: Search) -> Html:
    """The goal beside the most similar photo."""
    best: Photo = max(search.photos, key=lambda photo: photo.here)
    glimpse = search.searcher.glimpses[best.cell].pixels
    caption = f"The photo most like it: {place_name(search, best.cell)}, the goal to {100 * best.here:.0f} %"
    return row(
        figure(image_tag(_enlarged(search.goal), "The goal"), "The goal, as the agent sees it"),
        figure(image_tag(_enlarged(glimpse), "A photo"), caption),
    )


def _enlarged(patch: Pixels, times: int = 4) -> Pixels:
    return np.repeat(np.repeat(patch, times, axis=0), times, axis=1)


def _photos(search: Search) -> Html:
    rows: list[list[str | float | None]] = [
        [
            "S" if number == 0 else str(number),
            place_name(search, photo.cell),
            f"{100 * photo.probability:.2f} %",
            f"{100 * photo.here:.1f} %",
            f"{100 * photo.pos:.1f} %",
        ]
        for number, photo in enumerate(search.photos[:ROWS])
    ]
    listed = table(["Photo", "Place", "POA before", "Shows the goal", "POS so far"], rows)
    more = len(search.photos) - ROWS
    return Html(listed + paragraph(f"{more} more are in path.json.")) if more > 0 else listed
