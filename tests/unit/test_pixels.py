"""Files are decoded by Pillow in as many threads as people like, and what is too large is refused."""

import io
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from msdnet.bundle import ImageSpec
from msdnet.pixels import FORMATS, HEAD, cropped, is_picture, opened, picture
from msdnet.runtime.images import pixels_of

SPEC = ImageSpec(side=8, resize=10, mean=(0.5,) * 3, std=(0.2,) * 3)


def saved(path: Path, kind: str, size: tuple[int, int] = (40, 30)) -> Path:
    Image.new("RGB", size, (200, 100, 50)).save(path, kind)
    return path


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_is_what_its_bytes_say(tmp_path: Path, kind: str) -> None:
    path = saved(tmp_path / "called.png", kind)
    for given in (path, str(path), io.BytesIO(path.read_bytes())):
        with opened(given) as image, Image.open(path) as expected:
            assert (image.format, image.size) == (kind, expected.size)
            assert image.convert("RGB").tobytes() == expected.convert("RGB").tobytes()


@pytest.mark.parametrize("kind", [*FORMATS, "TIFF", "AVIF", "JPEG2000"])
def test_a_picture_is_told_from_text_by_its_beginning(tmp_path: Path, kind: str) -> None:
    if kind not in Image.SAVE:
        Image.init()
    if kind not in Image.SAVE:
        pytest.skip(f"this Pillow writes no {kind}")
    assert is_picture(saved(tmp_path / "a", kind).read_bytes()[:HEAD])


@pytest.mark.parametrize(
    "text", [b"", b"BMW.jpg\nGIF8.jpg", b"RIFF/a.jpg\nb.jpg", b"II*.jpg\nMM.jpg", b"abc ftyp heic.j"]
)
def test_text_is_no_picture(text: bytes) -> None:
    assert not is_picture(text)


def test_an_open_file_is_read_from_its_beginning_and_stays_open(tmp_path: Path) -> None:
    with saved(tmp_path / "a.png", "PNG").open("rb") as file:
        file.seek(9)
        for _ in range(2):
            np.testing.assert_array_equal(pixels_of(file, SPEC)[0, 0], (200, 100, 50))
        assert not file.closed


@pytest.mark.parametrize("spoiled", [b"BMnothing", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b""])
def test_the_beginning_of_an_image_is_none(spoiled: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        pixels_of(io.BytesIO(spoiled), SPEC)


@pytest.mark.parametrize("side", [10_000, 20_000])  # where Pillow warns, and where it refuses
def test_a_huge_image_is_refused_without_a_warning(tmp_path: Path, side: int) -> None:
    Image.new("1", (side, side)).save(tmp_path / "huge.png")
    with pytest.raises(ValueError, match=r"huge\.png: cannot be read \(more than 89,478,485 pixels: make it smaller"):
        pixels_of(tmp_path / "huge.png", SPEC)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("limit", [1199, 500])
def test_the_limit_is_pillows_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, limit: int) -> None:
    path = saved(tmp_path / "image", kind)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(ValueError, match=rf"more than {limit:,} pixels"):
        pixels_of(path, SPEC)
    for enough in (1200, None):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", enough)
        pixels_of(path, SPEC)


def test_threads_leave_the_filters_of_warnings_as_they_are(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.jpg", "JPEG", (400, 300))
    before = list(warnings.filters)

    def decode(_: int) -> None:
        pixels_of(path, SPEC)
        assert warnings.filters == before

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(decode, range(400)))
    assert warnings.filters == before


def test_transparent_palettes_are_read_without_a_warning() -> None:
    palette = Image.new("RGB", (9, 9), (10, 200, 30)).quantize(4)
    file = io.BytesIO()
    palette.save(file, "PNG", transparency=b"\0\1")
    with opened(file) as image:
        assert cropped(image, (0, 0, 9, 9), 9).getpixel((4, 4)) == (10, 200, 30)


def test_arrays_become_pictures_in_colour_and_in_grey() -> None:
    assert picture(np.zeros((4, 5, 3), np.uint8)).mode == "RGB"
    assert (picture(np.zeros((4, 5, 1), np.uint8)).mode, picture(np.zeros((4, 5, 1), np.uint8)).size) == ("L", (5, 4))
