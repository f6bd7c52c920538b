"""Parts of airloc that need packages of an extra: asked for by name, never an ImportError."""

from importlib.util import find_spec

from airloc.errors import AirlocError


def need(extra: str, *packages: str) -> None:
    """Make sure that the packages of an extra are installed.

    Raises:
        AirlocError: When one is missing.
    """
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise AirlocError(
            f"This needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            f"Run: pip install 'airloc[{extra}]'",
        )
