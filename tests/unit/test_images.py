"""Whatever way an image comes, the network sees the same pixels; what is no image is refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from msdnet.bundle import ImageSpec
from msdnet.runtime.images import Images, batches, count_of, pixels_of

SPEC = ImageSpec(side=8, resize=10, mean=(0.5,) * 3, std=(0.2,) * 3)
RANDOM = np.random.default_rng(0)


def noise(*shape: int) -> NDArray[np.uint8]:
    return RANDOM.integers(0, 256, shape, dtype=np.uint8)


def gathered(images: Images, size: int = 4) -> NDArray[np.uint8]:
    return np.concatenate(list(batches(images, SPEC, size)))


def test_arrays_pictures_and_files_give_the_same_pixels(tmp_path: Path) -> None:
    array = noise(20, 15, 3)
    picture = Image.fromarray(array)
    picture.save(tmp_path / "image.png")
    expected = pixels_of(picture, SPEC)
    for image in (array, tmp_path / "image.png", str(tmp_path / "image.png")):
        np.testing.assert_array_equal(pixels_of(image, SPEC), expected)


def test_an_array_of_the_networks_size_is_taken_as_it_is() -> None:
    images = noise(5, 8, 8, 3)
    np.testing.assert_array_equal(gathered(images), images)


def test_tensors_are_taken_like_arrays() -> None:
    images = noise(5, 8, 8, 3)
    tensor = torch.from_numpy(images)
    for given in (tensor, list(tensor), [tensor[:2], tensor[2:]], (image for image in tensor)):
        np.testing.assert_array_equal(gathered(given), images)
    np.testing.assert_array_equal(pixels_of(tensor[0], SPEC), images[0])
    assert (count_of(tensor), count_of([tensor[:2], tensor[2]]), count_of(tensor[0])) == (5, 3, 1)
    with pytest.raises(ValueError, match="put the channels last"):
        gathered(tensor.permute(0, 3, 1, 2))


def test_an_array_on_a_disk_is_read_part_by_part() -> None:
    """As those of h5py and zarr, which may be larger than memory."""
    images, read = noise(5, 8, 8, 3), []

    class OnDisk:
        ndim, shape = images.ndim, images.shape

        def __len__(self) -> int:
            return len(images)

        def __getitem__(self, rows: slice) -> NDArray[Any]:
            read.append(len(images[rows]))
            return images[rows]

        def __array__(self, *_: object, **__: object) -> NDArray[Any]:
            raise MemoryError

    assert count_of(OnDisk()) == 5
    assert count_of([OnDisk(), images[0]]) == 6
    assert read == []
    np.testing.assert_array_equal(np.concatenate(list(batches(OnDisk(), SPEC, 2))), images)
    assert read == [2, 2, 1]
    with pytest.raises(ValueError, match=r"an image must have the shape .* got \(5, 8, 8, 3\)"):
        pixels_of(OnDisk(), SPEC)


def test_a_column_of_paths_is_a_list_of_them(tmp_path: Path) -> None:
    """As a table of pandas has it: numpy would take it for an array."""

    class Column(list[Path]):
        ndim = 1

        def __array__(self, *_: object) -> NDArray[Any]:
            return np.array([*self], dtype=object)

    Image.fromarray(noise(8, 8, 3)).save(tmp_path / "image.png")
    assert gathered(Column([tmp_path / "image.png"] * 3)).shape == (3, 8, 8, 3)
    for dtype in (str, object):
        paths = np.array([str(tmp_path / "image.png")] * 3, dtype=dtype)
        assert gathered(paths).shape == (3, 8, 8, 3)
        assert count_of(paths) == 3
    with pytest.raises(ValueError, match=r"image 0: .* must have the shape .*, got \(3,\)"):
        gathered(np.zeros(3, np.uint8))


def test_the_callers_picture_is_left_as_it_is(tmp_path: Path) -> None:
    Image.fromarray(noise(400, 320, 3)).save(tmp_path / "photo.jpg")
    with Image.open(tmp_path / "photo.jpg") as picture:
        from_picture = pixels_of(picture, SPEC)
        assert picture.size == (320, 400)
    # The file itself is decoded at a lower resolution, which comes to nearly the same.
    assert np.abs(from_picture.astype(int) - pixels_of(tmp_path / "photo.jpg", SPEC)).max() <= 8


def test_a_larger_image_is_resized_and_its_centre_cropped() -> None:
    spec = ImageSpec(side=2, resize=4, mean=(0.5,) * 3, std=(0.2,) * 3)
    quarters = np.zeros((8, 8, 3), dtype=np.uint8)
    quarters[:, 4:] = 200
    pixels = pixels_of(quarters, spec)
    assert pixels.shape == (2, 2, 3)
    assert (pixels[:, 0] < 60).all()
    assert (pixels[:, 1] > 140).all()


@pytest.mark.parametrize("size", [1, 3, 4, 100])
def test_batches_are_full_and_in_order_however_images_come(size: int) -> None:
    images = noise(11, 8, 8, 3)

    def mixed() -> Iterator[NDArray[np.uint8]]:
        yield images[:4]
        yield images[4]
        yield images[5]
        yield images[6:6]
        yield images[6:]

    parts = list(batches(mixed(), SPEC, size))
    np.testing.assert_array_equal(np.concatenate(parts), images)
    assert all(len(part) == size for part in parts[:-1])
    assert 0 < len(parts[-1]) <= size


def test_no_more_is_taken_from_a_generator_than_a_batch_needs() -> None:
    taken = []

    def endless() -> Iterator[NDArray[np.uint8]]:
        while True:
            taken.append(1)
            yield noise(8, 8, 3)

    next(batches(endless(), SPEC, 4))
    assert len(taken) == 4


def test_nothing_gives_no_batches() -> None:
    assert list(batches([], SPEC, 4)) == []
    assert list(batches(np.empty((0, 8, 8, 3), np.uint8), SPEC, 4)) == []
    assert list(batches(np.empty((0, 99, 9, 3), np.uint8), SPEC, 4)) == []


def test_numbers_from_0_to_1_are_pixels_too() -> None:
    images = noise(3, 8, 8, 3)
    np.testing.assert_allclose(gathered(images / 255.0), images / 255.0, rtol=1e-6)
    together = gathered([images[0], images[1] / 255.0])
    np.testing.assert_allclose(together, images[:2] / 255.0, rtol=1e-6)


def test_of_many_the_bad_image_is_named() -> None:
    images = np.zeros((40, 8, 8, 3))
    images[29, 3, 3, 1] = np.nan
    with pytest.raises(ValueError, match="image 29: pixels must be finite"):
        gathered(images)
    images[29, 3, 3, 1] = 2
    with pytest.raises(ValueError, match="image 29: floating-point pixels must be from 0 to 1"):
        gathered(images)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.full((8, 8, 3), np.nan), "pixels must be finite, got NaN"),
        (np.full((8, 8, 3), np.inf), "pixels must be finite, got infinity"),
        (np.full((8, 8, 3), 7.0), "from 0 to 1, got 7"),
        (np.zeros((8, 8, 3), np.int64), "bytes .uint8. or floating-point"),
        (np.zeros((8, 8, 4), np.uint8), "must have 3 channels"),
        (np.zeros((3, 8, 8), np.uint8), "put the channels last"),
        (np.zeros((9, 8, 3)), "the network's size"),
        (np.zeros((0, 8, 3), np.uint8), "must have pixels"),
        (np.zeros((2, 8, 8, 3, 1), np.uint8), "height, width, channels"),
        (7, "must be an array, a picture or a path"),
        (None, "must be an array, a picture or a path"),
    ],
)
def test_what_is_no_image_is_refused(image: object, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        pixels_of(image, SPEC)  # type: ignore[arg-type]
    with pytest.raises((TypeError, ValueError), match=f"image 1: .*{message}"):
        list(batches([noise(8, 8, 3), image], SPEC, 4))  # type: ignore[list-item]


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"not an image")
    with pytest.raises(ValueError, match=r"broken\.jpg: cannot be read .not an image"):
        pixels_of(broken, SPEC)
    with pytest.raises(ValueError, match="a folder, where an image is expected: give its files"):
        pixels_of(tmp_path, SPEC)
    with pytest.raises(ValueError, match=r"gone\.jpg: cannot be read .No such file"):
        pixels_of(tmp_path / "gone.jpg", SPEC)


def cut_off(folder: Path) -> Path:
    """A photo whose file breaks off: its head is in order, and tells its size."""
    whole = folder / "whole.jpg"
    Image.fromarray(noise(100, 100, 3)).save(whole)
    broken = folder / "cut.jpg"
    broken.write_bytes(whole.read_bytes()[:2000])
    return broken


def test_a_picture_that_cannot_be_decoded_is_treated_like_its_file(tmp_path: Path) -> None:
    path, good = cut_off(tmp_path), noise(8, 8, 3)
    with Image.open(path) as picture:
        for image in (path, picture, path.read_bytes()):
            with pytest.raises(ValueError, match=r"^image 1: .*: cannot be read .*truncated"):
                list(batches([good, image], SPEC, 4))
            unread: dict[int, str] = {}
            (read,) = batches([good, image, good], SPEC, 4, unread)
            assert (len(read), list(unread)) == (2, [1])
        with pytest.raises(ValueError, match=r"cut\.jpg: cannot be read"):
            pixels_of(picture, SPEC)
    with pytest.raises(ValueError, match=r"^picture: cannot be read \(images must have pixels"):
        pixels_of(Image.new("RGB", (0, 4)), SPEC)


def test_what_is_not_even_iterable_is_refused() -> None:
    with pytest.raises(TypeError, match="images must be arrays, pictures, paths"):
        batches(3, SPEC, 4)  # type: ignore[arg-type]


def test_grey_networks_take_grey_images() -> None:
    spec = ImageSpec(side=8, resize=8, mean=(0.5,), std=(0.2,))
    grey = noise(8, 8)
    np.testing.assert_array_equal(pixels_of(grey, spec)[..., 0], grey)
    np.testing.assert_array_equal(pixels_of(Image.fromarray(grey), spec)[..., 0], grey)


def test_several_grey_images_without_a_last_axis_are_told_what_is_missing() -> None:
    spec, stack = ImageSpec(side=8, resize=8, mean=(0.5,), std=(0.2,)), noise(70, 8, 8)
    told = r"must have 1 channel, .* got \(70, 8, 8\); several grey images need a last axis, \(N, H, W, 1\)"
    with pytest.raises(ValueError, match=told):
        list(batches(stack, spec, 4))
    np.testing.assert_array_equal(np.concatenate(list(batches(stack[..., None], spec, 4)))[..., 0], stack)
    with pytest.raises(ValueError, match=r"got \(1, 8, 8\); put the channels last"):
        pixels_of(noise(1, 8, 8), spec)
    with pytest.raises(ValueError, match=r"must have 3 channels, .* got \(5, 8, 8, 1\)$"):
        list(batches(noise(5, 8, 8, 1), SPEC, 4))


def test_the_number_of_images_is_told_where_it_can_be() -> None:
    image = noise(8, 8, 3)
    assert count_of(noise(5, 8, 8, 3)) == 5
    assert count_of(image) == count_of("image.png") == count_of(Image.fromarray(image)) == 1
    assert count_of([image, noise(4, 8, 8, 3)]) == 5
    assert count_of(iter([image])) is None
