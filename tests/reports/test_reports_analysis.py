"""The reliability diagram."""

from xml.etree import ElementTree

import pytest

from airloc.evaluation.analysis import Bin, Reliability
from airloc.reports.analysis import calibration_chart, percent_error

FOUND = {
    "cells": Reliability((Bin(0.0, 0.01, 0.004, 0.005, (None, None), 900),), 0.001, (None, None)),
    "largest": Reliability((Bin(0.5, 0.6, 0.55, 0.35, (0.2, 0.5), 40),), 0.2, (0.1, 0.3)),
}


def test_the_diagram_has_all_forecasts_with_their_errors():
    text = "".join(ElementTree.fromstring(calibration_chart("a < b", FOUND)).itertext())
    assert all(part in text for part in ("a < b", "0.10 %", "20.0 %"))


@pytest.mark.parametrize(("error", "text"), [(0.0, "0.00 %"), (0.0094, "0.94 %"), (0.0961, "9.6 %"), (1.0, "100.0 %")])
def test_small_errors_have_two_digits(error, text):
    assert percent_error(error) == text
