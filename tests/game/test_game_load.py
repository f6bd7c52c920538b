"""200 people play at once, about one move per second each."""

import pytest
from benchmarks.game_load import measure, percentile


@pytest.mark.slow
def test_99_percent_of_moves_take_less_than_50_ms_of_endings_less_than_200_ms_and_none_is_lost():
    load = measure(players=200, seconds=25.0)
    for what, seconds in (("moves", load.moves), ("endings", load.endings)):
        print(f"{len(seconds)} {what}, ms: 50 % {percentile(seconds, 50):.1f}, 99 % {percentile(seconds, 99):.1f}")
    assert load.errors == []
    assert (load.lost, load.lost_in_copy) == (0, 0)
    assert len(load.moves) > 200 * 15
    assert percentile(load.moves, 99) < 50
    assert percentile(load.endings, 99) < 200
