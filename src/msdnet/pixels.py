"""From files and pictures to the pixels that a network takes: one way for training, testing and classifying.

Knows Pillow and arrays; nothing of networks.
"""

import math
import os
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

__all__ = [
    "ENDINGS",
    "FORMATS",
    "HEAD",
    "OTHER_ENDINGS",
    "BadPixelError",
    "Box",
    "Unreadable",
    "centre",
    "check_pixels",
    "cropped",
    "is_picture",
    "opened",
    "picture",
    "reason",
    "usual_resize",
]

# A file is what its bytes say (ImageNet has a PNG that is called JPEG), but no other decoder is ever started.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF")
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif")  # by which images are found in folders
HEAD = 16  # bytes, by which a file's format can be told
# How files of FORMATS begin. Text may begin with BM as well, but has no zeros.
_BEGINNING = re.compile(rb"\xff\xd8\xff|\x89PNG|RIFF....WEBP|BM.{4}\0{4}|GIF8[79]a", re.DOTALL)
# What people have images in as well, and how its files begin: told by its name, not read.
_OTHER_FORMATS = {
    "TIFF": re.compile(rb"II\*\0|MM\0\*|II\+\0|MM\0\+"),
    "HEIC": re.compile(rb"\0\0..ftyp(?:hei|hev|mif|msf)", re.DOTALL),
    "AVIF": re.compile(rb"\0\0..ftypavi", re.DOTALL),
    "JPEG 2000": re.compile(rb"\0\0\0\x0cjP|\xffO\xffQ"),
}
OTHER_ENDINGS = (".tif", ".tiff", ".heic", ".heif", ".avif", ".jp2")

Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom
Unreadable = Literal["fatal", "skip"]
"""What an image that cannot be read means: the end, or a warning."""


@contextmanager
def opened(path: str | os.PathLike[str] | IO[bytes]) -> Iterator[Image.Image]:
    """An image file. One of more pixels than Pillow finds safe is not read."""
    with _bytes_of(path) as file, _recognised(file) as image:
        if Image.MAX_IMAGE_PIXELS is not None and image.width * image.height > Image.MAX_IMAGE_PIXELS:
            raise ValueError(_too_large())
        yield image


def _bytes_of(path: str | os.PathLike[str] | IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    if isinstance(path, str | os.PathLike):
        kind = Path(path).stat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):  # opening a pipe may take for ever, and it has no beginning
            raise ValueError("not a regular file")
        return open(path, "rb")  # noqa: PTH123  (the path need not be valid Unicode)
    return nullcontext(path)  # whoever opened it closes it


def _recognised(file: IO[bytes]) -> Image.Image:
    """The image in a file, not decoded yet.

    Image.open would do, but it warns of too many pixels; and a warning that is to be silent, or an error, is so for all
    threads at once. Its decoders do not warn, and the number of pixels can be looked at before any is decoded.
    """
    file.seek(0)
    head = file.read(HEAD)
    Image.preinit()
    for name in FORMATS:
        if name not in Image.OPEN:
            Image.init()
        decoder, accepts = Image.OPEN[name]
        if accepts is not None and accepts(head) is True:  # a text says why this Pillow cannot
            file.seek(0)
            with suppress(
                SyntaxError, IndexError, TypeError, struct.error
            ):  # another format after all, or a broken one
                return decoder(file, "")
    raise ValueError(_what_it_is(head))


def is_picture(head: bytes) -> bool:
    """Whether bytes begin like an image file, of a format that is read or of another that is known, and not like text.

    - head: the first of them, HEAD at least where there are so many
    """
    return _BEGINNING.match(head) is not None or _other_format(head) is not None


def _what_it_is(head: bytes) -> str:
    """A file that none of the decoders knows, by its beginning."""
    other = _other_format(head)
    return "not an image" if other is None else f"{other}, which is not read: convert it to JPEG or PNG"


