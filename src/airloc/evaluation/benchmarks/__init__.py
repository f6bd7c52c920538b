"""Benchmarks as data: the suites that agents are evaluated on, and the numbers of the paper and its successors."""

from airloc.evaluation.benchmarks.paper import (
    CLAIMS,
    SUCCESSOR_PROTOCOL,
    SUCCESSOR_RESULTS,
    TABLES,
    Claim,
    Row,
    Setup,
    SuccessorProtocol,
    SuccessorResult,
    Table,
    table,
)
from airloc.evaluation.benchmarks.suites import GROUPS, SUITES, SuiteGroup, SuiteSpec, find_suites

__all__ = [
    "CLAIMS",
    "GROUPS",
    "SUCCESSOR_PROTOCOL",
    "SUCCESSOR_RESULTS",
    "SUITES",
    "TABLES",
    "Claim",
    "Row",
    "Setup",
    "SuccessorProtocol",
    "SuccessorResult",
    "SuiteGroup",
    "SuiteSpec",
    "Table",
    "find_suites",
    "table",
]
