import re
from xml.etree import ElementTree

import matplotlib
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from airloc.drawing.charts import Bars, Reference, Series, bar_chart, line_chart
from airloc.errors import AirlocError

pytestmark = pytest.mark.long

SVG = "{http://www.w3.org/2000/svg}"
names = st.text(st.characters(codec=None), max_size=50)
numbers = st.floats(-1e6, 1e6) | st.integers(-5, 5).map(float)
values = st.none() | numbers
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # a chart takes a tenth of a second


def lines(series, **options):
    options = {"title": "T", "x_label": "x", "y_label": "y", **options}
    return ElementTree.fromstring(line_chart(series, **options))


def bars(groups, items, **options):
    return ElementTree.fromstring(bar_chart(groups, items, **{"title": "T", "y_label": "y", **options}))


def texts(svg) -> list[str]:
    return ["".join(node.itertext()) for node in svg.iter(f"{SVG}text")]


def titles(svg) -> list[str]:
    """What the browser shows on hovering."""
    return [group.find(f"{SVG}title").text for group in svg.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]


def bar_rows(svg) -> list[list[float]]:
    """The vertical coordinates of each bar's corners."""
    paths = [group.find(f"{SVG}path") for group in svg.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    return [[float(y) for y in re.findall(r"[ML] \S+ (\S+)", path.get("d"))] for path in paths if path is not None]


@st.composite
def any_series(draw):
    x = draw(st.lists(numbers, max_size=8))
    column = st.lists(values, min_size=len(x), max_size=len(x))
    ends = draw(st.none() | st.tuples(column, column)) or (None, None)
    return Series(
        draw(names), x, draw(column), *ends, guide=draw(st.booleans()), style=draw(st.none() | st.integers(0, 30))
    )


@settings(max_examples=15, deadline=None, phases=NO_SHRINKING)
@given(
    series=st.lists(any_series(), min_size=1, max_size=4),
    title=names,
    percent=st.booleans(),
    reference=st.none() | st.builds(Reference, numbers, names),
)
def test_any_line_chart_is_valid_xml_inside_its_sheet(series, title, percent, reference):
    assume(any(line.points() for line in series))
    svg = lines(series, title=title, y_percent=percent, references=[reference] if reference else [])
    width, height = float(svg.get("width")), float(svg.get("height"))
    for marker in svg.iter(f"{SVG}use"):
        assert -1 <= float(marker.get("x")) <= width
        assert -1 <= float(marker.get("y")) <= height


@settings(max_examples=10, deadline=None, phases=NO_SHRINKING)
@given(data=st.data(), groups=st.lists(names, min_size=1, max_size=5), title=names, percent=st.booleans())
def test_any_bar_chart_is_valid_xml_inside_its_sheet(data, groups, title, percent):
    column = st.lists(values, min_size=len(groups), max_size=len(groups))
    items = [Bars(data.draw(names), data.draw(column), data.draw(column), data.draw(column)) for _ in range(3)]
    assume(any(value is not None for item in items for value in item.values))
    svg = bars(groups, items, title=title, y_label=title, y_percent=percent)
    for rows in bar_rows(svg):
        assert -1 <= min(rows) <= max(rows) <= float(svg.get("height")) + 1


def test_hostile_names_stay_text():
    evil = '</svg><script>alert("1")</script>& $x$ style="fill: #0072b2" \0'
    svg = lines([Series(evil, [1, 2], [0, 1])], title=evil, y_label=evil, references=[Reference(0.5, evil)])
    assert not list(svg.iter(f"{SVG}script"))
    assert svg.find(f"{SVG}title").text == evil.replace("\0", "�")
    assert any("$x$" in text for text in texts(svg))


def test_a_chart_has_a_title_and_its_values_for_screen_readers():
    svg = lines([Series("belief", [1, 2], [0.95, 0.5])], y_percent=True, references=[Reference(0.521, "blind optimum")])
    assert svg.get("role") == "img"
    ids = svg.get("aria-labelledby").split()
    assert [svg.find(f"{SVG}{tag}").get("id") for tag in ("title", "desc")] == ids
    description = svg.find(f"{SVG}desc").text
    assert "belief: 1: 95 %, 2: 50 %." in description
    assert "blind optimum: 52.1 %" in description


def test_charts_are_the_same_each_time_and_two_charts_share_no_id():
    one, again, other = (line_chart([Series(n, [1, 2], [1, 2])], title="T", x_label="x", y_label="y") for n in "aab")
    assert one == again
    assert not set(re.findall(r'id="([^"]+)"', one)) & set(re.findall(r'id="([^"]+)"', other))


def test_the_users_matplotlib_settings_neither_change_a_chart_nor_are_changed():
    before = bar_chart(["g"], [Bars("a", [1])], title="T", y_label="y")
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "svg.fonttype": "path"}):
        assert bar_chart(["g"], [Bars("a", [1])], title="T", y_label="y") == before
        assert matplotlib.rcParams["font.size"] == 30


def test_colours_follow_dark_mode_and_print_and_nothing_is_fetched():
    svg = line_chart([Series("a", [1], [1])], title="T", x_label="x", y_label="y")
    assert "prefers-color-scheme:dark" in svg
    assert "@media print" in svg
    assert not re.findall(r'style="[^"]*(?<!-)\b(?:fill|stroke): #(?!000000)', svg), "every colour is a variable"
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_hatched_bars_follow_dark_mode_too():
    svg = bar_chart(["g"], [Bars(str(n), [1]) for n in range(5)], title="T", y_label="y")
    patterns = re.findall(r"<pattern.*?</pattern>", svg, flags=re.DOTALL)
    assert len(patterns) == 4
    assert all("var(--ac-" in pattern for pattern in patterns)


