"""The wheel in an empty virtual environment: the core works alone, and the rest names its extra."""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
LARGEST_MB = 50
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources, so that the checkout stays as it is."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    subprocess.run([sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", folder, folder], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """An environment with the wheel and its core dependencies: torch first, by its exact version."""
    folder = wheel.parent / "venv"
    venv.create(folder, with_pip=True)
    constraints = ROOT / "constraints.txt"
    torch = next(line for line in constraints.read_text(encoding="utf-8").splitlines() if line.startswith("torch=="))
    subprocess.run([folder / "bin/python", *PIP, "install", torch], check=True)
    subprocess.run([folder / "bin/python", *PIP, "install", "--constraint", constraints, wheel], check=True)
    return folder / "bin"


def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "AIRLOC_DATA")}
    return subprocess.run(words, cwd=cwd, env=clean, capture_output=True, text=True, check=False)


def test_the_wheel_is_small(wheel: Path):
    assert wheel.stat().st_size / 1e6 < LARGEST_MB


def test_importing_airloc_gives_the_public_names(installed: Path, tmp_path: Path):
    script = "import airloc; print([getattr(airloc, name) is not None for name in airloc.__all__])"
    done = run(installed / "python", "-c", script, cwd=tmp_path)
    assert (done.returncode, "False" in done.stdout) == (0, False), done.stderr


def test_an_agent_is_evaluated(installed: Path, tmp_path: Path):
    (tmp_path / "areas").mkdir()
    for number in range(2):
        shutil.copy(ROOT / "docs" / "img" / "synthetic.jpg", tmp_path / "areas" / f"{number}.jpg")
    done = run(installed / "airloc", "evaluate", "belief", "--areas", "areas", "--json", "score.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "score.json").read_text())["episodes"] == 8


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("play",), "web"),
        (("serve",), "field"),
        (("search", "--area", "a.tif", "--goal", "goal.jpg", "--out", "out"), "field"),
        (("export", "belief", "--onnx", "onnx"), "export"),
        (("suites", "--ray", "local"), "cluster"),
    ],
)
def test_a_verb_without_its_extra_names_it_in_one_sentence(
    installed: Path, tmp_path: Path, arguments: tuple[str, ...], extra: str
):
    done = run(installed / "airloc", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert f"airloc[{extra}]" in done.stderr.strip().splitlines()[-1]
    assert list(tmp_path.iterdir()) == []
