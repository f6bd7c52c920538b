"""Errors say what is wrong and what to do about it."""

import pickle

from airloc.errors import AirlocError


def test_an_error_is_a_problem_and_a_cure():
    error = AirlocError("There is no folder x", "Make it")
    assert str(error) == "There is no folder x. Make it."
    assert (error.problem, error.cure) == ("There is no folder x", "Make it")


def test_an_error_survives_the_way_between_processes():
    error = pickle.loads(pickle.dumps(AirlocError("There is no folder x", "Make it")))
    assert isinstance(error, AirlocError)
    assert str(error) == "There is no folder x. Make it."
