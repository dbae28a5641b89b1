"""Images as people have them (arrays, pictures, files, or any iterable of these) to batches of pixels."""

import io
import os
from collections.abc import Collection, Iterable, Iterator
from typing import IO, Any, Protocol, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from msdnet.bundle import ImageSpec
from msdnet.pixels import BadPixelError, centre, check_pixels, cropped, opened, picture, reason

__all__ = ["ImageLike", "Images", "SupportsArray", "among_all", "batches", "count_of", "pixels_of"]


class SupportsArray(Protocol):
    """What numpy takes for an array, such as a tensor in main memory."""

    def __array__(self) -> NDArray[Any]: ...


Content: TypeAlias = bytes | bytearray | memoryview
Encoded: TypeAlias = Image.Image | str | os.PathLike[str] | IO[bytes] | Content
ImageLike: TypeAlias = NDArray[Any] | SupportsArray | Encoded
"""One image: an array or tensor (H, W, C), a picture, the path of a file, an open one, or what a file holds."""
Images: TypeAlias = ImageLike | Iterable[ImageLike]
"""One, an array (N, H, W, C) of them, or any iterable (an array of paths, too) of images and such arrays."""
Pixels: TypeAlias = NDArray[Any]


def pixels_of(image: ImageLike, spec: ImageSpec) -> Pixels:
    """One image as the network takes it: (height, width, channels)."""
    image = _as_array(image)
    if _is_array(image):
        if image.ndim == 2:
            image = image[..., None]
        if image.ndim != 3:
            raise ValueError(f"an image must have the shape (height, width, channels), got {tuple(image.shape)}")
        _check_channels(image.shape, spec)
        pixels: Pixels = _of_array(image[None], spec)[0]
        return pixels
    if _is_encoded(image):
        return _decoded(image, spec)
    raise TypeError(f"an image must be an array, a picture or a path, got {type(image).__name__}")


def batches(images: Images, spec: ImageSpec, size: int, unread: dict[int, str] | None = None) -> Iterator[Pixels]:
    """Batches (N, height, width, channels) of so many images, the last as small as it comes. Holds one at a time.

    - unread: where it is noted which images cannot be read (by their numbers), and why; in its batch, each takes the
      place of one that can. Without it the first ends it with an error
    """
    images = _as_array(images)
    one_array = _is_array(images)
    several: Any = [images] if one_array or _is_encoded(images) else images
    if not isinstance(several, Iterable) or isinstance(several, dict):
        raise TypeError(f"images must be arrays, pictures, paths or an iterable of them, got {type(images).__name__}")
    # An iterator may use the memory of an image for the next one.
    return _batches(_pieces(several, spec, size, unread), size, borrowed=not one_array)


def among_all(numbers: NDArray[np.int64], unread: Collection[int]) -> NDArray[np.int64]:
    """The numbers of images among all, from those among the ones that were read."""
    if not unread:
        return numbers
    read_before = np.fromiter(unread, np.int64) - np.arange(len(unread))  # each of those that were not
    return numbers + np.searchsorted(read_before, numbers, side="right")


def _batches(pieces: Iterable[Pixels], size: int, *, borrowed: bool) -> Iterator[Pixels]:
    waiting: list[Pixels] = []
    rows = 0
    for piece in pieces:
        start = 0
        while start < max(len(piece), 1):
            part = piece[start : start + size - rows]
            waiting.append(part.copy() if borrowed else part)
            taken = max(len(part), 1)  # one that cannot be read has no row
            start, rows = start + taken, rows + taken
            if rows == size:
                yield _joined(waiting)
                waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def count_of(images: Images) -> int | None:
    """How many images there are, if that can be told beforehand."""
    images = _as_array(images)
    if _is_array(images) or _is_encoded(images):
        return _count(images)
    return sum(map(_count, images)) if isinstance(images, list | tuple) else None


def _count(image: Any) -> int:
    return image.shape[0] if _is_several(image) else 1


def _pieces(images: Iterable[ImageLike], spec: ImageSpec, size: int, unread: dict[int, str] | None) -> Iterator[Pixels]:
    """One or more images at a time, at most so many: (N, height, width, channels); none of one that is not read."""
    number = 0
    for given in images:
        image = _as_array(given)
        try:
            for piece in _parts(image, spec, size):
                yield piece
                number += len(piece)
        except (TypeError, ValueError) as error:
            # What need not be decoded, an array of the wrong shape, say, is a mistake of the caller's.
            if unread is not None and _is_encoded(image):
                unread[number] = str(error)
                number += 1
                yield np.empty((0, *spec.shape), np.uint8)
                continue
            at = number + (error.row if isinstance(error, BadPixelError) else 0)
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"image {at}: {error}") from error


def _parts(image: ImageLike, spec: ImageSpec, size: int) -> Iterator[Pixels]:
    if _is_several(image):
        _check_channels(tuple(image.shape), spec)
        for start in range(0, image.shape[0], size):
            yield _of_array(np.asarray(image[start : start + size]), spec)
    else:
        yield pixels_of(image, spec)[None]