def test_a_missing_point_breaks_the_line_and_a_lone_point_has_a_marker():
    svg = lines([Series("a", [1, 2, 3, 4], [1, 2, None, 3])])
    assert titles(svg) == ["a, 4: 3", "a, 2: 2", "a, 1: 1"]
    strokes = [path for path in svg.iter(f"{SVG}path") if "stroke-width: 2.2" in path.get("style", "")]
    assert len(strokes) == 1 + 1  # and the sample beside the name


def test_points_are_joined_in_the_order_of_x():
    assert [point[0] for point in Series("a", [3, 1, 2], [1, 2, 3]).points()] == [1, 2, 3]


def test_error_bars_show_the_intervals():
    series = [Series("a", [1, 2], [1, 2]), Series("a", [1, 2], [1, 2], [0.5, 1.5], [1.5, 2.5])]
    charts = [line_chart([line], title="T", x_label="x", y_label="y") for line in series]
    assert [chart.count("stroke-width: 1.4; stroke-linecap") for chart in charts] == [0, 2]


def test_long_lines_have_few_markers():
    assert len(titles(lines([Series("a", list(range(500)), [float(i) for i in range(500)])]))) < 12


def test_series_differ_in_colour_or_dash_up_to_sixteen_and_in_marker():
    svg = lines([Series(str(i), [1, 2], [i, i], style=i) for i in range(16)])
    strokes = {path.get("style") for path in svg.iter(f"{SVG}path") if "stroke-width: 2.2" in path.get("style", "")}
    assert len(strokes) == 16
    shapes = {path.get("d") for defs in svg.iter(f"{SVG}defs") for path in defs.iter(f"{SVG}path")}
    assert len(shapes) >= 8


def test_a_series_keeps_its_style_wherever_it_stands():
    first, second = (
        line_chart([*before, Series("a", [1, 2], [1, 1], style=5)], title="T", x_label="x", y_label="y")
        for before in ([], [Series("b", [1, 2], [1, 2], style=0)])
    )
    assert all("stroke:#6b7280" in svg for svg in (first, second))


def test_long_names_are_cut_and_shown_whole_on_hovering():
    name = "airloc-no-residual-no-sem-seg-priv-" * 4
    svg = lines([Series(name, [1, 2], [1, 2])])
    assert name in titles(svg)
    assert any(text.endswith("…") for text in texts(svg))


def test_every_name_is_shown_beside_the_lines_or_above_the_bars():
    series = [Series("one", [1], [1]), Series("two", [1], [1])]
    assert {"one", "two", "blind"} <= set(texts(lines(series, references=[Reference(1, "blind")])))
    assert {"one", "two", "g"} <= set(texts(bars(["g"], [Bars("one", [1]), Bars("two", [None])])))


def test_bars_begin_at_zero_with_their_values_above():
    svg = bars(["g", "h"], [Bars("a", [0.5, 0.25], [0.4, 0.2], [0.6, 0.3])], y_percent=True)
    heights = [max(rows) - min(rows) for rows in bar_rows(svg)]
    assert heights[0] == pytest.approx(2 * heights[1], abs=0.05)
    assert {"50 %", "25 %", "0 %"} <= set(texts(svg))
    assert "a: 50 % (40 % to 60 %)" in titles(svg)


@pytest.mark.parametrize("series", [[], [Series("a", [], [])], [Series("a", [1], [None])]])
def test_a_chart_without_values_is_refused(series):
    with pytest.raises(AirlocError):
        lines(series)
    with pytest.raises(AirlocError):
        bars(["g"], [Bars(item.name, [None]) for item in series])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_values_that_cannot_be_drawn_are_refused(value):
    for make in (lambda: Series("a", [1], [value]), lambda: Series("a", [value], [1]), lambda: Bars("a", [value])):
        with pytest.raises(AirlocError, match=str(value).replace("+", r"\+")):
            make()
    with pytest.raises(AirlocError):
        Reference(value, "r")


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(AirlocError):
        Series("a", [1, 2], [1])
    with pytest.raises(AirlocError):
        Bars("a", [1], [1, 2])
    with pytest.raises(AirlocError):
        bars(["g", "h"], [Bars("a", [1])])


def test_group_names_too_long_for_two_lines_are_turned():
    groups = [f"airloc-no-residual-no-sem-seg-{index}" for index in range(9)]
    drawn = bar_chart(groups, [Bars("a", [1.0] * 9)], title="T", y_label="y")
    assert drawn.count("rotate(-36") == 9
    assert set(groups) <= set(texts(ElementTree.fromstring(drawn)))


def test_a_legend_too_wide_for_one_row_continues_in_the_next():
    few, many = (bars(["g"], [Bars(f"a rather long name {i}", [1]) for i in range(n)]) for n in (2, 9))
    rows = [
        {node.get("y") for node in svg.iter(f"{SVG}text") if "rather" in "".join(node.itertext())}
        for svg in (few, many)
    ]
    assert len(rows[0]) == 1
    assert len(rows[1]) > 1
