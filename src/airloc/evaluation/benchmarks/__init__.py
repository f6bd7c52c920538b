"""The paper's own numbers as data, each with its table and row: `tables.toml`, `claims.toml`, `successors.toml`.

The step ratio is a puzzle. The text defines it as the mean of steps / minimum over the successes. What the tables print
fits 1 / mean(minimum / steps) instead: every ratio of tables 1, 2 and 5, and of the median seeds of table 4, is the
reciprocal of a number with two digits after the point, as it comes out when a mean of minimum / steps is rounded and
then turned over. One cell fits neither: 0.79 for Local in table 5, where no ratio can lie below one. So both are
reported: `step_ratio` as the text defines it, and `step_ratio_table`, which the printed values are compared with.
"""

from airloc.evaluation.benchmarks.paper import (
    CLAIMS,
    PROTOCOL,
    PUBLISHED,
    TABLES,
    Claim,
    Protocol,
    Published,
    Row,
    Table,
    table,
)

__all__ = [
    "CLAIMS",
    "PROTOCOL",
    "PUBLISHED",
    "TABLES",
    "Claim",
    "Protocol",
    "Published",
    "Row",
    "Table",
    "table",
]
