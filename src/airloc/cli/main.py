"""The `airloc` command: finds the verb, runs it, and turns errors into one clear sentence.

Verbs are imported only when called, so that `airloc --help` answers at once.
"""

import importlib
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from types import FrameType
from typing import NoReturn

from airloc import __version__
from airloc.errors import AirlocError

VERBS: dict[str, str] = {
    "demo": "play all agents on procedural areas and write a report to look at",
    "evaluate": "score an agent on your areas or a dataset",
    "suites": "play all agents on all suites: one table with intervals, blind optimum and commands",
    "show": "draw one search step by step, with what the agent believes",
    "analyse": "analyse calibration, failures or use of the prior, or pool folds",
    "train": "train AiRLoc, or one of its units, from pictures",
    "reproduce": "make the paper's tables and figures again, ours beside theirs, in one report",
    "search": "search your own georeferenced image for a place, and write flight files",
    "serve": "lead live searches over HTTP: photos in, the next waypoint out",
    "export": "write an agent as ONNX graphs with a runner that needs neither torch nor airloc",
    "data": "list, fetch, prepare and show search areas",
    "play": "search yourself, in the browser, and watch agents do it",
    "study": "run the game as a study with people, and get the Human row",
}
"""Each verb is the module of the same name in this package, with a function `main(arguments)`."""

FAILED = 2

STOPPED = "Stopped before the end; nothing half-written was left. Run the same command again."


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Args:
        arguments: What follows the command's name; None for those of this process, whose interrupts are then handled.
    """
    owns_process = arguments is None
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if owns_process:
            _prepare_process()
        verb = _find(arguments)
        if owns_process:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if verb is not None:
            verb(arguments[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
    except AirlocError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        if owns_process:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        _fail(STOPPED)
    except MemoryError:
        _fail("There is not enough memory. Ask for fewer areas, a smaller --grid or a smaller --batch.")
    except BrokenPipeError:
        # Whoever read our output has gone; leave quietly, and keep Python from writing to the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    finally:
        if owns_process:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left to do is to leave


def _find(arguments: list[str]) -> Callable[[Sequence[str]], None] | None:
    """Import the verb that is asked for; None where the answer is given already."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_usage())
    elif arguments[0] in ("-V", "--version"):
        print(f"airloc {__version__}")
    elif arguments[0] in VERBS:
        verb: Callable[[Sequence[str]], None] = importlib.import_module(f"airloc.cli.{arguments[0]}").main
        return verb
    else:
        near = get_close_matches(arguments[0], VERBS, n=1)
        hint = f"Did you mean {near[0]!r}? Verbs" if near else "Verbs"
        raise AirlocError(f"There is no verb {arguments[0]!r}", f"{hint} are: {', '.join(VERBS)}")
    return None


def _usage() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:<{width}}  {meaning}" for name, meaning in VERBS.items())
    return (
        "airloc: find a place from above, one glimpse at a time\n\n"
        f"usage: airloc VERB [options]\n\n{verbs}\n\n"
        "airloc VERB --help tells about a verb; airloc --version tells the version."
    )


def _prepare_process() -> None:
    """Stop at once on an interrupt for now, and print names that the terminal's encoding cannot hold as escapes."""
    signal.signal(signal.SIGINT, _stop_at_once)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _stop_at_once(number: int, frame: FrameType | None) -> NoReturn:
    """Leave while modules are being imported, where an exception could come out as any other; nothing is begun yet."""
    del number, frame
    with suppress(OSError):
        os.write(2, f"airloc: {STOPPED}\n".encode())
    os._exit(FAILED)


def _fail(sentence: str) -> NoReturn:
    print(f"airloc: {sentence}", file=sys.stderr)
    sys.exit(FAILED)


if __name__ == "__main__":
    main()
