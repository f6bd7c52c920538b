"""The files that a command is to write: checked before the work, and no trace of them where it fails."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from airloc.drawing.files import check_writable
from airloc.errors import AirlocError


@contextmanager
def promised(paths: Sequence[Path]) -> Iterator[None]:
    """Make sure that files can be written, and do the work; folders made for them go again where it fails."""
    real = [path.absolute() for path in paths]
    twice = next((path for path in paths if real.count(path.absolute()) > 1), None)
    if twice is not None:
        raise AirlocError(f"Two outputs are to be written to {str(twice)!r}", "Give each a name of its own")
    missing = [folder for path in real for folder in path.parents if not folder.exists()]
    try:
        for path in paths:
            check_writable(path)
        yield
    except BaseException:
        for folder in sorted(missing, key=lambda folder: len(folder.parts), reverse=True):
            with suppress(OSError):
                folder.rmdir()
        raise
