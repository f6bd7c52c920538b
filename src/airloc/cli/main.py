"""The `airloc` command: find the verb, run it, and print errors as one sentence.

A verb is imported only when it is called, so that `airloc --help` answers at once.
"""

import importlib
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from airloc import __version__
from airloc.errors import AirlocError, suggest
from airloc_cli import FAILED, STOPPED, stop

Verb = Callable[[Sequence[str]], None]

VERBS: dict[str, str] = {
    "demo": "run all agents on procedural areas and write a report",
    "evaluate": "evaluate an agent on your images or a dataset",
    "suites": "evaluate all agents on all suites: one table with intervals, blind optimum and commands",
    "show": "draw one search step by step, with the agent's belief",
    "analyse": "analyse calibration, failures, shortcuts in the pixels or use of the prior, or pool folds",
    "train": "train an agent or one of its networks",
    "reproduce": "reproduce the tables and figures of the paper in one report",
    "search": "rehearse a search over a georeferenced image and write flight files",
    "serve": "run live searches over HTTP: photos in, the next waypoint out",
    "export": "export an agent to ONNX with a runner that needs neither torch nor airloc",
    "data": "list, download, prepare and show datasets",
    "play": "search in the browser yourself, and watch agents search",
    "study": "run the game as a study with participants",
}
"""Each verb is the module of this package with the same name. It has a function `main(arguments)`."""

_NO_MEMORY = "There is not enough memory. Use fewer areas, a smaller --grid or a smaller --batch."


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Exit with code 2 if the command fails.

    Args:
        arguments: The words after `airloc`. None takes those of this process and handles its interrupts.
    """
    owns_process = arguments is None
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if owns_process:
            _prepare_process()
        verb = _find_verb(arguments)
        if owns_process:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if verb is not None:
            from airloc.cli.console import logged_warnings, option_rules

            with option_rules(), logged_warnings():
                verb(arguments[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
    except AirlocError as error:
        _fail(str(error))
    except MemoryError:
        _fail(_NO_MEMORY)
    except ModuleNotFoundError as error:
        from airloc.cli.console import explain_missing

        explained = explain_missing(error)
        if explained is None:
            raise
        _fail(str(explained))
    except BrokenPipeError:
        # The reader of our output has gone: exit quietly, and keep Python from writing to the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except (KeyboardInterrupt, Exception) as error:
        if _is_interrupt(error):
            if owns_process:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            _fail(STOPPED)
        if isinstance(error, OSError) and error.filename:  # such as a name that is too long, or a disk that fails
            _fail(f"Cannot use {str(error.filename)!r}: {error.strerror}. Check the path and its disk.")
        raise
    finally:
        if owns_process:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the exit is left


def _find_verb(arguments: list[str]) -> Verb | None:
    """Import the verb. Return None after answering `--help` or `--version`.

    Raises:
        AirlocError: If there is no such verb.
    """
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_usage())
    elif arguments[0] in ("-V", "--version"):
        print(f"airloc {__version__}")
    elif arguments[0] in VERBS:
        verb: Verb = importlib.import_module(f"airloc.cli.{arguments[0]}").main
        return verb
    else:
        raise AirlocError(f"There is no verb {arguments[0]!r}", suggest(arguments[0], VERBS, "Verbs"))
    return None


def _usage() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:<{width}}  {meaning}" for name, meaning in VERBS.items())
    return (
        "airloc: aerial view goal localization\n\n"
        f"usage: airloc VERB [options]\n\n{verbs}\n\n"
        "airloc VERB --help lists the options of a verb; airloc --version prints the version."
    )


def _prepare_process() -> None:
    """Exit at once on an interrupt during imports. Print characters that the terminal cannot show as escapes."""
    signal.signal(signal.SIGINT, stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _is_interrupt(error: BaseException | None) -> bool:
    """Return True if an interrupt caused the error; libraries may turn it into another one while they load."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _fail(sentence: str) -> NoReturn:
    print(f"airloc: {sentence}", file=sys.stderr)
    sys.exit(FAILED)


if __name__ == "__main__":
    main()
