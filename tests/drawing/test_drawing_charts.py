import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from airloc.drawing.charts import Bars, Reference, Series, bar_chart, line_chart
from airloc.drawing.charts.axes import round_ticks, spread, tick_text, value_writer
from airloc.drawing.charts.style import marker
from airloc.errors import AirlocError

SVG = "{http://www.w3.org/2000/svg}"
names = st.text(st.characters(codec=None), max_size=50)
numbers = st.floats(-1e6, 1e6) | st.integers(-5, 5).map(float)
values = st.none() | numbers


def lines(series, **options):
    options = {"title": "T", "x_label": "x", "y_label": "y", **options}
    return ElementTree.fromstring(line_chart(series, **options))


def texts(svg) -> list[str]:
    return ["".join(node.itertext()) for node in svg.iter(f"{SVG}text")]


@st.composite
def any_series(draw):
    x = draw(st.lists(numbers, max_size=8))
    column = st.lists(values, min_size=len(x), max_size=len(x))
    ends = draw(st.none() | st.tuples(column, column)) or (None, None)
    return Series(
        draw(names), x, draw(column), *ends, guide=draw(st.booleans()), style=draw(st.none() | st.integers(0, 30))
    )


@settings(max_examples=60, deadline=None)
@given(
    series=st.lists(any_series(), min_size=1, max_size=4),
    title=names,
    percent=st.booleans(),
    band=st.booleans(),
    reference=st.none() | st.builds(Reference, numbers, names),
)
def test_any_line_chart_is_valid_xml_inside_its_sheet(series, title, percent, band, reference):
    assume(any(line.points() for line in series))
    svg = lines(
        series,
        title=title,
        y_percent=percent,
        intervals="band" if band else "bars",
        references=[reference] if reference else [],
    )
    width, height = float(svg.get("width")), float(svg.get("height"))
    for circle in svg.iter(f"{SVG}circle"):
        x, y = float(circle.get("cx")), float(circle.get("cy"))
        assert -1 <= x <= width
        assert -1 <= y <= height


@settings(max_examples=40, deadline=None)
@given(data=st.data(), groups=st.lists(names, min_size=1, max_size=5), title=names, percent=st.booleans())
def test_any_bar_chart_is_valid_xml_and_no_bar_leaves_its_sheet(data, groups, title, percent):
    column = st.lists(values, min_size=len(groups), max_size=len(groups))
    bars = [Bars(data.draw(names), data.draw(column), data.draw(column), data.draw(column)) for _ in range(3)]
    assume(any(value is not None for item in bars for value in item.values))
    svg = ElementTree.fromstring(bar_chart(groups, bars, title=title, y_label=title, y_percent=percent))
    height = float(svg.get("height"))
    for box in svg.iter(f"{SVG}rect"):
        if box.get("y"):
            assert 0 <= float(box.get("y")) <= height
            assert 0 <= float(box.get("height")) <= height


def test_hostile_names_stay_text():
    evil = '</svg><script>alert("1")</script>&\0'
    svg = lines([Series(evil, [1, 2], [0, 1])], title=evil, y_label=evil, references=[Reference(0.5, evil)])
    assert not list(svg.iter(f"{SVG}script"))
    assert svg.find(f"{SVG}title").text == evil.replace("\0", "�")


def test_a_chart_names_itself_for_screen_readers_and_tells_its_values():
    svg = lines([Series("belief", [1, 2], [0.95, 0.5])], y_percent=True, references=[Reference(0.521, "blind optimum")])
    assert svg.get("role") == "img"
    ids = svg.get("aria-labelledby").split()
    assert [svg.find(f"{SVG}{tag}").get("id") for tag in ("title", "desc")] == ids
    told = svg.find(f"{SVG}desc").text
    assert "belief: 1: 95 %, 2: 50 %." in told
    assert "blind optimum: 52.1 %" in told


def test_charts_are_the_same_each_time_and_two_charts_share_no_id():
    one, again, other = (line_chart([Series(n, [1], [1])], title="T", x_label="x", y_label="y") for n in "aab")
    assert one == again
    assert not set(re.findall(r'id="([^"]+)"', one)) & set(re.findall(r'id="([^"]+)"', other))