def _as_array(images: Any) -> Any:
    """A tensor as the array that it is; a column of paths, which has one axis and is not pixels, as what lists them.

    Several images in one array may be on a disk, and more than memory holds: these are read part by part.
    """
    if isinstance(images, np.ndarray):
        listed = images.ndim == 1 and images.dtype.kind in "UTO"  # text of either kind, or objects
        return images.tolist() if listed else images
    if isinstance(images, Image.Image) or getattr(images, "ndim", 0) < 2 or _is_several(images):
        return images
    return np.asarray(images) if hasattr(images, "__array__") else images


def _is_array(image: Any) -> TypeGuard[NDArray[Any]]:
    """Of one image, or of several."""
    return isinstance(image, np.ndarray) or _is_several(image)


def _is_several(images: Any) -> TypeGuard[NDArray[Any]]:
    """Whether it is an array (N, H, W, C), of numpy or of anyone else's kind."""
    return getattr(images, "ndim", 0) == 4 and hasattr(images, "__array__")


def _check_channels(shape: tuple[int, ...], spec: ImageSpec) -> None:
    """Of one image (H, W, C), or of several (N, H, W, C)."""
    if shape[-1] == spec.channels:
        return
    hint = ""
    if shape[-3] == spec.channels:
        hint = "; put the channels last"
    elif spec.channels == 1 and len(shape) == 3:
        hint = "; several grey images need a last axis, (N, H, W, 1)"
    counted = "1 channel" if spec.channels == 1 else f"{spec.channels} channels"
    raise ValueError(f"images must have {counted}, as (H, W, C) or (N, H, W, C), got {shape}{hint}")


def _of_array(images: NDArray[Any], spec: ImageSpec) -> Pixels:
    """(N, H, W, C): bytes of the network's own size, taken as they are, or of another, which are resized like pictures;
    or numbers from 0 to 1 of the network's own size.
    """
    height, width = images.shape[1:3]
    if not height or not width:
        raise ValueError(f"images must have pixels, got {images.shape}")
    check_pixels("pixels", images)
    if images.dtype != np.uint8:
        return _of_numbers(images, spec)
    if (height, width) == (spec.side, spec.side):
        return images
    return np.stack([_of_picture(picture(image), spec) for image in images])


def _of_numbers(images: NDArray[np.floating], spec: ImageSpec) -> Pixels:
    if images.shape[1:] != spec.shape:
        raise ValueError(f"floating-point images must have the network's size {spec.shape}, got {images.shape[1:]}")
    return images.astype(np.float32, copy=False)


def _of_picture(picture: Image.Image, spec: ImageSpec, *, draft: bool = False) -> Pixels:
    if 0 in picture.size:
        raise ValueError(f"images must have pixels, got a picture of {picture.size}")
    crop = cropped(picture, centre(picture.size, spec.resize, spec.side), spec.side, draft=draft)
    pixels = np.asarray(crop if spec.channels == 3 else crop.convert("L"))
    return pixels.reshape(spec.shape)


def _is_encoded(image: object) -> TypeGuard[Encoded]:
    """Whether it is one image that has to be decoded, which may fail."""
    is_file = hasattr(image, "read") and hasattr(image, "seek")
    return is_file or isinstance(image, Image.Image | str | os.PathLike | Content)


def _decoded(image: Encoded, spec: ImageSpec) -> Pixels:
    try:
        if isinstance(image, Image.Image):  # which may not have been decoded yet
            # An older Pillow has PNGs of 16 bits in mode I.
            if image.mode in ("I", "F") and image.format != "PNG":
                raise ValueError(f"in mode {image.mode} nothing says which number is white: convert it, to L or RGB")
            return _of_picture(image, spec)
        with opened(io.BytesIO(image) if isinstance(image, Content) else image) as picture:
            return _of_picture(picture, spec, draft=True)
    except IsADirectoryError as error:
        raise ValueError(f"{_name(image)}: a folder, where an image is expected: give its files") from error
    except Exception as error:  # decoders raise anything, from SyntaxError to struct.error
        raise ValueError(f"{_name(image)}: cannot be read ({reason(error)})") from error


def _name(image: Encoded) -> str:
    """As it is called in an error."""
    if isinstance(image, str | os.PathLike):
        return os.fspath(image)
    if isinstance(image, Image.Image):
        return str(getattr(image, "filename", "") or "picture")
    return str(getattr(image, "name", "file"))


def _joined(parts: list[Pixels]) -> Pixels:
    if len(parts) == 1:
        return parts[0]
    if len({part.dtype for part in parts}) > 1:  # bytes among numbers: all become numbers
        parts = [part if part.dtype != np.uint8 else part / np.float32(255) for part in parts]
    return np.concatenate(parts)
