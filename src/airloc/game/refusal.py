"""What the server answers when it does not do what it is asked; nothing has changed then."""


class RefusedError(Exception):
    """A request that is turned down.

    Args:
        status: The HTTP status, 4xx, or 503 when asking again will help.
        reason: A short name that the page knows.
        message: What to tell the person.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message


def no_such_game() -> RefusedError:
    """The same answer for a game of somebody else and for one that never was."""
    return RefusedError(404, "no-game", "There is no such game")
