"""Names are selected by shell patterns, and splits are counted in a fixed order."""

import pytest

from airloc.areas.records import NameFilter, Status, count_splits
from airloc.errors import AirlocError

EVENTS = ["harvey_1.png", "michael_1.png", "michael_2.png", "santa-rosa_1.png"]


def test_all_names_match_without_patterns():
    assert NameFilter().select(EVENTS, "x") == EVENTS
    assert not NameFilter()


def test_patterns_select_and_leave_out():
    assert NameFilter(only=("michael_*",)).select(EVENTS, "x") == EVENTS[1:3]
    assert NameFilter(without=("michael_*",)).select(EVENTS, "x") == [EVENTS[0], EVENTS[3]]
    assert NameFilter(only=("michael_*", "harvey*"), without=("*_1.png",)).select(EVENTS, "x") == [EVENTS[2]]


def test_upper_and_lower_case_differ():
    assert not NameFilter(only=("Michael_*",)).matches("michael_1.png")


def test_patterns_that_no_name_matches_are_named():
    with pytest.raises(AirlocError, match=r"--only m\* --except \*_1\* --except \*_2\*"):
        NameFilter(("m*",), ("*_1*", "*_2*")).select(EVENTS, "x")


def test_splits_are_counted_train_first():
    assert list(count_splits(["test", "val", "", "train", "val"]).items()) == [
        ("train", 1),
        ("val", 2),
        ("test", 1),
        ("without split", 1),
    ]


def test_differences_are_counted_for_the_published_layout_only(tmp_path):
    counts = {"train": 832, "val": 170}
    published = Status("masa", tmp_path, "published layout", counts, {"train": 832, "val": 178, "test": 178})
    assert published.differences == {"val": -8, "test": -178}
    assert Status("masa", tmp_path, "windows", counts, published.expected).differences == {}
