"""Areas are checked, fitted without stretching and cut without overlap; images are read as RGB bytes, or named."""

import contextlib
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from rasterio.transform import from_origin

from airloc.areas.area import (
    SearchArea,
    corners,
    crop_ground,
    cut_pieces,
    fit,
    image_size,
    list_images,
    paper_size,
    piece_name,
    piece_size,
    read_image,
    read_mask,
    tile_of,
    white_pixels,
)
from airloc.errors import AirlocError
from airloc.grid import Grid


def plain(height: int, width: int, *, masked: bool = False) -> SearchArea:
    image = np.zeros((height, width, 3), dtype=np.uint8)
    return SearchArea("plain", image, np.ones((height, width), dtype=np.bool_) if masked else None, (100.0, 200.0))


def test_a_mask_of_another_size_is_refused() -> None:
    with pytest.raises(AirlocError, match=r"'x'.*9 x 8 px.*20 x 10 px"):
        SearchArea("x", np.zeros((10, 20, 3), dtype=np.uint8), np.zeros((8, 9), dtype=np.bool_))


@pytest.mark.parametrize("image", [np.zeros((9, 9), np.uint8), np.zeros((9, 9, 3)), np.zeros((9, 9, 4), np.uint8)])
def test_an_array_that_is_not_rgb_is_refused(image: np.ndarray) -> None:
    with pytest.raises(AirlocError, match="height, width, 3"):
        SearchArea("x", image)


@pytest.mark.parametrize("size", [(47, 200), (200, 47)])
def test_an_image_smaller_than_a_cell_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(AirlocError, match="48 px"):
        fit(plain(*size), Grid(5, 5))


@settings(max_examples=40, deadline=None)
@given(st.integers(48, 300), st.integers(48, 300), st.integers(1, 5), st.integers(2, 5))
def test_fitted_areas_have_the_size_of_the_grid(height: int, width: int, rows: int, cols: int) -> None:
    grid = Grid(rows, cols)
    fitted = fit(plain(height, width, masked=True), grid)
    assert fitted.image.shape == (*grid.size, 3)
    assert fitted.mask is not None
    assert fitted.mask.all()


def test_the_centre_is_kept_and_the_ground_size_follows() -> None:
    area = plain(256, 512)
    area.image[:, 128:384] = 255
    fitted = fit(area, Grid(5, 5))
    assert fitted.image.min() == 255
    assert fitted.ground_m == (100.0, 100.0)


def test_an_area_of_the_right_size_is_not_resampled() -> None:
    area = plain(256, 256)
    assert fit(area, Grid(5, 5)) is area


def test_areas_without_a_tile_are_their_own_source() -> None:
    assert plain(50, 50).source == "plain"


@given(st.tuples(st.integers(1, 60), st.integers(1, 60)), st.tuples(st.integers(1, 30), st.integers(1, 30)))
def test_pieces_cover_the_image_once_except_a_remainder(image: tuple[int, int], piece: tuple[int, int]) -> None:
    covered = np.zeros(image, dtype=int)
    for top, left in corners(image, piece):
        assert covered[top : top + piece[0], left : left + piece[1]].shape == piece
        covered[top : top + piece[0], left : left + piece[1]] += 1
    height, width = image[0] - image[0] % piece[0], image[1] - image[1] % piece[1]
    assert (covered[:height, :width] == 1).all()
    assert covered.sum() == height * width


def test_the_papers_tile_gives_nine_areas_of_5x5_and_four_of_7x7() -> None:
    assert len(corners((1500, 1500), paper_size(Grid(5, 5)))) == 9
    assert len(corners((1500, 1500), paper_size(Grid(7, 7)))) == 4


@given(st.integers(100, 2000), st.integers(1, 9), st.integers(2, 9))
def test_pieces_have_the_aspect_of_the_grid(side: int, rows: int, cols: int) -> None:
    grid = Grid(rows, cols)
    height, width = piece_size(side, grid)
    assert max(height, width) == side
    assert abs(height * grid.size[1] - width * grid.size[0]) <= max(grid.size)


