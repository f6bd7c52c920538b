"""Errors that state the problem and the cure, in text that a terminal can show."""


def printable(text: str) -> str:
    r"""Return a text with control characters as escapes: a file name must not control the terminal.

    >>> printable("a\x1b[31m.png") == r"a\x1b[31m.png"
    True
    """
    shown = (char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)
    return "".join(shown)


def reason_of(error: Exception) -> str:
    r"""Return what a library says about an error, as the end of a problem: the first line without a full stop.

    >>> reason_of(ValueError("no such band.\nSee the manual.")), reason_of(OSError())
    ('no such band', 'OSError')
    """
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__


class AirlocError(Exception):
    """An error that the user can fix. The command line prints it and exits with code 2.

    Args:
        problem: What is wrong and where, as one sentence without a full stop.
        cure: What to do about it, as one sentence without a full stop.
    """

    def __init__(self, problem: str, cure: str) -> None:
        super().__init__(problem, cure)
        self.problem = problem
        self.cure = cure

    def __str__(self) -> str:
        return printable(f"{self.problem}. {self.cure}.")
