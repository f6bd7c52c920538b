"""Training data of the text network: areas whose cells have captions, and images with captions.

Captions come from procedural areas, whose land cover is known, and from images with building masks. So that sentences
from masks are read as well as complete ones, the captions of some procedural areas know buildings alone, or only the
classes of a coarse land cover.

Legend: A areas, C cells, K captions of a cell, R rows of a caption, D numbers of a row, H = W side of an area, M images
with captions.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from airloc.agents.checkpoint import load_checkpoint
from airloc.agents.pretrained import checkpoint_folder
from airloc.areas.area import Mask, Pixels
from airloc.areas.captions import (
    Caption,
    Cover,
    Detail,
    Facts,
    LandCover,
    cell_facts,
    from_building_mask,
    write_caption,
)
from airloc.areas.registry import load_dataset
from airloc.areas.synthetic import REGIMES
from airloc.areas.synthetic.canvas import Canvas
from airloc.areas.synthetic.cover import land_cover
from airloc.areas.synthetic.plan import draw_plan
from airloc.areas.synthetic.render import render
from airloc.errors import AirlocError
from airloc.grid import Grid
from airloc.seeding import stream
from airloc.training.data import generate_parallel
from airloc.training.text_facts import Ground, measure_ground, stated_values
from airloc.vision.embedder import Segmenter, standardise
from airloc.vision.sentences import DIM, ROWS, clauses, embed_sentences

GRID = Grid()
FIRST = 800_000_000
"""First seed of the procedural areas with captions."""
MASK_SCALES = (1.2, 2.9)
"""Pixels of an image of 1 m per pixel under a pixel of an area."""
UNKNOWN_M = 0.6
"""Metres per pixel of images without masks whose ground size is unknown, as those of Austin."""
SEGMENTED_M = 2.2
"""Metres per pixel at which buildings are predicted."""
BUILDINGS_ONLY, COARSE = 0.15, 0.3
"""Shares of the procedural areas whose captions know buildings alone, and the classes of a coarse land cover."""
IMAGE_CAPTIONS = 5
"""Captions of every image."""
_DETAILS: tuple[Detail, ...] = ("detailed", "detailed", "detailed", "plain", "vague")
_COARSE = frozenset({Cover.BUILDING, Cover.ROAD, Cover.TREES, Cover.GROUND, Cover.LAKE})
"""Classes of a coarse land cover."""
_MERGED = {Cover.SEA: Cover.LAKE, Cover.RIVER: Cover.LAKE, Cover.GRASS: Cover.TREES, Cover.FIELD: Cover.TREES,
           Cover.SAND: Cover.GROUND, Cover.HIGHWAY: Cover.ROAD, Cover.POOL: Cover.LAKE}  # fmt: skip


class CaptionedArea(NamedTuple):
    """The image of an area, the captions of its cells, and what is known about its ground."""

    image: Pixels
    captions: list[list[Caption]]
    ground: Ground


class CaptionedAreas(NamedTuple):
    """Areas whose cells have captions."""

    images: torch.Tensor
    """(A, H, W, 3) uint8."""
    captions: torch.Tensor
    """Indices of the rows of every caption in the table, (A, C, K, R); 0 for rows that it does not have."""
    table: torch.Tensor
    """Embeddings of all rows, (n, D); the first is zero."""
    stated: torch.Tensor
    """Values that every caption states, (A, C, K, T) uint8; see `stated_values`."""
    shares: torch.Tensor
    """See `Ground`: (A, C, Z Z, L) float16."""
    known: torch.Tensor
    """(A, L) bool."""
    buildings: torch.Tensor
    """(A, C, 2)."""


class CaptionedImages(NamedTuple):
    """Images with captions."""

    images: torch.Tensor
    """(M, S, S, 3) uint8."""
    captions: torch.Tensor
    """Indices of the rows of every caption, (M, K, R). Images with fewer captions repeat them."""
    table: torch.Tensor
    """Embeddings of all rows, (n, D); the first is zero."""


def procedural_areas(seed: int, captions: int, variants: int) -> list[CaptionedArea]:
    """Generate a scene with captions, in variants that are turned and flipped and know more or less of the land cover.

    Half of the scenes have 2 m per pixel, the others more or less.
    """
    rng = stream(seed, "captions")
    metres = 2.0 if rng.random() < 0.5 else float(rng.uniform(1.3, 3.0))
    canvas = Canvas(*GRID.size, metres)
    plan = draw_plan(seed, REGIMES[int(rng.integers(len(REGIMES)))], canvas.ground_m)
    image, _ = render(plan, canvas, None)
    land = land_cover(plan, Canvas(canvas.height // 2, canvas.width // 2, 2 * metres), GRID.cell / 2)
    areas = []
    for symmetry in rng.permutation(8)[:variants].tolist():
        pixels, known = turn_image(image, symmetry), turn_land(land, symmetry)
        ground = measure_ground(known, GRID)
        style = rng.random()
        if style < BUILDINGS_ONLY:
            known = replace(known, known=frozenset({Cover.BUILDING}))
        elif style < BUILDINGS_ONLY + COARSE:
            known = coarse(known)
        areas.append(CaptionedArea(pixels, describe(cell_facts(known, GRID, rng), rng, captions), ground))
    return areas


def turn_image(image: npt.NDArray[Any], symmetry: int) -> npt.NDArray[Any]:
    """Apply one of the eight symmetries of the square to an image (H, H, ...): flips, then a transposition."""
    image = image[:, ::-1] if symmetry & 1 else image
    image = image[::-1] if symmetry & 2 else image
    return np.ascontiguousarray(image.swapaxes(0, 1) if symmetry & 4 else image)


def turn_land(land: LandCover, symmetry: int) -> LandCover:
    """Apply one of the eight symmetries of the square to a land cover."""
    side, buildings = len(land.classes), land.buildings
    col = side - buildings.col if symmetry & 1 else buildings.col
    row = side - buildings.row if symmetry & 2 else buildings.row
    row, col = (col, row) if symmetry & 4 else (row, col)
    return replace(land, classes=turn_image(land.classes, symmetry), buildings=replace(buildings, row=row, col=col))


def coarse(land: LandCover) -> LandCover:
    """Return a land cover that knows buildings, roads, vegetation, water and bare ground alone."""
    table = np.array([_MERGED.get(cover, cover) for cover in Cover], dtype=np.uint8)
    return replace(land, classes=table[land.classes], known=_COARSE)


def masked_area(number: int, captions: int, images: Sequence[tuple[Pixels, Mask]]) -> CaptionedArea:
    """Crop an area from an image with a building mask, at any scale, turned and flipped, with captions."""
    rng = stream(number, "captions", "masks")
    image, mask = images[int(rng.integers(len(images)))]
    height, width = mask.shape
    side = int(min(rng.uniform(*MASK_SCALES) * GRID.size[0], height, width))
    top, left = int(rng.integers(height - side + 1)), int(rng.integers(width - side + 1))
    symmetry = int(rng.integers(8))
    parts = []
    for whole in (image, mask.astype(np.uint8) * 255):
        crop = turn_image(whole[top : top + side, left : left + side], symmetry)
        parts.append(np.asarray(Image.fromarray(crop).resize(GRID.size, Image.Resampling.LANCZOS)))
    land = from_building_mask(parts[1] >= 128, parts[0], GRID.cell)
    return CaptionedArea(parts[0], describe(cell_facts(land, GRID, rng), rng, captions), measure_ground(land, GRID))


def read_masked_images(masks: Path | None, unmasked: Sequence[Path] = ()) -> list[tuple[Pixels, Mask]]:
    """Read training images with building masks, at 1 m per pixel.

    Args:
        masks: Folder of a dataset, of which the training images with masks are read.
        unmasked: Folders of datasets, of which the training images without masks are read; their masks are predicted.
    """
    pairs = []
    for folder in [masks] if masks else []:
        dataset = load_dataset(folder, split="train")
        areas = (dataset.read(record) for record in dataset.records() if record.mask is not None)
        pairs += [(area.image, area.mask) for area in areas if area.mask is not None]
    for folder in unmasked:
        dataset = load_dataset(folder)
        records = (record for record in dataset.records() if record.mask is None and record.split in ("", "train"))
        for area in map(dataset.read, records):
            ground = area.ground_m or tuple(UNKNOWN_M * side for side in area.image.shape[:2])
            height, width = (round(metres) for metres in ground)
            image = np.asarray(Image.fromarray(area.image).resize((width, height), Image.Resampling.LANCZOS))
            pairs.append((image, predict_mask(image)))
    return pairs


@torch.inference_mode()
def predict_mask(image: Pixels) -> Mask:
    """Predict the buildings of an image of 1 m per pixel (H, W, 3), with the segmentation unit of the package."""
    height, width = image.shape[:2]
    size = (round(width / SEGMENTED_M / 16) * 16, round(height / SEGMENTED_M / 16) * 16)
    small = torch.from_numpy(np.array(Image.fromarray(image).resize(size, Image.Resampling.LANCZOS)))
    logits = _segmenter()(standardise(small.permute(2, 0, 1)[None].float() / 255))[0, 0]
    built = Image.fromarray((255 * logits.sigmoid()).byte().numpy()).resize((width, height), Image.Resampling.BILINEAR)
    mask: Mask = np.asarray(built) >= 128
    return mask


@lru_cache(maxsize=1)
def _segmenter() -> Segmenter:
    prefix = "segmenter."
    tensors = load_checkpoint(checkpoint_folder("vision-sem-seg")).tensors
    segmenter = Segmenter()
    segmenter.load_state_dict(
        {name.removeprefix(prefix): tensor.float() for name, tensor in tensors.items() if name.startswith(prefix)}
    )
    return segmenter.eval()


def describe(facts: list[Facts], rng: np.random.Generator, captions: int) -> list[list[Caption]]:
    """Write captions for every cell, in different detail; one in ten has a wrong clause."""

    def write(cell: Facts) -> Caption:
        wrong = facts[int(rng.integers(len(facts)))] if rng.random() < 0.1 else None
        return write_caption(cell, rng, _DETAILS[int(rng.integers(len(_DETAILS)))], wrong)

    return [[write(cell) for _ in range(captions)] for cell in facts]


def load_captioned_areas(
    procedural: int,
    masked: int,
    images: Sequence[tuple[Pixels, Mask]],
    captions: int,
    variants: int,
    device: torch.device,
    *,
    first: int = FIRST,
) -> CaptionedAreas:
    """Generate areas with captions on all cores, and embed their captions.

    Args:
        procedural: Number of procedural scenes.
        masked: Number of areas from images with masks, if there are any.
        images: Images (H, W, 3) of 1 m per pixel and their building masks (H, W).
        captions: Captions of every cell.
        variants: Areas of every scene, each turned and flipped in its own way, 1 to 8.
        device: Device of the result.
        first: Seed of the first procedural area.
    """
    make = partial(procedural_areas, captions=captions, variants=variants)
    scenes = generate_parallel(make, first, procedural, "scenes with captions")
    areas = [area for variants_of_one in scenes for area in variants_of_one]
    if images:
        work = partial(masked_area, captions=captions, images=images)
        areas += generate_parallel(work, 0, masked, "areas from masks", chunk=max(1, masked // 16))
    if not areas:
        raise AirlocError("There are no areas to train on", "Give --procedural 1000 or more")
    return stack_areas(areas, device)


def stack_areas(areas: Sequence[CaptionedArea], device: torch.device) -> CaptionedAreas:
    """Embed the captions of areas, and put all on a device. All cells have the same number of captions."""
    shape = len(areas), GRID.count, len(areas[0].captions[0])
    captions = [caption for area in areas for cell in area.captions for caption in cell]
    index, table = embed_rows([caption.text for caption in captions], device)
    stated = np.stack([stated_values(caption.facts) for caption in captions]).reshape(*shape, -1)

    def stack(parts: Iterable[npt.NDArray[Any]]) -> torch.Tensor:
        return torch.from_numpy(np.stack(list(parts))).to(device)

    return CaptionedAreas(
        images=stack(area.image for area in areas),
        captions=index.view(*shape, ROWS),
        table=table,
        stated=torch.from_numpy(stated).to(device),
        shares=stack(area.ground.shares for area in areas),
        known=stack(area.ground.known for area in areas),
        buildings=stack(area.ground.buildings for area in areas),
    )


def load_captioned_images(folder: Path, split: str, device: torch.device) -> CaptionedImages:
    """Read images with captions: a folder with `images` and `captions.csv` (image, split, caption), as `rsicd`."""
    path = folder / "captions.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = [line for line in csv.DictReader(file) if line["split"] == split]
    except (OSError, KeyError, ValueError) as error:
        raise AirlocError(f"Cannot read the captions {path}: {error}", "Check --captioned-images") from error
    texts: dict[str, list[str]] = {}
    for line in lines:
        texts.setdefault(line["image"], []).append(line["caption"])
    images = [np.asarray(Image.open(folder / "images" / name).convert("RGB")) for name in texts]
    chosen = [own[place % len(own)] for own in texts.values() for place in range(IMAGE_CAPTIONS)]
    index, table = embed_rows(chosen, device)
    return CaptionedImages(
        torch.from_numpy(np.stack(images)).to(device), index.view(len(images), IMAGE_CAPTIONS, ROWS), table
    )


def embed_rows(texts: Sequence[str], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Embed the rows of texts once each: indices (texts, R) into a table, and the table (n, D), whose first is zero."""
    numbers: dict[str, int] = {}
    index = np.zeros((len(texts), ROWS), dtype=np.int64)
    for place, text in enumerate(texts):
        for row, part in enumerate(clauses(text)):
            index[place, row] = numbers.setdefault(part, len(numbers) + 1)
    table = np.concatenate([np.zeros((1, DIM), dtype=np.float32), embed_sentences(list(numbers))])
    return torch.from_numpy(index).to(device), torch.from_numpy(table).to(device)
