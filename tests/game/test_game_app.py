"""The application is loaded only when it is needed."""

import subprocess
import sys

LOADED = """
import sys, airloc, airloc.cli.main, airloc.cli.play, airloc.cli.study
web = ("fastapi", "starlette", "uvicorn", "airloc.game", "airloc.web")
print([name for name in sys.modules if name.startswith(web)])
"""


def test_neither_airloc_nor_its_command_line_loads_the_web_framework_before_it_is_needed():
    assert subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout == "[]\n"
