"""What is timed, each against a floor or a peer taken in the same run."""
