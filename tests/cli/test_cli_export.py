from pathlib import Path

import pytest

from airloc.export import export as export_module
from airloc.export.export import ExportReport, Version


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [(("airloc", "--episodes", 0), "--episodes"), (("random",), "'random'"), (("nobody",), "'nobody'"), (("",), "''")],
)
def test_invalid_input_is_refused_and_leaves_no_folder(airloc, tmp_path: Path, arguments, fact: str):
    outcome = airloc("export", *arguments, "--onnx", tmp_path / "out")
    assert outcome.code == 2
    assert fact in outcome.err.splitlines()[-1]
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "out").exists()


def test_every_step_is_announced_and_the_versions_are_printed(airloc, tmp_path: Path, monkeypatch):
    def export_agent(agent, folder, *, episodes, seed, on_step):
        on_step("Writing goal.onnx")
        versions = (Version("torch", 0, 2.0, 0.5, 1.0), Version("onnx", 3_000_000, 1.0, 0.5, 1.0))
        return ExportReport(folder, 1e-6, episodes, versions)

    monkeypatch.setattr(export_module, "export_agent", export_agent)
    outcome = airloc("export", "local-no-sem-seg", "--onnx", tmp_path / "out", "--episodes", 12)
    assert outcome.code == 0
    assert "local-no-sem-seg" in outcome.err
    assert "Writing goal.onnx" in outcome.err
    assert "12 episodes" in outcome.out
    assert "3.00" in outcome.out
    assert str(tmp_path / "out") in outcome.out
