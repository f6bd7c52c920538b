"""Start of the `airloc` command.

The module lies outside the package: importing the package takes a moment, and an interrupt (Ctrl-C) in that moment must
not show a traceback.
"""

import os

# Built in. The module `signal` takes long enough to import to be interrupted.
from _signal import SIGINT, signal  # type: ignore[import-not-found]

STOPPED = "Interrupted. No partial output was left. Run the same command again."
FAILED = 2
"""Exit code of a command that did not do what it was asked for."""


def main() -> None:
    """Handle interrupts from now on, then import the command line and run it."""
    signal(SIGINT, stop)
    from airloc.cli.main import main as run

    run()


def stop(number: int, frame: object) -> None:
    """Exit at once. During imports an exception could surface as any other error, and nothing has begun yet."""
    del number, frame
    try:
        os.write(2, f"airloc: {STOPPED}\n".encode())
    finally:
        os._exit(FAILED)


if __name__ == "__main__":
    main()
