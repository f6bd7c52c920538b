"""The feed of the map: server-sent events with the view of a search, for any number of watchers.

A change of a search is read and encoded once, whatever the number of watchers. A watcher that is slow or reconnects
receives the latest view and misses only views in between.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from starlette.concurrency import run_in_threadpool

from airloc.errors import AirlocError

HEARTBEAT = 15.0
"""Seconds without a change after which a comment keeps the connection alive."""
STREAM_SECONDS = 3600.0
"""Seconds after which a stream ends and the browser reconnects."""
RETRY_SECONDS = 1.0
"""Seconds until a browser reconnects, and until the feed reads a search again after an error."""

log = logging.getLogger("uvicorn.error")


class SearchFeed:
    """The latest view of every search that somebody watches.

    Args:
        read: Returns the view of a search as JSON without line breaks; runs in a thread.
    """

    def __init__(self, read: Callable[[str], str]) -> None:
        self._read = read
        self._channels: dict[str, _Channel] = {}
        self._closed = False

    def notify(self, search: str) -> None:
        """Say that a search may have changed; may be called from any thread."""
        channel = self._channels.get(search)
        if channel is not None:
            with suppress(RuntimeError):  # the event loop has ended, and the watchers with it
                channel.loop.call_soon_threadsafe(channel.changed.set)

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        for channel in self._channels.values():
            channel.wake()

    async def events(self, search: str) -> AsyncIterator[str]:
        """Yield the view of a search now and after every change, as server-sent events."""
        channel = self._join(search)
        end, number = channel.loop.time() + STREAM_SECONDS, 0
        try:
            yield f"retry: {1000 * RETRY_SECONDS:.0f}\n\n"
            while not self._closed and channel.loop.time() < end:
                if number != channel.number:
                    number = channel.number
                    yield f"event: view\nid: {number}\ndata: {channel.view}\n\n"
                    continue
                try:
                    left = min(HEARTBEAT, end - channel.loop.time())
                    await asyncio.wait_for(channel.fresh.wait(), left)
                except TimeoutError:
                    yield ": no change\n\n"
        finally:
            self._leave(search, channel)

    def _join(self, search: str) -> "_Channel":
        channel = self._channels.get(search)
        if channel is None:
            channel = self._channels[search] = _Channel()
            channel.task = channel.loop.create_task(self._publish(search, channel))
        channel.watchers += 1
        return channel

    def _leave(self, search: str, channel: "_Channel") -> None:
        channel.watchers -= 1
        if channel.watchers == 0:
            self._channels.pop(search, None)
            if channel.task is not None:
                channel.task.cancel()

    async def _publish(self, search: str, channel: "_Channel") -> None:
        """Read the search after every change."""
        while True:
            channel.changed.clear()
            try:
                view = await run_in_threadpool(self._read, search)
            except AirlocError as error:
                log.error("The map of the search %s cannot be updated: %s", search, error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if view != channel.view:
                channel.view, channel.number = view, channel.number + 1
                channel.wake()
            await channel.changed.wait()


class _Channel:
    """The latest view of one search."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.view = ""
        self.number = 0
        self.watchers = 0
        self.changed = asyncio.Event()
        """The search may have changed since it was read."""
        self.fresh = asyncio.Event()
        """There is a new view; replaced by another event then."""
        self.task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Wake the watchers."""
        fresh, self.fresh = self.fresh, asyncio.Event()
        fresh.set()
