"""Reports: tables, charts and pages made from scores and results."""

from airloc.reports.results import EvaluationResult, load_result
from airloc.reports.tables import score_table

__all__ = ["EvaluationResult", "load_result", "score_table"]
