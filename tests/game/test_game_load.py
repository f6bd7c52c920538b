"""200 people play at once, one move per second each."""

import pytest
from benchmarks.game_load import measure, percentile


@pytest.mark.slow
def test_99_percent_of_moves_take_less_than_50_ms_and_none_is_lost():
    load = measure(players=200, seconds=25.0)
    print(f"{len(load.moves)} moves, ms: 50 % {percentile(load.moves, 50):.1f}, 99 % {percentile(load.moves, 99):.1f}")
    assert load.errors == []
    assert load.lost == 0
    assert len(load.moves) > 200 * 20
    assert percentile(load.moves, 99) < 50
