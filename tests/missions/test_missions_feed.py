"""The feed of the map: every watcher sees the latest view, and nobody waits for a slow one."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from airloc.errors import AirlocError
from airloc.missions import feed
from airloc.missions.feed import SearchFeed


class Views:
    """A search whose view is a number, which counts how often it is read."""

    def __init__(self) -> None:
        self.view, self.reads, self.fails = 0, 0, 0

    def read(self, search: str) -> str:
        self.reads += 1
        if self.fails:
            self.fails -= 1
            raise AirlocError("The disk is full", "Free some space")
        return f'"{search} {self.view}"'


async def next_view(events: AsyncIterator[str]) -> str:
    async with asyncio.timeout(5):
        async for event in events:
            if event.startswith("event: view\n"):
                return event.partition("data: ")[2].strip()
    return "the end"


def test_all_watchers_see_every_change_and_it_is_read_once():
    async def run() -> None:
        views = Views()
        source = SearchFeed(views.read)
        watchers = [source.events("a") for _ in range(50)]
        assert {await next_view(watcher) for watcher in watchers} == {'"a 0"'}
        views.view = 1
        await asyncio.to_thread(source.notify, "a")
        source.notify("another search")
        assert {await next_view(watcher) for watcher in watchers} == {'"a 1"'}
        assert views.reads == 2

    asyncio.run(run())


def test_a_slow_watcher_receives_the_latest_view_and_an_unchanged_view_is_not_sent_again():
    async def run() -> None:
        views = Views()
        source = SearchFeed(views.read)
        fast, slow = source.events("a"), source.events("a")
        await next_view(fast)
        await next_view(slow)
        for number in (1, 2, 3):
            views.view = number
            source.notify("a")
            assert await next_view(fast) == f'"a {number}"'
        assert await next_view(slow) == '"a 3"'
        source.notify("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await next_view(fast)

    asyncio.run(run())


def test_a_quiet_stream_has_heartbeats_and_ends_for_a_reconnection(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(feed, "HEARTBEAT", 0.02)
    monkeypatch.setattr(feed, "STREAM_SECONDS", 0.2)

    async def run() -> list[str]:
        return [event async for event in SearchFeed(Views().read).events("a")]

    events = asyncio.run(run())
    assert events[0] == "retry: 1000\n\n"
    assert ": no change\n\n" in events


def test_closing_the_feed_ends_every_stream_and_a_read_error_does_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(feed, "RETRY_SECONDS", 0.01)

    async def run() -> None:
        views = Views()
        views.fails = 2
        source = SearchFeed(views.read)
        watchers = [source.events("a") for _ in range(3)]
        assert await next_view(watchers[0]) == '"a 0"', "the search is read again after an error"
        for watcher in watchers[1:]:
            await next_view(watcher)
        ends = [asyncio.create_task(next_view(watcher)) for watcher in watchers]
        await asyncio.sleep(0)
        source.close()
        assert await asyncio.gather(*ends) == ["the end"] * 3

    asyncio.run(run())


def test_a_search_that_nobody_watches_any_more_is_not_read():
    async def run() -> None:
        views = Views()
        source = SearchFeed(views.read)
        watcher = source.events("a")
        await next_view(watcher)
        await watcher.aclose()
        source.notify("a")
        await asyncio.sleep(0.05)
        assert views.reads == 1

    asyncio.run(run())
