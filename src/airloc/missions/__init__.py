"""To the field: own imagery in, flight files out, the live searcher."""
