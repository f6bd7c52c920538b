"""The start of the command: an interrupt is one sentence from the first import on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import airloc_cli
from airloc_cli import FAILED, STOPPED

INTERRUPTED_IMPORT = """
import os, signal, sys

module = sys.argv[1]

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
import airloc_cli
sys.argv[1:] = ["evaluate", "random", "--json", "new/score.json"]
airloc_cli.main()
"""


@pytest.mark.parametrize("module", ["airloc", "airloc.errors", "airloc.cli.main", "airloc.cli.evaluate", "torch"])
def test_an_interrupt_while_a_module_is_imported_is_one_sentence_and_leaves_no_file(tmp_path: Path, module: str):
    command = [sys.executable, "-c", INTERRUPTED_IMPORT, module]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (FAILED, "", f"airloc: {STOPPED}\n")
    assert list(tmp_path.iterdir()) == []


def test_the_command_starts_before_anything_slow_is_imported():
    slow = "import sys, airloc_cli; print([name for name in ('airloc', 'signal', 'numpy') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", slow], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_an_interrupt_during_imports_leaves_at_once(monkeypatch: pytest.MonkeyPatch, capfd):
    codes = []
    monkeypatch.setattr(os, "_exit", codes.append)
    airloc_cli.stop(signal.SIGINT, None)
    assert codes == [2]
    assert capfd.readouterr().err == f"airloc: {STOPPED}\n"