def _other_format(head: bytes) -> str | None:
    return next((name for name, beginning in _OTHER_FORMATS.items() if beginning.match(head)), None)


def _too_large() -> str:
    return f"more than {Image.MAX_IMAGE_PIXELS:,} pixels: make it smaller first"


def usual_resize(side: int) -> int:
    """The shorter side of an image before a centre of this side is cropped: 256 for 224, as for ImageNet."""
    return round(side * 8 / 7)


def centre(size: tuple[int, int], resize: int, side: int) -> Box:
    """What is left of an image whose shorter side is resized, then the centre cropped, in its own pixels."""
    spans = []
    for length in size:
        resized = resize * length // min(size)
        start = round((resized - side) / 2)
        spans.append((start * length / resized, (start + side) * length / resized))
    (left, right), (top, bottom) = spans
    return left, top, right, bottom


def cropped(image: Image.Image, box: Box, side: int, *, draft: bool = True) -> Image.Image:
    """The box, resized to a square, in RGB, upright.

    With `draft` no more pixels are decoded than that takes, which changes the image: not for one that others use.
    """
    (width, height), (left, top, right, bottom) = image.size, box
    # A JPEG is decoded to a half, a quarter or an eighth if twice the pixels that are wanted are left.
    enough = (math.ceil(2 * side * width / (right - left)), math.ceil(2 * side * height / (bottom - top)))
    drafted = image.draft(None, enough) if draft else None  # a mode, and the box that is now the whole image
    scale = drafted[1][2] / width if drafted else 1.0
    crop = _rgb(image).resize(
        (side, side), Image.Resampling.BILINEAR, (left * scale, top * scale, right * scale, bottom * scale)
    )
    # The camera's orientation: a centre is a centre either way, and a random crop as likely.
    with suppress(Exception):  # broken metadata say nothing of the pixels
        ImageOps.exif_transpose(crop, in_place=True)
    return crop


def picture(pixels: NDArray[Any]) -> Image.Image:
    """Bytes (H, W, C), or numbers from 0 to 1, in colour or grey, as a picture."""
    levels = pixels if pixels.dtype == np.uint8 else np.rint(255 * pixels).astype(np.uint8)
    return Image.fromarray(levels[..., 0] if levels.shape[2] == 1 else levels)


class BadPixelError(ValueError):
    """What is wrong with a pixel, and which of several images has it."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message, row)
        self.row = row

    def __str__(self) -> str:
        return str(self.args[0])


def check_pixels(name: str, images: NDArray[Any]) -> None:
    """Of several images (N, ...): bytes, or numbers from 0 to 1."""
    if images.dtype == np.uint8:
        return
    if not np.issubdtype(images.dtype, np.floating):
        raise TypeError(f"{name} must be bytes (uint8) or floating-point numbers from 0 to 1, got {images.dtype}")
    if not images.size:
        return
    low, high = images.min(), images.max()
    if not np.isfinite(low) or not np.isfinite(high):  # where one is not a number, neither of them is
        got = "NaN" if np.isnan(low) else "infinity"
        raise BadPixelError(f"{name} must be finite, got {got}", _first_row(~np.isfinite(images)))
    if not 0 <= low <= high <= 1:
        said = f"floating-point {name} must be from 0 to 1, got {low:g} to {high:g}"
        raise BadPixelError(said, _first_row((images < 0) | (images > 1)))


def _first_row(bad: NDArray[np.bool_]) -> int:
    """(N, ...): the first that has one."""
    return int(np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))[0])


def reason(error: Exception) -> str:
    """Why an image could not be read."""
    # Some decoders look at a size, too; their warning is an error where the user wants that.
    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return _too_large()
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits of grey, which Pillow would cut off at 255
        image = image.point(lambda level: level * (1 / 256)).convert("L")
    if isinstance(image.info.get("transparency"), bytes):  # of a palette, of which Pillow warns on the way to RGB
        image = image.convert("RGBA")
    return image if image.mode == "RGB" else image.convert("RGB")
