"""Results follow what weights are, not what their cards tell."""

import shutil
from pathlib import Path

import pytest

from airloc.agents.pretrained import weights_root
from airloc.experiments import store as weights_module
from airloc.experiments.store import weights_digest


def test_weights_count_and_cards_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before = weights_digest("belief")
    shutil.copytree(weights_root() / "belief", tmp_path / "belief")
    monkeypatch.setattr(weights_module, "weights_root", lambda: tmp_path)
    assert weights_digest("belief") == weights_digest("belief-greedy") == before
    (tmp_path / "belief" / "card.md").write_text("Figures: measured since.")
    assert weights_digest("belief") == before
    with (tmp_path / "belief" / "weights.safetensors").open("ab") as file:
        file.write(b"\0")
    changed = weights_digest("belief")
    (tmp_path / "belief" / "weights.safetensors").unlink()
    assert len({before, changed, weights_digest("belief")}) == 3


def test_agents_without_weights_have_no_digest():
    assert weights_digest("blind") == ""
