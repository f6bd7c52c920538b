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


WEB = ("starlette", "airloc.game", "airloc.web")
SCRIPT = """
import sys, airloc.agents.registry, airloc.areas.registry, airloc.cli.evaluate, airloc.cli.main, airloc.cli.play
import airloc.cli.study, airloc.evaluation.scores, airloc.rollout, airloc.task.env, airloc.task.suites
print(type(airloc.rollout).__name__, *sys.modules)
"""


def run(script: str) -> str:
    """What a script prints in a Python process of its own."""
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    """The type of `airloc.rollout` after many imports, and the modules that they load."""
    return run(SCRIPT).split()


def test_every_public_name_is_there():
    assert {"Grid", "Suite", "evaluate", "load_dataset", "make_agent", "rollout", "__version__"} <= set(airloc.__all__)
    assert [name for name in airloc.__all__ if not hasattr(airloc, name)] == []
    assert set(airloc.__all__) <= set(dir(airloc))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nosuch"):
        _ = airloc.nosuch


def test_importing_the_module_of_rollouts_does_not_hide_the_function(loaded: list[str]):
    assert loaded[0] == "function"


def test_import_airloc_is_light_and_registers_the_environments():
    script = (
        "import airloc, sys, gymnasium as gym; print('torch' in sys.modules, 'airloc/Search-5x5-v0' in gym.registry)"
    )
    assert run(script) == "False True"


def test_tasks_agents_evaluation_and_the_command_line_load_no_optional_package_and_no_server(loaded: list[str]):
    assert OPTIONAL & {name.partition(".")[0] for name in loaded[1:]} == set()
    assert [name for name in loaded[1:] if name.startswith(WEB)] == []
