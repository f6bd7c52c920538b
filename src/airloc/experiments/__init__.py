"""The experiment system: a graph of tasks with stored results, run on this machine or on a Ray cluster.

`airloc suites` and `airloc reproduce` plan different tasks and write different reports. They share everything else:

- `graph`: tasks, their keys, and digests of the data and weights that they read
- `datasets`, `training`, `evaluation`: the kinds of tasks
- `store`: results on disk
- `runner`, `cluster`: running the tasks without a result, with their progress
- `suites`, `paper`, `paper_data`: the tasks of the two commands
"""

from airloc.experiments.graph import Task, TaskContext, TaskKind, topological_order
from airloc.experiments.store import Store

__all__ = ["Store", "Task", "TaskContext", "TaskKind", "topological_order"]
