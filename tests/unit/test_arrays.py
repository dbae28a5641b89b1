"""Labelled images in memory."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from msdnet.data import ArrayData, DataConfig, Epoch, Normalisation
from msdnet.files import hold_out_by_class

CLASSES = ("a", "b", "c")
LABELS = np.arange(40) % 3


def some_images(count: int = 40, height: int = 16, width: int = 16, channels: int = 3) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, height, width, channels), dtype=np.uint8)


def some_data(images: NDArray[Any] | None = None, **options: Any) -> ArrayData:
    images = some_images() if images is None else images
    return ArrayData(images, np.arange(len(images)) % 3, CLASSES, **{"held_out": 8} | options)


def everything(data: ArrayData, part: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Pixels from 0 to 255 (N, height, width, channels) and labels (N)."""
    batches = list(data.batches(part, 7))
    images = data.normalisation.undo(torch.cat([batch.images for batch in batches])) * 255
    return images.permute(0, 2, 3, 1).double().numpy(), torch.cat([batch.labels for batch in batches]).numpy()


def test_parts_never_mix() -> None:
    images, data = some_images(), some_data()
    assert (data.size("train"), data.size("held_out"), data.size("test")) == (32, 8, 0)
    held_out = list(data.held_out_indices)
    kept = np.setdiff1d(np.arange(40), held_out)
    for part, rows in (("train", kept), ("held_out", held_out)):
        pixels, labels = everything(data, part)
        np.testing.assert_allclose(pixels, images[rows], atol=1e-3)
        np.testing.assert_array_equal(labels, np.asarray(rows) % 3)
    assert list(data.batches("test", 7)) == []
    with pytest.raises(ValueError, match="part must be one of train, held_out, test; got 'val'"):
        data.size("val")  # type: ignore[arg-type]


def test_normalisation_is_that_of_the_training_images() -> None:
    images, data = some_images(), some_data()
    pixels = np.delete(images, data.held_out_indices, axis=0) / 255
    np.testing.assert_allclose(data.normalisation.mean, pixels.mean((0, 1, 2)), rtol=1e-9)
    np.testing.assert_allclose(data.normalisation.std, pixels.std((0, 1, 2)), rtol=1e-9)


def test_normalisation_does_not_depend_on_the_number_of_threads() -> None:
    """A run knows its data by it."""
    images = np.random.default_rng(0).integers(0, 256, (3_000, 28, 28, 1), dtype=np.uint8)
    before, found = torch.get_num_threads(), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found.append(some_data(images).normalisation)
    torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def test_refuses_a_normalisation_of_other_channels() -> None:
    with pytest.raises(ValueError, match="normalisation is of 1 channels, and images have 3"):
        some_data(normalisation=Normalisation((0.5,), (0.2,)))
    with pytest.raises(ValueError, match="mean and std must be of as many channels, got 1 and 2"):
        Normalisation((0.5,), (0.2, 0.3))
    with pytest.raises(ValueError, match="each of std must be at least 1e-09, got 0"):
        Normalisation((0.5,), (0,))
    assert Normalisation([0.5], [0.2]) == Normalisation((0.5,), (0.2,))  # type: ignore[arg-type]


def test_images_that_are_all_alike_can_be_normalised() -> None:
    data = some_data(np.full((40, 16, 16, 1), 9, np.uint8))
    assert all(batch.images.abs().max() < 1e-3 for batch in data.batches("train", 8))


def test_numbers_are_taken_as_bytes_are() -> None:
    of_bytes, of_numbers = some_data(), some_data(some_images() / 255)
    epoch = Epoch(batch_size=8, number=0)
    for one, other in zip(of_bytes.training_batches(epoch), of_numbers.training_batches(epoch), strict=True):
        torch.testing.assert_close(one.images, other.images)
        assert one.labels.equal(other.labels)


def test_labels_may_have_another_byte_order() -> None:
    """As files of some formats have them."""
    images, labels = np.zeros((6, 8, 8, 3), np.uint8), np.array([0, 1] * 3, dtype=">i4")
    data = ArrayData(images, labels, ["a", "b"], held_out=[0, 1])
    assert [batch.labels.tolist() for batch in data.batches("held_out", 8)] == [[0, 1]]


def test_a_text_is_no_list_of_names() -> None:
    with pytest.raises(TypeError, match="classes must be names, in the order of their labels, got 'ab'"):
        ArrayData(np.zeros((6, 8, 8, 3), np.uint8), [0, 1] * 3, "ab", held_out=2)


