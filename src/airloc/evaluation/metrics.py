"""The paper's five metrics, each the ratio of two sums over episodes.

| metric            | over                | numerator                         | denominator        |
|-------------------|---------------------|-----------------------------------|--------------------|
| success           | all episodes        | found                             | 1                  |
| steps             | all episodes        | moves (the budget where not found)| 1                  |
| step_ratio        | successes           | moves / minimum                   | 1                  |
| step_ratio_table  | successes           | 1                                 | minimum / moves    |
| residual_distance | failures            | last cell to goal                 | 1                  |

Where episodes end by declaration, found means declared where the goal is, and there are two more over all episodes:
`false_alarms` (declared elsewhere) and `missed` (never declared). The three sum to one.

`step_ratio` is what the paper's text defines, `step_ratio_table` what its tables print. Runtime, the fifth, is a
clock's and not a sum over episodes. As sums, all metrics take weights, strata and the bootstrap in the same way.

Legend: E episodes.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from airloc.rollout import Trajectories
from airloc.task.suites import Suite

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as what every episode adds to two sums."""

    numerator: Floats
    """(E,)."""
    denominator: Floats
    """(E,)."""

    def value(self) -> float | None:
        """The metric over all episodes; None where no episode counts."""
        return ratio(float(self.numerator.sum()), float(self.denominator.sum()))

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Metric":
        """The metric over some of the episodes; the others add nothing."""
        return Metric(self.numerator * chosen, self.denominator * chosen)


def metrics(suite: Suite, played: Trajectories) -> dict[str, Metric]:
    """Give every metric of a suite that was played."""
    weight = suite.weight / suite.weight.sum() * len(suite)
    minimum = suite.distance
    steps = played.steps
    won, lost = weight * played.found, weight * ~played.found
    residual = suite.grid.apart(played.path[:, -1], suite.goal)
    scored = {
        "success": Metric(won, weight),
        "steps": Metric(weight * steps, weight),
        "step_ratio": Metric(won * steps / minimum, won),
        "step_ratio_table": Metric(won, won * minimum / np.maximum(steps, 1)),  # no move where the start is declared
        "residual_distance": Metric(lost * residual, lost),
    }
    if played.declared is not None:
        scored["false_alarms"] = Metric(weight * (played.declared & ~played.found), weight)
        scored["missed"] = Metric(weight * ~played.declared, weight)
    return scored


def ratio(numerator: float, denominator: float) -> float | None:
    """Divide, or give None where there is nothing to divide by."""
    return numerator / denominator if denominator else None
