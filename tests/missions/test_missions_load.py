"""200 people watch one search on the live map."""

import pytest
from benchmarks.map_load import measure, percentile


@pytest.mark.slow
def test_99_percent_of_the_views_of_200_watchers_arrive_within_half_a_second_and_none_is_lost():
    load = measure(watchers=200, photos=20)
    for what, seconds in (("views", load.delays), ("photos", load.photos), ("photos without watchers", load.alone)):
        print(f"{len(seconds)} {what}, ms: 50 % {percentile(seconds, 50):.1f}, 99 % {percentile(seconds, 99):.1f}")
    assert load.errors == []
    assert load.missed == 0
    assert len(load.delays) >= 200 * 15
    assert percentile(load.delays, 99) < 500
