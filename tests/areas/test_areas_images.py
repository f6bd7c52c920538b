"""Images of every kind are read as RGB bytes; files that are not images raise errors that name them."""

import contextlib
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from airloc.areas.images import image_size, list_images, read_image, read_mask
from airloc.errors import AirlocError

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
