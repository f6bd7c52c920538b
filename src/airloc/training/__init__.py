"""Training: one loop a file, and the run folders that all of them write to."""
