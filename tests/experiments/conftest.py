import pytest

from airloc.experiments.graph import Task
from small_reproduction import few_tasks, planner


@pytest.fixture
def tasks() -> list[Task]:
    return few_tasks(planner())
