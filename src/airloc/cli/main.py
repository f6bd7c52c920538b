"""The `airloc` command: finds the verb, runs it, and turns errors into one clear sentence.

Verbs are imported only when called, so that `airloc --help` answers at once.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches

from airloc import __version__
from airloc.errors import AirlocError

VERBS: dict[str, str] = {
    "demo": "play all agents on procedural areas and write a report to look at",
    "evaluate": "score an agent on your areas or a dataset",
    "data": "list, fetch, prepare and show search areas",
}
"""Each verb is the module of the same name in this package, with a function `main(arguments)`."""

FAILED = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _run(arguments)
    except AirlocError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("Stopped before the end; nothing half-written was left. Run the same command again to start over.")
    except BrokenPipeError:
        # Whoever read our output has gone; leave quietly, and keep Python from writing to the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)


def _run(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_usage())
    elif arguments[0] in ("-V", "--version"):
        print(f"airloc {__version__}")
    elif arguments[0] in VERBS:
        importlib.import_module(f"airloc.cli.{arguments[0]}").main(arguments[1:])
    else:
        near = get_close_matches(arguments[0], VERBS, n=1)
        hint = f"Did you mean {near[0]!r}? Verbs" if near else "Verbs"
        raise AirlocError(f"There is no verb {arguments[0]!r}", f"{hint} are: {', '.join(VERBS)}")


def _usage() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:<{width}}  {meaning}" for name, meaning in VERBS.items())
    return (
        "airloc: find a place from above, one glimpse at a time\n\n"
        f"usage: airloc VERB [options]\n\n{verbs}\n\n"
        "airloc VERB --help tells about a verb; airloc --version tells the version."
    )


def _fail(sentence: str) -> None:
    print(f"airloc: {sentence}", file=sys.stderr)
    sys.exit(FAILED)


if __name__ == "__main__":
    main()
