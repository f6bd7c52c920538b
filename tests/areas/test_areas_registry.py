"""Every registered source is a frozen dataclass of documented options with one method."""

import dataclasses
import inspect
from itertools import islice

import pytest

from airloc.areas.registry import SOURCES
from airloc.grid import Grid


@pytest.mark.parametrize("name", SOURCES)
def test_sources_are_frozen_options_with_defaults_or_a_path(name: str) -> None:
    kind = SOURCES[name]
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    required = [field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]
    assert required in ([], ["path"])


@pytest.mark.parametrize("name", SOURCES)
def test_every_option_is_documented_below_its_line(name: str) -> None:
    kind = SOURCES[name]
    source = inspect.getsource(kind)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        following = source.split(f"    {field.name}:", 1)[1].split("\n", 2)[1]
        assert following.strip().startswith('"""'), field.name


def test_the_built_in_world_gives_areas_without_any_data() -> None:
    grid = Grid(2, 3)
    (area,) = islice(SOURCES["synthetic"]().areas(grid), 1)
    assert area.image.shape == (*grid.size, 3)
