"""Choosing areas by their names."""

from pathlib import Path

import pytest

from airloc.areas.pairs import ALL_NAMES, Names
from airloc.errors import AirlocError

EVENTS = ["harvey_1.png", "michael_1.png", "michael_2.png", "santa-rosa_1.png"]


def test_all_names_are_wanted_unless_some_are_asked_for():
    assert ALL_NAMES.choose(EVENTS, Path("x")) == EVENTS
    assert not ALL_NAMES


def test_patterns_choose_and_leave_out():
    assert Names(only=("michael_*",)).choose(EVENTS, Path("x")) == EVENTS[1:3]
    assert Names(without=("michael_*",)).choose(EVENTS, Path("x")) == [EVENTS[0], EVENTS[3]]
    assert Names(only=("michael_*", "harvey*"), without=("*_1.png",)).choose(EVENTS, Path("x")) == [EVENTS[2]]
    assert not Names(only=("Michael_*",)).wants("michael_1.png"), "case matters"


def test_nothing_left_is_refused_with_the_patterns():
    with pytest.raises(AirlocError, match=r"left by --only m\* --except \*_1\* --except .*quote them"):
        Names(("m*",), ("*_1*", "*_2*")).choose(EVENTS, Path("x"))
