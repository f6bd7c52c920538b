"""Pictures, charts, pages and files, from arrays and plain values alone."""
