"""Errors that state the problem and the cure, in text that a terminal can show."""

from collections.abc import Iterable
from difflib import get_close_matches


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


def suggest(name: str, known: Iterable[str], noun: str, otherwise: str = "") -> str:
    """Return the cure for an unknown name: a similar one if there is any, and all known ones.

    `otherwise` replaces the noun if no name is similar.

    >>> suggest("blurr", ["turned", "blur"], "Changes")
    "Did you mean 'blur'? Changes are: turned, blur"
    """
    known = list(known)
    near = get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]!r}? {noun}" if near else otherwise or noun
    return f"{hint} are: {', '.join(known)}"


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
