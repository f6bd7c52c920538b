from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from airloc.drawing.figure import spread


@settings(max_examples=30)
@given(st.lists(st.floats(0, 300), max_size=20), st.floats(1, 20))
def test_labels_are_moved_apart_in_order_and_stay_between_the_ends(wanted, gap):
    places = spread(wanted, 0, 400, gap)
    assert all(-1e-6 <= place <= 400 + 1e-6 for place in places)
    ordered = sorted(places)
    assert all(b - a >= min(gap, 400 / max(1, len(wanted) - 1)) - 1e-6 for a, b in pairwise(ordered))
    for (a, x), (b, y) in pairwise(zip(wanted, places, strict=True)):
        assert a == b or (a < b) == (x < y)


def test_labels_that_have_room_stay_in_place():
    assert spread([10, 50, 90], 0, 100, 18) == [10, 50, 90]
