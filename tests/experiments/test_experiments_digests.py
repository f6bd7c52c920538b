"""Digests follow the content of data and weights, and not model cards."""

import shutil
from pathlib import Path

import pytest

from airloc.agents.pretrained import weights_root
from airloc.experiments import digests
from airloc.experiments.digests import folder_digest, package_digest, weights_digest


def test_weights_count_and_cards_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before = weights_digest("belief")
    shutil.copytree(weights_root() / "belief", tmp_path / "belief")
    monkeypatch.setattr(digests, "weights_root", lambda: tmp_path)
    assert weights_digest("belief") == weights_digest("belief-greedy") == before
    (tmp_path / "belief" / "card.md").write_text("Other figures.")
    assert weights_digest("belief") == before
    with (tmp_path / "belief" / "weights.safetensors").open("ab") as file:
        file.write(b"\0")
    changed = weights_digest("belief")
    (tmp_path / "belief" / "weights.safetensors").unlink()
    assert len({before, changed, weights_digest("belief")}) == 3


def test_agents_without_weights_have_no_digest():
    assert weights_digest("blind") == ""


def test_the_digest_of_a_folder_is_of_names_and_content(tmp_path: Path):
    def digest(name: str, files: dict[str, str]) -> str:
        for path, text in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
        return folder_digest(tmp_path / name)

    same = digest("a", {"x": "1", "d/y": "2"})
    assert digest("b", {"d/y": "2", "x": "1"}) == same
    others = [digest("c", {"x": "2", "d/y": "2"}), digest("d", {"z": "1", "d/y": "2"}), digest("e", {"x": "1"})]
    assert len({same, *others}) == 4


def test_the_digest_of_the_package_is_stable():
    assert package_digest() == package_digest.__wrapped__()
