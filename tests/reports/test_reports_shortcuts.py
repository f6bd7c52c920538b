"""Tables and the chart of shortcuts show the numbers of the records."""

from xml.etree import ElementTree

import pytest
from rich.console import Console

from airloc.reports.shortcuts import shortcut_chart, shortcut_page, shortcut_table


def entry(title: str, success: float, difference: float = 0.0, verdict: str = "holds") -> dict:
    near = [difference - 0.01, difference + 0.01]
    ends = [success - 0.02, success + 0.02]
    return {
        "title": title,
        "success": success,
        "ci95": ends,
        "difference": difference,
        "difference_ci95": near,
        "verdict": verdict,
    }


@pytest.fixture
def record() -> dict:
    return {
        "agent": "belief",
        "episodes": 320,
        "grid": "5x5",
        "blind_optimum": 0.521,
        "conditions": {
            "clean": entry("clean", 0.875),
            "jpeg-75": entry("JPEG 75, aligned", 0.98, 0.105, "raises"),
            "mirrored": entry("mirrored", 0.87, -0.005),
        },
        "size_spread": 0.014,
        "size_verdict": "holds",
        "unrelated_patches": {"pairs": 200, "share": 0.96, "ci95": [0.94, 0.98], "verdict": "depends"},
        "holds": False,
    }


def test_the_table_says_for_each_condition_whether_the_claim_holds(record):
    console = Console(width=120, record=True)
    console.print(shortcut_table(record))
    text = console.export_text()
    assert "+10.5 [+9.5, +11.5]" in text
    assert "raises" in text
    assert "52.1" in text
    assert "within 1.4 points" in text
    assert "96.0 % [94.0, 98.0]" in text
    assert "The claim fails for 1 of 2 conditions." in text


def test_the_page_marks_what_fails_and_shows_earlier_weights_beside(record):
    alone = shortcut_page({"belief": record})
    assert "| JPEG 75, aligned | 98.0 | **+10.5 [+9.5, +11.5]** raises |" in alone
    both = shortcut_page({"belief": record}, {"belief": record})
    assert both.splitlines()[0] == "| condition | `belief`, % | minus clean, before | after |"
    assert "- `belief` before: " in both


def test_the_chart_compares_phases_of_the_block_grid(record):
    text = "".join(ElementTree.fromstring(shortcut_chart({"belief": record})).itertext())
    assert "aligned with the area" in text
    assert "98" in text
    assert "blind optimum" in text