def test_a_piece_carries_pixels_mask_ground_and_tile() -> None:
    values = np.arange(600 * 400 * 3, dtype=np.uint32).reshape(600, 400, 3).astype(np.uint8)
    whole = SearchArea("town.png", values, values[..., 0] > 99, (600.0, 400.0), split="val")
    pieces = list(cut_pieces(whole, (300, 200)))
    assert [piece.name for piece in pieces] == ["town_0_0.png", "town_0_200.png", "town_300_0.png", "town_300_200.png"]
    last = pieces[-1]
    assert (last.image == values[300:, 200:]).all()
    assert last.mask is not None
    assert (last.mask == (values[300:, 200:, 0] > 99)).all()
    assert (last.ground_m, last.tile, last.split) == ((300.0, 200.0), "town.png", "val")


def test_the_centre_of_a_known_ground_is_cropped() -> None:
    image = np.zeros((750, 750, 3), dtype=np.uint8)
    image[125:625, 125:625] = 255
    cropped = crop_ground(SearchArea("x", image, image[..., 0] > 0, ground_m=(750.0, 750.0)), (500.0, 500.0))
    assert cropped is not None
    assert cropped.image.shape == (500, 500, 3)
    assert cropped.image.min() == 255
    assert cropped.mask is not None
    assert cropped.mask.all()
    assert cropped.ground_m == (500.0, 500.0)


def test_an_area_of_smaller_or_unknown_ground_is_not_cropped() -> None:
    image = np.zeros((60, 60, 3), dtype=np.uint8)
    assert crop_ground(SearchArea("x", image), (10.0, 10.0)) is None
    assert crop_ground(SearchArea("x", image, ground_m=(60.0, 60.0)), (61.0, 10.0)) is None


def test_only_pure_white_counts_as_white() -> None:
    image = np.full((10, 10, 3), 254, dtype=np.uint8)
    image[0, :3] = 255
    image[1, 0] = (255, 255, 254)
    assert white_pixels(image) == 3


@given(st.text("abc_123. ", min_size=1, max_size=8), st.integers(0, 9999), st.integers(0, 9999))
def test_the_name_of_a_piece_contains_its_tile(stem: str, top: int, left: int) -> None:
    assert tile_of(piece_name(f"{stem}x.png", (top, left))) == f"{stem}x"


def test_other_names_have_no_tile() -> None:
    assert tile_of("town.jpg") == tile_of("_1_2.jpg") == tile_of("town_7.jpg") == ""


RED = np.full((60, 80, 3), (200, 40, 20), dtype=np.uint8)


