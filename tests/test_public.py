"""The public face: the names of `import airloc`, what they load, and a five-line script."""

import subprocess
import sys

import pytest

import airloc

pytestmark = pytest.mark.long

OPTIONAL = {
    "fastapi",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "pooch",
    "pyproj",
    "rasterio",
    "ray",
    "shapely",
    "tensorboard",
    "uvicorn",
}


def run(script: str) -> str:
    """What a script prints in a Python process of its own."""
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.strip()


def test_every_public_name_is_there():
    assert {"Grid", "Suite", "evaluate", "load_dataset", "make_agent", "rollout", "__version__"} <= set(airloc.__all__)
    assert [name for name in airloc.__all__ if not hasattr(airloc, name)] == []
    assert set(airloc.__all__) <= set(dir(airloc))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nosuch"):
        _ = airloc.nosuch


def test_importing_the_module_of_rollouts_does_not_hide_the_function():
    script = "import airloc, airloc.rollout, airloc.evaluation.scores; print(type(airloc.rollout).__name__)"
    assert run(script) == "function"


def test_import_airloc_is_light_and_registers_the_environments():
    script = (
        "import airloc, sys, gymnasium as gym; print('torch' in sys.modules, 'airloc/Search-5x5-v0' in gym.registry)"
    )
    assert run(script) == "False True"


def test_tasks_agents_and_evaluation_need_no_optional_package():
    script = (
        "import sys, airloc.agents.registry, airloc.areas.registry, airloc.cli.evaluate, airloc.evaluation.scores, "
        "airloc.rollout, airloc.task.env, airloc.task.suites; print(*{name.partition('.')[0] for name in sys.modules})"
    )
    assert OPTIONAL & set(run(script).split()) == set()