def test_style_follows_the_readers_dark_mode_and_print():
    svg = line_chart([Series("a", [1], [1])], title="T", x_label="x", y_label="y")
    assert "prefers-color-scheme:dark" in svg
    assert "@media print" in svg
    assert "currentColor" in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_a_missing_point_breaks_the_line_and_a_lone_point_has_a_marker():
    svg = lines([Series("a", [1, 2, 3, 4], [1, 2, None, 3])])
    assert len(list(svg.iter(f"{SVG}polyline"))) == 1
    assert len(list(svg.iter(f"{SVG}circle"))) == 3 + 1  # and one beside the name


def test_points_are_joined_in_the_order_of_x():
    assert [point[0] for point in Series("a", [3, 1, 2], [1, 2, 3]).points()] == [1, 2, 3]


def test_bands_and_error_bars_show_the_intervals():
    series = [Series("a", [1, 2], [1, 2], [0.5, 1.5], [1.5, 2.5])]
    assert len(list(lines(series, intervals="band").iter(f"{SVG}polygon"))) == 1
    bars = [path.get("d") for path in lines(series, intervals="bars").iter(f"{SVG}path")]
    assert sum("V" in path for path in bars) == 2


def test_long_lines_carry_few_markers():
    svg = lines([Series("a", list(range(500)), [float(i) for i in range(500)])])
    assert len(list(svg.iter(f"{SVG}circle"))) < 12


def test_series_differ_in_marker_and_dash_or_colour_up_to_sixteen():
    svg = lines([Series(str(i), [1, 2], [i, i], style=i) for i in range(16)])
    looks = set()
    for group in svg.iter(f"{SVG}g"):
        line = group.find(f"{SVG}polyline")
        if line is not None:
            looks.add((group.get("class"), line.get("stroke-dasharray")))
    assert len(looks) == 16
    assert len({re.sub(r"[\d. ,-]+", "#", marker(i, 0, 0)) + str(marker(i, 0, 0).count(",")) for i in range(8)}) >= 4


def test_a_series_keeps_its_style_wherever_it_stands():
    svg = line_chart([Series("a", [1], [1], style=5)], title="T", x_label="x", y_label="y")
    assert 'class="ac-s5"' in svg


def test_long_names_are_cut_and_shown_whole_on_hovering():
    name = "airloc-no-residual-no-sem-seg-priv-" * 4
    svg = lines([Series(name, [1, 2], [1, 2])])
    shown = next(node for node in svg.iter(f"{SVG}text") if node.find(f"{SVG}title") is not None)
    assert shown.find(f"{SVG}title").text == name
    assert shown.find(f"{SVG}title").tail.endswith("…")


def test_every_name_is_shown_beside_the_lines_or_above_the_bars():
    assert {"one", "two", "blind"} <= set(
        texts(lines([Series("one", [1], [1]), Series("two", [1], [1])], references=[Reference(1, "blind")]))
    )
    svg = ElementTree.fromstring(bar_chart(["g"], [Bars("one", [1]), Bars("two", [None])], title="T", y_label="y"))
    assert {"one", "two", "g"} <= set(texts(svg))


def test_bars_stand_on_zero_with_their_values_above():
    svg = ElementTree.fromstring(
        bar_chart(["g", "h"], [Bars("a", [0.5, 0.25], [0.4, 0.2], [0.6, 0.3])], title="T", y_label="y", y_percent=True)
    )
    boxes = [box for box in svg.iter(f"{SVG}rect") if box.find(f"{SVG}title") is not None]
    heights = [float(box.get("height")) for box in boxes]
    assert heights[0] == pytest.approx(2 * heights[1], abs=0.05)
    assert {"50 %", "25 %", "0 %"} <= set(texts(svg))
    assert "a: 50 % (40 % to 60 %)" in [box.find(f"{SVG}title").text for box in boxes]


