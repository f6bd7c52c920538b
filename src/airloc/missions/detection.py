"""Measured probabilities of detection (POD): how often a goal is declared in the photo of its own cell.

`python -m benchmarks.field_anywhere --pod --searches 400` measures them: goals that lie anywhere in the cell, of any
heading and up to 1.5 times as wide or narrow as a cell, each photo and goal with its own light and compression. Goals
of the same day are from Massachusetts validation windows, Dubai and xBD. Of the goals of another day, half are from
another year (NAIP, Claremont) and half from before a disaster (xBD without hurricane Michael). The agent is `belief`,
and the photo is the first of its search; other agents have the same judge and the same numbers. Run it again when the
weights or the calibration of sightings change.
"""

import numpy as np

THRESHOLDS = (0.5, 0.8, 0.95)
"""Match probabilities from which a find is declared: costs of a false alarm of 1, 4 and 19."""
MEASURED = {
    (True, True): (0.94, 0.94, 0.92),
    (True, False): (0.94, 0.94, 0.92),
    (False, True): (0.57, 0.48, 0.34),
    (False, False): (0.54, 0.47, 0.33),
}
"""POD at the thresholds by (the goal is of the day of the flight, its heading is known), 400 photos each."""

DESCRIBED = (0.0, 0.0, 0.0)
"""POD at the thresholds of goals that are described in words alone, 300 photos of procedural cells: a description fits
several cells, so that none is declared, and a person looks at the photos in the order of their match."""


def measured_pod(threshold: float, *, same_day: bool, heading_known: bool, pictured: bool = True) -> float:
    """Return the measured POD of a photo that shows the whole cell, interpolated between the measured thresholds.

    Args:
        threshold: Match probability from which a find is declared.
        same_day: The picture of the goal is from the day of the flight. False if that is not known.
        heading_known: The heading of the picture is known.
        pictured: There is a picture of the goal. False if it is described in words alone.
    """
    measured = MEASURED[same_day, heading_known] if pictured else DESCRIBED
    return float(np.interp(threshold, (0.0, *THRESHOLDS, 1.0), (1.0, *measured, 0.0)))
