"""Images of the map are read once for all watchers."""

import asyncio

import pytest

from airloc.errors import AirlocError
from airloc.missions.images import ImageCache


class Reader:
    """Reads images that are their own keys, and counts."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, int]] = []
        self.fails = False

    def read(self, search: str, number: int) -> bytes:
        self.keys.append((search, number))
        if self.fails:
            raise AirlocError("The photo is damaged", "Send it again")
        return f"{search} {number}".encode()


def test_watchers_who_ask_at_once_wait_for_one_reading():
    async def run() -> None:
        reader = Reader()
        cache = ImageCache(reader.read, 10)
        assert await asyncio.gather(*(cache.get("a", 1) for _ in range(50))) == [b"a 1"] * 50
        assert await cache.get("a", 1) == b"a 1"
        assert reader.keys == [("a", 1)]

    asyncio.run(run())


def test_a_failure_reaches_everybody_and_is_not_kept():
    async def run() -> None:
        reader = Reader()
        reader.fails = True
        cache = ImageCache(reader.read, 10)
        results = await asyncio.gather(*(cache.get("a", 1) for _ in range(3)), return_exceptions=True)
        assert [type(result) for result in results] == [AirlocError] * 3
        reader.fails = False
        assert await cache.get("a", 1) == b"a 1"

    asyncio.run(run())


def test_a_watcher_who_leaves_does_not_disturb_the_others():
    async def run() -> None:
        cache = ImageCache(Reader().read, 10)
        leaving, staying = (asyncio.create_task(cache.get("a", 1)) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        assert await staying == b"a 1"
        with pytest.raises(asyncio.CancelledError):
            await leaving

    asyncio.run(run())


def test_the_images_that_were_not_asked_for_longest_leave_the_memory():
    async def run() -> None:
        reader = Reader()
        cache = ImageCache(reader.read, 2)
        for number in (1, 2, 1, 3, 1, 2):
            await cache.get("a", number)
        assert reader.keys == [("a", 1), ("a", 2), ("a", 3), ("a", 2)]

    asyncio.run(run())
