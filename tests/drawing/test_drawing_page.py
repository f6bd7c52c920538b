import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from airloc.drawing.page import (
    Html,
    command,
    figure,
    image_tag,
    link,
    page,
    paragraph,
    row,
    section,
    table,
)
from airloc.errors import AirlocError

VOID = {"meta", "link", "img", "br", "hr"}


class Outline(HTMLParser):
    """Collects tags, attributes and text, and insists that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


EVIL = '<script>alert("1")</script>&\'\0'


def test_a_page_carries_its_style_and_may_fetch_nothing():
    text = page("Title", "<p>body</p>", subtitle="Sub")
    outline = Outline(text)
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert not re.search(r"https?:|@import|url\(", text)
    assert "script" not in outline.tags
    assert {"h1", "main", "style"} <= set(outline.tags)


@settings(max_examples=40)
@given(title=st.text(st.characters(codec=None)), cell=st.text(st.characters(codec=None)))
def test_any_text_stays_text(title, cell):
    body = section(
        title,
        table([title, "b"], [[cell, None], [cell, 1.5]], caption=cell),
        figure(image_tag(np.zeros((2, 2, 3), np.uint8), cell), cell, source="out.json", made_by=cell),
        row(paragraph(cell), command(cell)),
    )
    plain = Outline(page("t", section("t", table(["t", "b"], [["c", None], ["c", 1.5]], caption="c"))))
    outline = Outline(page(title, body, subtitle=cell))
    assert set(outline.tags) <= {*plain.tags, "figure", "figcaption", "img", "a", "pre", "code", "p", "div"}


def test_hostile_text_is_escaped_everywhere():
    body = section(EVIL, paragraph(EVIL), table([EVIL], [[EVIL]], caption=EVIL), command(EVIL), figure("", EVIL))
    text = page(EVIL, body, subtitle=EVIL)
    assert "<script" not in text
    assert "\0" not in text


def test_html_goes_in_as_it_is():
    assert "<b>bold</b>" in table(["a"], [[Html("<b>bold</b>")]])


@pytest.mark.parametrize(
    "href", ["javascript:alert(1)", " JavaScript:x", "java\nscript:x", "\x01javascript:x", "vbscript:x"]
)
def test_links_that_could_run_code_are_refused(href):
    with pytest.raises(AirlocError):
        link("x", href)


@pytest.mark.parametrize("href", ["out.json", "#top", "../a:b/c.json", "https://arxiv.org/abs/2209.03694", "data:,x"])
def test_links_to_files_pages_and_places_are_made(href):
    assert f'href="{href}"' in link("x", href)


def test_number_columns_are_flush_right_and_missing_values_are_dashes():
    text = table(["agent", "success", "note"], [["a", "84.0 %", "x"], ["b", None, "2 x"], ["c", -0.5, ""]])
    assert '<th scope="col" class="number">success</th>' in text
    assert '<td class="number">\N{EN DASH}</td>' in text
    assert '<th scope="col">note</th>' in text
    assert '<th scope="row">a</th>' in text


def test_highlighted_cells_are_marked():
    text = table(["a", "b"], [["x", 1], ["y", 2]], highlight=[(1, 1)])
    assert '<td class="number marked">2</td>' in text
    assert text.count("marked") == 1


def test_rows_of_another_length_are_refused_and_no_rows_are_fine():
    with pytest.raises(AirlocError):
        table(["a", "b"], [["x"]])
    with pytest.raises(AirlocError):
        table([], [])
    Outline(table(["a"], []))


def embedded(tag: str) -> tuple[str, Image.Image]:
    kind, data = re.search(r"data:image/(\w+);base64,([^\"]+)", tag).groups()
    return kind, Image.open(io.BytesIO(base64.b64decode(data)))


def test_drawings_are_embedded_as_png_and_photographs_as_jpeg():
    flat = np.full((300, 300, 3), 200, np.uint8)
    noise = np.random.default_rng(0).integers(0, 256, (300, 300, 3), dtype=np.uint8)
    for pixels, wanted in [(flat, "png"), (noise, "jpeg"), (noise[..., 0], "jpeg"), (noise[..., :1], "jpeg")]:
        kind, picture = embedded(image_tag(pixels, "alt"))
        assert kind == wanted
        assert picture.size == (300, 300)


def test_transparency_is_kept():
    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 4), dtype=np.uint8)
    kind, picture = embedded(image_tag(noise, "alt"))
    assert kind == "png"
    assert np.array_equal(np.asarray(picture), noise)


def test_a_figure_links_its_data_and_prints_its_command():
    text = figure("<svg/>", "Caption", source="out.json", made_by="airloc evaluate belief --json out.json")
    assert 'href="out.json"' in text
    assert "<pre><code>airloc evaluate belief --json out.json</code></pre>" in text


def test_sections_have_anchors():
    assert 'id="table-1-masa"' in section("Table 1: Masa")
