"""The sheet of changed goals."""

from pathlib import Path

import numpy as np

from airloc.areas.changes import CHANGES
from airloc.areas.images import read_image
from airloc.files import save_picture
from airloc.reports.searches import CHANGE_PLACES, changes_sheet

DOCUMENTED = Path(__file__).parents[2] / "docs" / "img" / "changes.jpg"


def test_the_documented_picture_is_the_sheet_of_all_changes(tmp_path: Path):
    sheet = changes_sheet()
    assert sheet.shape[0] > 112 * len(CHANGES)
    assert sheet.shape[1] > 112 * 2 * len(CHANGE_PLACES)
    again = read_image(save_picture(sheet, tmp_path / "again.jpg")).astype(int)
    assert np.abs(again - read_image(DOCUMENTED)).mean() < 1