def claimed_png(width: int, height: int) -> bytes:
    """The first bytes of a PNG that says it is this large."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


def rgb16_tiff(values: np.ndarray) -> bytes:
    """An uncompressed TIFF of 16 bits a channel, which Pillow reads but does not write."""
    height, width = values.shape[:2]
    data = values.astype("<u2").tobytes()
    tags = {256: (3, 1, width), 257: (3, 1, height), 258: (3, 3, 0), 259: (3, 1, 1), 262: (3, 1, 2), 273: (4, 1, 0)}
    tags |= {277: (3, 1, 3), 278: (3, 1, height), 279: (4, 1, len(data))}
    end = 8 + 2 + 12 * len(tags) + 4
    tags[258], tags[273] = (3, 3, end), (4, 1, end + 6)
    entries = b"".join(struct.pack("<HHII", tag, *entry) for tag, entry in tags.items())
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + struct.pack("<IHHH", 0, 16, 16, 16) + data


@pytest.mark.parametrize("suffix", ["jpg", "jpeg", "png", "tif", "tiff", "webp", "bmp"])
def test_every_format_is_read_in_its_colours(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a b.{suffix}"
    Image.fromarray(RED).save(path)
    image = read_image(path)
    assert image.shape == (60, 80, 3)
    assert np.abs(image.astype(int) - RED).max() < 12
    assert image_size(path) == (60, 80)


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "CMYK", "1", "I;16", "I", "F", "YCbCr"])
def test_every_mode_becomes_rgb_bytes(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "image.tiff"
    grey = Image.fromarray(np.full((60, 80), 255, dtype=np.uint8))
    if mode == "I;16":
        grey = Image.fromarray(np.full((60, 80), 65535, dtype=np.uint16))
    elif mode == "LA":
        path = tmp_path / "image.png"
    (grey if mode == "I;16" else grey.convert(mode)).save(path)
    image = read_image(path)
    assert image.dtype == np.uint8
    assert image.shape == (60, 80, 3)
    assert image.min() == 255


def test_sixteen_bits_per_channel_keep_their_high_byte(tmp_path: Path) -> None:
    path = tmp_path / "deep.tif"
    path.write_bytes(rgb16_tiff(np.full((60, 80, 3), 40000, dtype=np.uint16)))
    assert read_image(path)[0, 0].tolist() == [156, 156, 156]


def test_deep_greys_are_scaled_by_the_bits_they_fill(tmp_path: Path) -> None:
    twelve_bits = np.array([[0, 2048], [1024, 4000]], dtype=np.uint16)
    Image.fromarray(twelve_bits).save(tmp_path / "deep.png")
    assert read_image(tmp_path / "deep.png")[..., 0].tolist() == [[0, 128], [64, 249]]
    Image.fromarray(np.array([[0.0, 0.5, 1.0, np.nan]], dtype=np.float32)).save(tmp_path / "shares.tif")
    assert read_image(tmp_path / "shares.tif")[0, :, 0].tolist() == [0, 128, 255, 0]


def test_transparent_pixels_are_black(tmp_path: Path) -> None:
    Image.new("RGBA", (60, 60), (255, 255, 255, 0)).save(tmp_path / "clear.png")
    assert read_image(tmp_path / "clear.png").max() == 0


def test_the_exif_orientation_is_applied(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(RED).save(tmp_path / "turned.jpg", exif=exif)
    assert read_image(tmp_path / "turned.jpg").shape == (80, 60, 3)
    assert image_size(tmp_path / "turned.jpg") == (80, 60)


@pytest.mark.parametrize("white", [1, 255])
def test_masks_of_ones_and_of_whites_read_alike(tmp_path: Path, white: int) -> None:
    values = np.zeros((4, 4), dtype=np.uint8)
    values[1:3] = white
    Image.fromarray(values).save(tmp_path / "mask.png")
    assert read_mask(tmp_path / "mask.png").sum() == 8


def test_folders_list_image_files_by_name(tmp_path: Path) -> None:
    for name in ("b.PNG", "a c.jpg", "notes.txt", ".hidden"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "folder.png").mkdir()
    assert [path.name for path in list_images(tmp_path)] == ["a c.jpg", "b.PNG"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match="nowhere"):
        list_images(tmp_path / "nowhere")


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(AirlocError, match=r"Permission denied"):
        list_images(tmp_path)


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match=tmp_path.name):
        list_images(tmp_path)


@pytest.mark.parametrize("read", [read_image, image_size])
def test_a_decompression_bomb_is_refused_before_decoding(tmp_path: Path, read: object) -> None:
    path = tmp_path / "bomb.png"
    path.write_bytes(claimed_png(60000, 60000))
    with pytest.raises(AirlocError, match=r"bomb\.png.* \d+ million pixels"):
        read(path)  # type: ignore[operator]


def test_a_missing_image_is_named(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match=r"none\.png"):
        read_image(tmp_path / "none.png")


def test_text_with_the_suffix_of_an_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("<html>")
    with pytest.raises(AirlocError, match=r"text\.jpg"):
        read_image(tmp_path / "text.jpg")


def test_the_reason_why_an_image_cannot_be_read_is_in_words(tmp_path: Path) -> None:
    with pytest.raises(AirlocError, match="is a directory") as error:
        read_image(tmp_path)
    assert "Errno" not in str(error.value)
    with rasterio.open(
        tmp_path / "deep.tif", "w", driver="GTiff", height=9, width=9, count=3, dtype="uint16", crs="EPSG:4326",
        transform=from_origin(15, 59, 1, 1),
    ) as file:  # fmt: skip
        file.write(np.zeros((3, 9, 9), dtype=np.uint16))
    with pytest.raises(AirlocError, match=r"deep\.tif: .*8 bits"):
        read_image(tmp_path / "deep.tif")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_a_truncated_image_is_refused(tmp_path: Path, kind: str) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 60, 3), dtype=np.uint8)).save(buffer, kind)
    (tmp_path / "short.jpg").write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])
    with pytest.raises(AirlocError, match=r"short\.jpg"):
        read_image(tmp_path / "short.jpg")


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["JPEG", "PNG", "TIFF", "WEBP", "BMP", "GIF"]), st.data())
def test_damage_anywhere_gives_pixels_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    buffer = io.BytesIO()
    Image.fromarray(RED[:20, :20]).save(buffer, kind)
    content = bytearray(buffer.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.png"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with contextlib.suppress(AirlocError):
        assert read_image(path).dtype == np.uint8
