"""airloc: find a place from above, one glimpse at a time."""

__version__ = "0.1.0"
