"""Two hundred people at once, each a move a second."""

import pytest
from benchmarks.game_load import measure, percentile


@pytest.mark.slow
def test_a_moves_answer_takes_less_than_50_ms_in_99_of_100_and_none_is_lost():
    load = measure(players=200, seconds=25.0)
    print(f"{len(load.moves)} moves, ms: 50 % {percentile(load.moves, 50):.1f}, 99 % {percentile(load.moves, 99):.1f}")
    assert load.errors == []
    assert load.lost == 0
    assert len(load.moves) > 200 * 20
    assert percentile(load.moves, 99) < 50
