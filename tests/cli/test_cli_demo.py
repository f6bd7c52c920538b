"""`airloc demo` writes one self-contained page, which a browser shows without further requests."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from airloc.cli.demo import AGENTS

pytestmark = pytest.mark.long


class Parts(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for found, attributes in self.found if found == tag]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a small demo."""
    from airloc.cli.main import main

    out = tmp_path_factory.mktemp("a demo") / "new" / "demo.html"
    main(["demo", "--areas", "9", "--out", str(out)])
    return out


def test_the_terminal_shows_every_agent_and_where_the_page_is(airloc, tmp_path: Path):
    page, picture = tmp_path / "demo.html", tmp_path / "demo.png"
    outcome = airloc("demo", "--areas", 2, "--grid", "2x3", "--out", page, "--picture", picture)
    assert outcome.code == 0
    assert "episodes" in outcome.err, "the play is announced"
    assert [agent for agent in AGENTS if agent not in outcome.out] == []
    assert "blind optimum" in outcome.out
    assert str(page) in outcome.out.replace("\n", "")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_page_is_self_contained(demo: Path):
    parts = Parts(demo.read_text(encoding="utf-8"))
    policy = [meta["content"] for meta in parts.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert len(policy) == 1
    assert "default-src 'none'" in (policy[0] or "")
    assert parts.of("script") == []
    for tag, attributes in parts.found:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            assert (attributes.get(name) or "data:").startswith(("data:", "#")), (tag, name)
    text = demo.read_text(encoding="utf-8")
    assert not re.search(r"url\(\s*['\"]?(?!data:|#)|@import", text)


def test_the_page_has_a_table_a_chart_eight_trajectories_and_a_search_step_by_step(demo: Path):
    text = demo.read_text(encoding="utf-8")
    parts = Parts(text)
    pictures = parts.of("img")
    assert len(pictures) == 9
    assert all((picture["src"] or "").startswith("data:image/") and picture["alt"] for picture in pictures)
    assert len({picture["src"] for picture in pictures}) == 9
    assert (len(parts.of("table")), len(parts.of("svg"))) == (1, 1)
    assert [agent for agent in (*AGENTS, "blind optimum") if agent not in text] == []
    assert "airloc demo --areas 9 --grid 5x5 --seed 0 --out &#x27;/" in text, "a path with a space is quoted"


@pytest.mark.browser
def test_a_browser_shows_the_page_and_asks_nobody_for_anything(demo: Path, open_report):
    page = open_report(demo)
    widths = page.eval_on_selector_all("img", "pictures => pictures.map(p => p.naturalWidth)")
    agents = page.eval_on_selector_all("tbody th", "cells => cells.map(c => c.innerText)")
    chart = page.locator("svg").first.bounding_box()
    sideways = page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    assert len(widths) == 9
    assert min(widths) > 0
    assert sorted(agents) == sorted([*AGENTS, "blind optimum"])
    assert chart is not None
    assert chart["width"] > 300
    assert not sideways


def test_a_grid_of_two_cells_has_a_demo_too(airloc, tmp_path: Path):
    assert airloc("demo", "--areas", 1, "--grid", "1x2", "--out", tmp_path / "demo.html").code == 0
    assert (tmp_path / "demo.html").read_text(encoding="utf-8").count("<img ") == 9


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["--areas", "0"], ["0", "--areas 1"]),
        (["--areas", "-3"], ["-3", "--areas 1"]),
        (["--grid", "1x1"], ["1x2"]),
        (["--grid", "500x500"], ["500x500"]),
        (["--out", "/proc/no/demo.html"], ["/proc/no/demo.html"]),
        (["--agents"], ["belief"]),
        (["--agents", "nobody"], ["'nobody'"]),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing(airloc, tmp_path: Path, arguments: list[str], facts: list[str]):
    assert airloc("demo", "--out", tmp_path / "new" / "demo.html", *arguments).refused(*facts)
    assert list(tmp_path.iterdir()) == []


def test_agents_can_be_chosen_and_without_a_belief_agent_there_is_no_belief(airloc, tmp_path: Path):
    page = tmp_path / "demo.html"
    assert airloc("demo", "--areas", 1, "--agents", "random", "blind", "--out", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("<img ") == 8  # the trajectories alone
    assert "--agents random blind" in text