def test_lists_are_taken_as_arrays_are() -> None:
    images = some_images(4, 8, 8) / 255
    lists = ArrayData(images.tolist(), [0, 1, 2, 0], CLASSES, held_out=1)
    arrays = ArrayData(images, np.array([0, 1, 2, 0]), CLASSES, held_out=1)
    for one, other in zip(everything(lists, "train"), everything(arrays, "train"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_epoch_follows_from_its_number_and_seed_alone() -> None:
    def images(data: ArrayData, number: int = 3, seed: int = 0, first: int = 0) -> list[torch.Tensor]:
        return [batch.images for batch in data.training_batches(Epoch(8, number, seed, first))]

    data = some_data()
    first = images(data)
    images(data, number=4)
    assert all(one.equal(other) for one, other in zip(first, images(some_data()), strict=True))
    assert all(one.equal(other) for one, other in zip(first[2:], images(data, first=2), strict=True))
    assert not first[0].equal(images(data, number=4)[0])
    assert not first[0].equal(images(data, seed=1)[0])


def test_batches_that_are_made_together_are_as_if_made_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    epoch = Epoch(8, number=1)
    together = list(some_data().training_batches(epoch))
    monkeypatch.setattr("msdnet.data.base.NUMBERS_AT_ONCE", 1)
    one_by_one = list(some_data().training_batches(epoch))
    assert len(together) > 1
    for ours, theirs in zip(together, one_by_one, strict=True):
        assert ours.images.equal(theirs.images)
        assert ours.labels.equal(theirs.labels)


@pytest.mark.parametrize("mirror", [True, False])
def test_training_images_are_crops_of_padded_ones(mirror: bool) -> None:
    """Each image is a ramp from left to right: a crop of it still rises, unless it is mirrored."""
    ramp = np.broadcast_to(np.arange(1, 25, dtype=np.uint8)[:, None], (40, 16, 24, 1))
    data = some_data(np.ascontiguousarray(ramp), mirror=mirror)
    assert data.image_shape == (1, 16, 24)
    seen = set()
    for batch in data.training_batches(Epoch(batch_size=8, number=0)):
        assert batch.images.shape == (8, 1, 16, 24)
        rows = (data.normalisation.undo(batch.images) * 255).round().int()[:, 0, 8]  # the middle row of each: (8, 24)
        for row in rows.tolist():
            rises = row[12] > row[11]
            shift = (row if rises else row[::-1])[12] - 13
            seen.add((rises, shift))
    assert {rises for rises, _ in seen} == ({True, False} if mirror else {True})
    assert {shift for _, shift in seen} == {-2, -1, 0, 1, 2}  # an eighth of the height to each side


@pytest.mark.parametrize(
    ("images", "labels", "error", "message"),
    [
        (some_images()[0], np.zeros(16, int), ValueError, r"images must have the shape .*, got \(16, 16, 3\)"),
        (some_images().transpose(0, 3, 1, 2), LABELS, ValueError, r"got \(40, 3, 16, 16\); put the channels last"),
        (some_images().astype(int), np.zeros(40, int), TypeError, "images must be bytes .*, got int64"),
        (some_images(), np.zeros(39, int), ValueError, r"one for each of 40 images, got 39"),
        (some_images(), np.full(40, 3), ValueError, "labels must be from 0 to 2, got 3 to 3"),
        (some_images() / 1, LABELS, ValueError, "floating-point images must be from 0 to 1, got 0 to 255"),
        (some_images() / 255 - 0.5, LABELS, ValueError, "images must be from 0 to 1, got -0.5 to 0.5"),
        (np.where(some_images() > 9, 0.5, np.nan), LABELS, ValueError, "images must be finite, got NaN"),
        (np.where(some_images() > 9, 0.5, np.inf), LABELS, ValueError, "images must be finite, got infinity"),
        (some_images().tolist(), LABELS, TypeError, "images must be bytes .*, got int64"),
        (some_images(), LABELS + 0.5, TypeError, "labels must be whole numbers, each that of a class, got float64"),
        (some_images(), ["a"] * 40, TypeError, "labels must be whole numbers, .* got <U1"),
    ],
)
def test_refuses(images: Any, labels: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ArrayData(images, labels, CLASSES, held_out=4)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"subset": 0}, ValueError, "subset must be at least 1, got 0"),
        ({"subset": -5}, ValueError, "subset must be at least 1, got -5"),
        ({"subset": 0.5}, TypeError, "subset must be a whole number, got 0.5"),
        ({"held_out": 0.1}, TypeError, "held_out must be a whole number, got 0.1"),
        ({"padding": -1}, ValueError, "padding must be at least 0, got -1"),
        ({"held_out_seed": "x"}, TypeError, "held_out_seed must be a whole number, got 'x'"),
    ],
)
def test_refuses_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        some_data(**options)


def test_the_same_seed_is_refused_where_data_are_described() -> None:
    with pytest.raises(TypeError, match="held_out_seed must be a whole number, got 'x'"):
        DataConfig(held_out_seed="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("places", [[7, 3], np.array([3, 7])], ids=str)
def test_which_images_are_held_out_may_be_given(places: Any) -> None:
    data = some_data(held_out=places)
    assert data.held_out_indices == (3, 7)
    np.testing.assert_array_equal(everything(data, "held_out")[1], [0, 1])
    assert data.size("train") == 38


@pytest.mark.parametrize("places", [[], [40], range(40)], ids=str)
def test_refuses_places_that_are_not_some_of_the_images(places: Any) -> None:
    with pytest.raises(ValueError, match="held_out must be the places of some of 40 images"):
        some_data(held_out=places)
    with pytest.raises(ValueError, match="each of held_out must be at least 0, got -1"):
        some_data(held_out=[-1])


@given(st.lists(st.integers(0, 4), min_size=2, max_size=60), st.integers(0, 5), st.data())
def test_classes_are_held_out_alike(labels: list[int], seed: int, drawn: st.DataObject) -> None:
    sizes = Counter(labels)
    most = len(labels) - len(sizes)
    assume(most > 0)
    count = drawn.draw(st.integers(1, most))
    held_out = hold_out_by_class(labels, count, seed)
    assert len(set(held_out)) == count
    assert held_out == hold_out_by_class(labels, count, seed)
    taken = Counter(labels[place] for place in held_out)
    assert all(taken[label] < size for label, size in sizes.items())
    for one, other in itertools.permutations(sizes, 2):  # where both have some left, none is an image ahead
        if taken[other] < sizes[other] - 1:
            assert (taken[one] - 0.5) / sizes[one] <= (taken[other] + 0.5) / sizes[other]


def test_no_class_is_held_out_whole() -> None:
    with pytest.raises(ValueError, match="each of 2 classes one of the 4 images to train on, so at most 2, got 3"):
        hold_out_by_class([0, 0, 0, 1], 3, seed=0)
    assert hold_out_by_class([0, 1, 0, 0], 2, seed=0) != hold_out_by_class([0, 1, 0, 0], 2, seed=1)
