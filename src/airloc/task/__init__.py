"""The task: rules, suites of episodes, and the environments."""

from airloc.task.anywhere import GoalsAnywhere
from airloc.task.batch import BatchEnv, Observation
from airloc.task.cells import CellTable
from airloc.task.env import SearchEnv
from airloc.task.photos import FlightConditions
from airloc.task.priors import PRIORS
from airloc.task.suites import (
    Suite,
    all_pairs,
    end_by_declaration,
    far_pairs,
    generate,
    per_distance,
    read_suite,
    uniform,
)
from airloc.task.vector_env import SearchVectorEnv

__all__ = [
    "PRIORS",
    "BatchEnv",
    "CellTable",
    "FlightConditions",
    "GoalsAnywhere",
    "Observation",
    "SearchEnv",
    "SearchVectorEnv",
    "Suite",
    "all_pairs",
    "end_by_declaration",
    "far_pairs",
    "generate",
    "per_distance",
    "read_suite",
    "uniform",
]
