import itertools

import numpy as np
import pytest

from airloc.drawing.palette import (
    DARK_PAPER,
    GOAL,
    INKS,
    LIGHT_PAPER,
    PATH_A,
    PATH_B,
    START,
    Colour,
    contrast,
    heat,
    text_on,
)

# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
DEFICIENCIES = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def colour_of(text: str) -> Colour:
    red, green, blue = bytes.fromhex(text.removeprefix("#"))
    return red, green, blue


def oklab(linear: np.ndarray) -> np.ndarray:
    to_cone = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
               [0.0883024619, 0.2817188376, 0.6299787005]]  # fmt: skip
    to_lab = [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
              [0.0259040371, 0.7827717662, -0.8086757660]]  # fmt: skip
    return np.cbrt(np.clip(linear, 0, None) @ np.array(to_cone).T) @ np.array(to_lab).T


def linear(colours: np.ndarray) -> np.ndarray:
    share = np.asarray(colours) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("ink", INKS)
def test_every_series_colour_stands_out_from_its_paper(ink):
    assert contrast(colour_of(ink.light), colour_of(LIGHT_PAPER)) >= 3
    assert contrast(colour_of(ink.dark), colour_of(DARK_PAPER)) >= 3


@pytest.mark.parametrize("sight", DEFICIENCIES)
@pytest.mark.parametrize("paper", ["light", "dark"])
def test_series_differ_for_colour_blind_readers_the_first_five_clearly(sight, paper):
    colours = np.array([colour_of(getattr(ink, paper)) for ink in INKS])
    seen = oklab(np.clip(linear(colours) @ np.array(DEFICIENCIES[sight]).T, 0, 1))
    for count, least in [(5, 0.1), (8, 0.04)]:
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen[:count], 2)) > least


@pytest.mark.parametrize("colour", [PATH_A, PATH_B, START, GOAL])
def test_numbers_and_letters_read_well_on_their_circles(colour: Colour):
    assert contrast(text_on(colour), colour) >= 4.5


def test_lightness_of_the_heat_map_rises_evenly():
    lightness = oklab(linear(heat(np.linspace(0, 1, 50))))[:, 0]
    steps = np.diff(lightness)
    assert (steps > 0).all()
    assert steps.max() < 3 * steps.mean()


def test_contrast_of_black_and_white_is_21():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
