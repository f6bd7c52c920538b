"""What a request to the search server may cost: bytes and seconds."""

from starlette.types import ASGIApp, Receive, Scope, Send

from airloc.web.bodies import SECONDS, TooLargeError, answer, read_body, replayed

MAX_BYTES = 40_000_000


class Bounded:
    """Refuses requests that are too large or never end; gives the others to an application whole.

    Args:
        app: The application.
        max_bytes: Largest body.
        seconds: Longest time for a body to come in.
    """

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BYTES, seconds: float = SECONDS) -> None:
        self._app, self._max_bytes, self._seconds = app, max_bytes, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await read_body(receive, self._max_bytes, self._seconds)
        except ConnectionResetError:
            return  # half a photo is none, and nobody waits for an answer
        except TimeoutError:
            await _refuse(send, 408, "The request did not come in whole in time", "Send it again over a better link")
        except TooLargeError:
            problem = f"The request is larger than {self._max_bytes / 1e6:.0f} MB"
            await _refuse(send, 413, problem, "Send a smaller picture")
        else:
            await self._app(scope, replayed(body, receive), send)


async def _refuse(send: Send, status: int, problem: str, cure: str) -> None:
    await answer(send, status, {"problem": problem, "cure": cure})