@pytest.mark.parametrize("series", [[], [Series("a", [], [])], [Series("a", [1], [None])]])
def test_a_chart_of_nothing_is_refused(series):
    with pytest.raises(AirlocError, match="nothing to draw"):
        lines(series)
    with pytest.raises(AirlocError, match="nothing to draw"):
        bar_chart(["g"], [Bars(item.name, [None]) for item in series], title="T", y_label="y")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_values_that_cannot_be_drawn_are_refused(value):
    for make in (lambda: Series("a", [1], [value]), lambda: Series("a", [value], [1]), lambda: Bars("a", [value])):
        with pytest.raises(AirlocError, match="cannot be drawn"):
            make()
    with pytest.raises(AirlocError):
        Reference(value, "r")


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(AirlocError):
        Series("a", [1, 2], [1])
    with pytest.raises(AirlocError):
        Bars("a", [1], [1, 2])
    with pytest.raises(AirlocError):
        bar_chart(["g", "h"], [Bars("a", [1])], title="T", y_label="y")


@given(numbers, numbers, st.integers(2, 10))
def test_ticks_are_few_ascending_and_enclose_the_values(a, b, wanted):
    low, high = sorted((a, b))
    ticks = round_ticks(low, high, wanted)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    assert 2 <= len(ticks) <= 2 * wanted + 3
    assert list(ticks) == sorted(set(ticks))
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack


@given(numbers, numbers, st.booleans())
def test_ticks_of_one_axis_read_differently(a, b, percent):
    assume(abs(a - b) > 1e-3 * max(abs(a), abs(b), 1e-3))
    ticks = round_ticks(min(a, b), max(a, b))
    shown = [tick_text(tick, ticks[1] - ticks[0], percent) for tick in ticks]
    assert len(set(shown)) == len(shown)


@given(st.lists(st.floats(0, 300), max_size=20), st.floats(1, 20))
def test_labels_are_moved_apart_in_order_and_stay_between_the_ends(wanted, gap):
    places = spread(wanted, gap, 0, 400)
    assert all(-1e-6 <= place <= 400 + 1e-6 for place in places)
    ordered = sorted(places)
    assert all(b - a >= min(gap, 400 / max(1, len(wanted) - 1)) - 1e-6 for a, b in pairwise(ordered))
    for (a, x), (b, y) in pairwise(zip(wanted, places, strict=True)):
        assert a == b or (a < b) == (x < y)


def test_labels_that_have_room_stay_where_they_are():
    assert spread([10, 50, 90], 18, 0, 100) == [10, 50, 90]


@pytest.mark.parametrize(
    ("values", "percent", "texts"),
    [
        ([0.84, 0.8], True, ["84 %", "80 %"]),
        ([5, 6.25], False, ["5.00", "6.25"]),
        ([-0.3, 0.1 * 3 - 0.3], False, ["\N{MINUS SIGN}0.3", "0.0"]),
        ([12345.6, 1], False, ["12,346", "1"]),
        ([1e-6, 0], False, ["1e-06", "0"]),
    ],
)
def test_values_of_one_chart_are_written_alike(values, percent, texts):
    write = value_writer(values, percent)
    assert [write(value) for value in values] == texts


def test_group_names_too_long_for_two_lines_are_turned():
    groups = [f"airloc-no-residual-no-sem-seg-{index}" for index in range(9)]
    drawn = bar_chart(groups, [Bars("a", [1.0] * 9)], title="T", y_label="y", x_label="agent")
    assert drawn.count("rotate(-36)") == 9
    assert set(groups) <= {text.strip() for text in re.findall(r"<title>([^<]+)</title>", drawn)}


def test_a_legend_too_wide_for_one_row_goes_on_in_the_next():
    few, many = (
        ElementTree.fromstring(
            bar_chart(["g"], [Bars(f"a rather long name {i}", [1]) for i in range(n)], title="T", y_label="y")
        )
        for n in (2, 9)
    )
    rows = [
        {node.get("y") for node in svg.iter(f"{SVG}text") if "rather" in "".join(node.itertext())}
        for svg in (few, many)
    ]
    assert len(rows[0]) == 1
    assert len(rows[1]) > 1
