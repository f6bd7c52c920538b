"""Evaluation of agents: scores with intervals, controls, and analyses of recorded rollouts."""

from airloc.evaluation.analysis import calibration, match_calibration, prior_agreement
from airloc.evaluation.controls import CONTROLS, GoalChange
from airloc.evaluation.metrics import Bootstrap, Metric, blind_optimum, metrics
from airloc.evaluation.scores import Score, compare, evaluate

__all__ = [
    "CONTROLS",
    "Bootstrap",
    "GoalChange",
    "Metric",
    "Score",
    "blind_optimum",
    "calibration",
    "compare",
    "evaluate",
    "match_calibration",
    "metrics",
    "prior_agreement",
]
