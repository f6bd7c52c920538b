"""Fixtures for all tests: small areas, the folder of real imagery, and the command line in this process."""

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from PIL import Image

from airloc.areas.area import SearchArea
from airloc.cli.main import main
from airloc.grid import Grid

# A busy machine makes single examples slow; no test is about time. Every run draws other examples.
settings.register_profile("airloc", deadline=None, max_examples=50)
settings.load_profile("airloc")


def pytest_collection_finish() -> None:
    """Keep the garbage collector off the imported modules."""
    gc.collect()
    gc.freeze()


def random_image(seed: int, size: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, size=(*size, 3), dtype=np.uint8)


@pytest.fixture(scope="session")
def toy_areas() -> list[SearchArea]:
    """Six areas of noise for a 5 x 5 grid. No two patches are alike."""
    return [SearchArea(f"toy_{n}", random_image(n, Grid(5, 5).size)) for n in range(6)]


@pytest.fixture
def areas_folder(tmp_path: Path) -> Path:
    """A folder with four small images. One has a space in its name."""
    folder = tmp_path / "areas"
    folder.mkdir()
    for n, name in enumerate(("a.png", "b.png", "c d.png", "e.png")):
        Image.fromarray(random_image(n, (120, 120))).save(folder / name)
    return folder


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real imagery. In CI it must exist."""
    root = os.environ.get("AIRLOC_DATA", "")
    if not root or not Path(root).is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("AIRLOC_DATA is not a folder, but CI needs the data")
        pytest.skip("AIRLOC_DATA is not a folder")
    return Path(root)


@pytest.fixture
def install_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Lay out a package with entry points as an installer does, and return its folder."""

    def install(name: str, version: str, entry_points: dict[str, dict[str, str]], **modules: str) -> Path:
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        groups = (
            (group, "".join(f"{k} = {v}\n" for k, v in entries.items())) for group, entries in entry_points.items()
        )
        (info / "entry_points.txt").write_text("".join(f"[{group}]\n{lines}" for group, lines in groups))
        for module, code in modules.items():
            (tmp_path / f"{module}.py").write_text(code, encoding="utf-8")
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(tmp_path)
        return tmp_path

    yield install
    for module in [name for name, loaded in sys.modules.items() if _file_of(loaded).parent == tmp_path]:
        del sys.modules[module]


def _file_of(module: ModuleType) -> Path:
    return Path(getattr(module, "__file__", None) or "/")


class Outcome(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    def refused(self, *facts: str) -> bool:
        """Return True if the command ended as for bad input: exit code 2, and one last line with problem and cure."""
        assert self.code == 2, self
        assert "Traceback" not in self.err
        last = self.err.splitlines()[-1]
        assert last.startswith("airloc: ")
        assert last.endswith(".")
        assert [fact for fact in facts if fact not in last] == [], self.err
        return True


Airloc = Callable[..., Outcome]


@pytest.fixture
def airloc(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Airloc:
    """Run `airloc` with these arguments in this process, which saves the start of a new one."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: object) -> Outcome:
        code: object = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        assert code is None or isinstance(code, int)
        return Outcome(code or 0, out, err)

    return run
