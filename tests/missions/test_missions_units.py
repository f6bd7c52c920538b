"""Quantities as text: invalid ones are errors that show an example."""

from functools import partial

import pytest

from airloc.errors import AirlocError
from airloc.missions.units import (
    looks_like_position,
    parse_duration,
    parse_length,
    parse_pixel,
    parse_position,
    parse_range,
    parse_speed,
)

on_ground = partial(parse_length, georeferenced=True)


@pytest.mark.parametrize(
    ("parse", "text", "example"),
    [
        (on_ground, "0m", "100m"),
        (on_ground, "-3m", "100m"),
        (on_ground, "5 miles", "100m"),
        (on_ground, "", "100m"),
        (on_ground, "1.2.3m", "100m"),
        (on_ground, "1e999m", "100m"),
        (on_ground, "48px", "100m"),
        (partial(parse_length, georeferenced=False), "100m", "48px"),
        (parse_duration, "5m", "18min"),
        (parse_duration, "0s", "18min"),
        (parse_speed, "fast", "8m/s"),
        (parse_position, "91,0", "59.33,18.06"),
        (parse_position, "5", "59.33,18.06"),
        (parse_position, "a,b", "59.33,18.06"),
        (parse_position, "nan,0", "59.33,18.06"),
        (parse_pixel, "12", "120,80"),
        (parse_pixel, "nan,3", "120,80"),
    ],
)
def test_an_invalid_quantity_is_an_error_that_shows_an_example(parse, text: str, example: str):
    with pytest.raises(AirlocError) as error:
        parse(text)
    assert text in error.value.problem
    assert example in error.value.cure


def test_zero_is_valid_where_it_is_allowed():
    assert on_ground("0m", allow_zero=True) == parse_duration("0s", allow_zero=True) == 0


@pytest.mark.parametrize(
    ("text", "bounds"),
    [("60m", (60, 60)), ("50m-80m", (50, 80)), ("50 - 80M", (50, 80)), ("0.05-0.08km", (50, 80)),
     ("1e-1km", (100, 100)), ("1e-2km-1e-1km", (10, 100))],
)  # fmt: skip
def test_a_range_of_lengths_may_name_its_unit_once(text: str, bounds: tuple[float, float]):
    assert parse_range(text, georeferenced=True) == pytest.approx(bounds)


@pytest.mark.parametrize(
    "text",
    [
        "59°20'24\"N 18°3'36\"E",
        "59 20 24 N, 18 3 36 E",
        "N59°20.4' E18°3.6'",
        "59.34N 18.06E",
        "59°20\u203224\u2033n, 18°03\u203236\u2033e",
    ],
)
def test_degrees_minutes_and_seconds_are_understood(text: str):
    assert looks_like_position(text)
    assert parse_position(text) == pytest.approx((59.34, 18.06), abs=1e-8)


def test_the_letters_of_hemispheres_set_the_signs():
    assert parse_position("33°30'S 70°15'W") == (-33.5, -70.25)


@pytest.mark.parametrize("text", ["59°61'N 18°E", "59°20'N", "18°E 59°N", "91°N 0°E", "N S", '59°20\'24"1"N 1°E'])
def test_angles_that_are_no_position_are_errors(text: str):
    with pytest.raises(AirlocError, match="is not a position"):
        parse_position(text)
