"""A folder of images: what is found, how it is divided, what becomes of an image, and what may go wrong."""

import itertools
import multiprocessing
import os
import pickle
import shutil
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader
from torchvision.transforms import v2

from msdnet.data.base import UNREADABLE, Batch, Epoch, Shard
from msdnet.data.folder import FolderData
from msdnet.files import Part, find_classes, hold_out, open_labelled
from msdnet.files import folder as module
from msdnet.pixels import centre, cropped
from msdnet.training.record import check_same_images, describe_data

# Python 3.12 and newer warn of every fork beside threads, and torch always has some.
pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create .* worker processes"),  # on a single core
]

PARTS: tuple[Part, ...] = get_args(Part)


def paint(path: Path, number: int, size: tuple[int, int] = (12, 10)) -> None:
    """An image of one colour, the number: no crop and no flip can hide which file it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (number % 256, number // 256, 0)).save(path)


def texture(size: tuple[int, int]) -> Image.Image:
    """Random, but smooth enough for a JPEG."""
    pixels = torch.randint(0, 256, (3, 9, 12), dtype=torch.uint8)
    image: Image.Image = v2.functional.to_pil_image(pixels)
    return image.resize(size, Image.Resampling.BICUBIC)


def make(root: Path, train: int = 20, test: int = 4, classes: Iterable[str] = ("ant", "bee")) -> Path:
    """So many images of each class in train/ and in val/, numbered throughout."""
    number = 0
    for part, count in (("train", train), ("val", test)):
        for name in classes:
            for index in range(count):
                paint(root / part / name / f"{index:03}.png", number)
                number += 1
    return root


def open_small(root: Path, workers: int = 0, crop_size: int = 8, **options: object) -> FolderData:
    return FolderData(root, crop_size=crop_size, workers=workers, **options)  # type: ignore[arg-type]


def test_images_with_the_same_numbers_and_other_names_are_others(tmp_path: Path) -> None:
    """Or those that were trained on would be taken for held-out ones."""
    data = open_small(make(tmp_path / "photos"))
    told = {"images": describe_data(data)}
    check_same_images("trained on other data", open_small(tmp_path / "photos"), told)
    for folder in (tmp_path / "photos/train").iterdir():
        files = sorted(folder.iterdir())
        for file in files:
            file.rename(file.with_suffix(".moved.png"))
    moved = open_small(tmp_path / "photos")
    assert moved.held_out_indices == data.held_out_indices
    with pytest.raises(ValueError, match="trained on other data: which images are held out"):
        check_same_images("trained on other data", moved, told)
    images = open_labelled(tmp_path / "photos", part="held_out")
    assert images.held_out == moved.held_out_fingerprint != data.held_out_fingerprint


def pixels(data: FolderData, images: Tensor) -> Tensor:
    """Back to bytes."""
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (data.normalisation.mean, data.normalisation.std))
    return ((images * std + mean) * 255).round().byte()


def numbers(data: FolderData, batches: Iterable[Batch]) -> list[int]:
    """Which painted images these are."""
    corners = torch.cat([pixels(data, batch.images)[:, :, 0, 0] for batch in batches]).int()
    return (corners[:, 0] + 256 * corners[:, 1]).tolist()


def numbers_of_files(data: FolderData, part: Part) -> list[int]:
    images = [Image.open(data.root / path).getpixel((0, 0)) for path in data.paths(part)]
    return [colour[0] + 256 * colour[1] for colour in images]  # type: ignore[index]


def same(some: Iterable[Batch], others: Iterable[Batch]) -> bool:
    pairs = zip(list(some), list(others), strict=True)
    return all(torch.equal(a.images, b.images) and torch.equal(a.labels, b.labels) for a, b in pairs)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Twelve textured training images of each class, so that crops and flips show."""
    for index in range(32):
        path = tmp_path / ("train" if index < 24 else "val") / f"class{index % 2}" / f"{index:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        texture((40 + index, 50)).save(path)
    return tmp_path


# Finding and dividing


def test_train_and_val_are_found_and_a_tenth_is_held_out(tmp_path: Path) -> None:
    data = open_small(make(tmp_path / "insects"))
    assert (data.name, data.classes, data.image_shape) == ("insects", ("ant", "bee"), (3, 8, 8))
    assert [data.size(part) for part in PARTS] == [36, 4, 8]
    with pytest.raises(ValueError, match="part must be one of train, held_out, test; got 'val'"):
        data.size("val")  # type: ignore[arg-type]
    assert data.held_out_indices == hold_out(40, 4, seed=0)
    assert open_small(tmp_path / "insects", held_out_seed=1).held_out_indices == hold_out(40, 4, seed=1)


def test_test_may_stand_for_val_but_not_beside_it(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "test").mkdir()  # ImageNet's, without labels
    assert open_small(tmp_path).size("test") == 8
    (tmp_path / "test").rmdir()
    (tmp_path / "val").rename(tmp_path / "test")
    assert open_small(tmp_path).size("test") == 8
    paint(tmp_path / "val/ant/0.png", 0)
    with pytest.raises(ValueError, match="both of val/ and test/ with class folders; expected train/CLASS"):
        open_small(tmp_path)


def test_other_files_are_not_images(tmp_path: Path) -> None:
    make(tmp_path)
    for name in (".hidden.png", "notes.txt", ".cache/a.png"):
        path = tmp_path / "train/ant" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("no image")
    (tmp_path / "train/.git").mkdir()
    paint(tmp_path / "train/ant/deeper/LOUD.BMP", 500)
    data = open_small(tmp_path, held_out=1)
    assert data.size("train") == 40
    paths = sorted(data.paths("train") + data.paths("held_out"))
    assert paths[20] == "train/ant/deeper/LOUD.BMP"
    assert data.paths("train") == sorted(data.paths("train"))


def test_parts_never_mix(tmp_path: Path) -> None:
    data = open_small(make(tmp_path), held_out=7, held_out_seed=3)
    parts = {part: numbers(data, data.batches(part, 5)) for part in PARTS}
    assert sorted(number for part in parts.values() for number in part) == list(range(48))
    assert parts == {part: numbers_of_files(data, part) for part in PARTS}
    seen = numbers(data, data.training_batches(Epoch(11, seed=0, number=0)))
    assert sorted(seen) == parts["train"]
    assert seen != parts["train"], "shuffled"


def test_one_folder_is_divided_and_stays_so_when_files_are_added(tmp_path: Path) -> None:
    for index in range(200):
        paint(tmp_path / f"class{index % 2}" / f"{index:03}.png", index)
    before = open_small(tmp_path)
    sizes = {part: before.size(part) for part in PARTS}
    assert sum(sizes.values()) == 200
    assert 10 <= sizes["test"] <= 30
    assert 8 <= sizes["held_out"] <= 30
    for index in range(200, 300):
        paint(tmp_path / f"class{index % 2}" / f"{index - 200:03}_more.png", index)
    after = open_small(tmp_path)
    assert all(set(before.paths(part)) < set(after.paths(part)) for part in PARTS)
    training = sorted(after.paths("train") + after.paths("held_out"))
    assert [training[index] for index in after.held_out_indices] == after.paths("held_out")
    assert open_small(tmp_path, held_out=25).size("held_out") == 25
    assert open_small(tmp_path, held_out_seed=1).paths("test") == after.paths("test")


@pytest.mark.parametrize("divided", [True, False])
def test_a_name_is_the_same_in_either_form(tmp_path: Path, divided: bool) -> None:
    """Of an image and of a class. Some systems make two characters of an accented letter."""
    letters, roots = {"composed": ("\u00e9", "z"), "apart": ("e\u0301", "z")}, []
    for form, (accented, plain) in letters.items():
        roots.append(tmp_path / form / "photos")
        for index in range(100):
            name = f"{(accented, plain)[index % 2]}{index // 2:02}.png"
            part = ("train" if index < 80 else "val") if divided else ""
            paint(roots[-1] / part / f"{(accented, plain)[index % 4 // 2]}class" / name, index)
    one, other = (open_small(root) for root in roots)
    assert one.classes == other.classes == ("zclass", "\u00e9class")
    assert open_small(roots[1], classes=one.classes).paths("train") == other.paths("train")
    assert one.held_out_indices == other.held_out_indices
    assert (one.some_names, one.test_fingerprint) == (other.some_names, other.test_fingerprint)
    for part in PARTS:
        assert numbers_of_files(one, part) == numbers_of_files(other, part)


def test_one_class_in_two_forms_is_refused(tmp_path: Path) -> None:
    for index, name in enumerate(("caf\u00e9", "cafe\u0301", "bar")):
        paint(tmp_path / name / "0.png", index)
    with pytest.raises(ValueError, match="two folders are called 'caf\u00e9'"):
        find_classes(tmp_path)


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    for index in range(40):
        paint(tmp_path / ("train", "bus")[index % 2] / f"{index}.png", index)
    assert open_small(tmp_path).classes == find_classes(tmp_path) == ("bus", "train")


def test_classes_are_found_without_their_images(tmp_path: Path) -> None:
    for folder in ("train/bee", "train/ant", "val/ant", "other"):
        (tmp_path / folder).mkdir(parents=True)
    assert find_classes(tmp_path) == ("ant", "bee")
    with pytest.raises(FileNotFoundError, match=r"nowhere: no such folder; expected train/CLASS"):
        find_classes(tmp_path / "nowhere")


def test_many_images_are_held_out_as_the_paper_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY", 30)
    monkeypatch.setattr(module, "HELD_OUT_OF_MANY", 11)
    assert open_small(make(tmp_path)).size("held_out") == 11


def test_a_subset_is_spread_over_the_classes_and_leaves_the_other_parts_alone(tmp_path: Path) -> None:
    whole, few = (open_small(make(tmp_path), subset=subset) for subset in (None, 12))
    assert few.size("train") == 12
    assert set(few.paths("train")) < set(whole.paths("train"))
    assert len({path.split("/")[1] for path in few.paths("train")}) == 2
    assert all(few.paths(part) == whole.paths(part) for part in PARTS[1:])
    assert open_small(tmp_path, subset=1000).paths("train") == whole.paths("train")
    with pytest.raises(ValueError, match="subset must be at least 1, got 0"):
        open_small(tmp_path, subset=0)
    with pytest.raises(TypeError, match="held_out_seed must be a whole number, got 'x'"):
        open_small(tmp_path, held_out_seed="x")


def test_classes_in_the_order_of_a_network(tmp_path: Path) -> None:
    make(tmp_path)
    data = open_small(tmp_path, classes=("bee", "ant"))
    assert data.classes == ("bee", "ant")
    assert next(data.batches("test", 8)).labels.tolist() == [1] * 4 + [0] * 4


# Bad input


def test_a_missing_root(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere: no such folder; expected train/CLASS/\* and val/CLASS/\*"):
        open_small(tmp_path / "nowhere")


def test_no_classes_or_one(tmp_path: Path) -> None:
    paint(tmp_path / "loose.png", 0)
    with pytest.raises(ValueError, match="no class folders; expected"):
        open_small(tmp_path)
    paint(tmp_path / "ant/0.png", 0)
    with pytest.raises(ValueError, match="only one class, 'ant'; expected"):
        open_small(tmp_path)


def test_train_without_class_folders_or_alone(tmp_path: Path) -> None:
    for part in ("train", "val"):
        paint(tmp_path / part / "0.png", 0)
    with pytest.raises(ValueError, match="train: no class folders"):
        open_small(tmp_path)
    for name in ("ant", "bee"):
        paint(tmp_path / "train" / name / "0.png", 0)
    with pytest.raises(ValueError, match="neither of val/ and test/ with class folders; expected"):
        open_small(tmp_path)


@pytest.mark.parametrize("part", ["train", "val"])
def test_a_class_without_images(tmp_path: Path, part: str) -> None:
    make(tmp_path, classes=("ant", "bee", "cow"))
    for path in (tmp_path / part / "cow").iterdir():
        path.rename(path.with_suffix(".tif"))
    with pytest.raises(ValueError, match=rf"{part}: no images in 'cow'; expected files that end in .jpg"):
        open_small(tmp_path)


def test_a_class_that_may_not_be_looked_into_is_not_called_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path)
    scandir = os.scandir

    def refuse_ants(folder: str) -> object:
        if folder.endswith("ant"):
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr("msdnet.files.walk.os.scandir", refuse_ants)
    with pytest.raises(PermissionError, match="ant"):
        open_small(tmp_path)


def test_a_class_without_test_images_is_told_of(tmp_path: Path) -> None:
    make(tmp_path, classes=("ant", "bee", "cat"))
    shutil.rmtree(tmp_path / "val/bee")
    with pytest.warns(UserWarning, match=r"val: no images of 'bee', so what is measured says nothing of these"):
        assert open_small(tmp_path).classes == ("ant", "bee", "cat")


def test_images_of_formats_that_are_not_read_are_told_of(tmp_path: Path) -> None:
    make(tmp_path)
    path = min((tmp_path / "train" / "ant").iterdir())
    path.rename(path.with_suffix(".TIF"))
    left_out = "train: train/ant/000.TIF is left out: of images, JPEG, PNG, WEBP, BMP, GIF are read"
    with pytest.warns(UserWarning, match=left_out):
        open_small(tmp_path)


def test_unknown_classes(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ValueError, match="train: 'bee' not among the 1 classes: 'ant'"):
        open_small(tmp_path, classes=["ant"])
    with pytest.raises(ValueError, match="train: no folder for 'cow' of the 3 classes"):
        open_small(tmp_path, classes=["ant", "bee", "cow"])
    for name in "abcdefg":
        paint(tmp_path / "val" / name / "0.png", 0)
    with pytest.raises(ValueError, match="val: 'a', 'b', 'c', 'd', 'e' and 2 more not among the 2 classes"):
        open_small(tmp_path)


def test_too_few_images(tmp_path: Path) -> None:
    make(tmp_path / "divided")
    with pytest.raises(ValueError, match=r"held_out must be fewer than the 40 training images in .*divided, got 40"):
        open_small(tmp_path / "divided", held_out=40)
    with pytest.raises(ValueError, match="held_out must be at least 1, got 0"):
        open_small(tmp_path / "divided", held_out=0)
    with pytest.raises(ValueError, match=r"no image of '(ant|bee)' is left to train on; add images or hold out fewer"):
        open_small(tmp_path / "divided", held_out=39)
    for index in range(4):
        paint(tmp_path / "whole" / f"class{index % 2}" / f"{index}.png", index)
    with pytest.raises(ValueError, match=r"4 images are too few to divide, none falls to the part '(test|held_out)'"):
        open_small(tmp_path / "whole")
    with pytest.raises(ValueError, match=r"held_out must be fewer than the . training images"):
        open_small(tmp_path / "whole", held_out=4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"crop_size": 0}, "crop_size must be at least 1, got 0"),
        ({"crop_size": 8, "resize": 7}, "resize must be at least 8, got 7"),
        ({"workers": -1}, "workers must be at least 0, got -1"),
        ({"colour_jitter": 2}, "colour_jitter must be at least 0 and at most 1, got 2"),
        ({"unreadable": "ignore"}, "unreadable must be one of fatal, skip; got 'ignore'"),
    ],
)
def test_options(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_small(make(tmp_path), **options)  # type: ignore[arg-type]


def test_batch_sizes(tmp_path: Path) -> None:
    data = open_small(make(tmp_path))
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        data.batches("test", 0)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got -1"):
        data.training_batches(Epoch(-1, seed=0, number=0))
    with pytest.raises(ValueError, match="batch_size must be a multiple of the 2 processes, got 5"):
        data.training_batches(Epoch(5, seed=0, number=0, shard=Shard(0, 2)))
    assert list(data.training_batches(Epoch(1000, seed=0, number=0))) == []


# Batches


def test_batches_do_not_depend_on_workers_or_on_what_was_asked_before(photos: Path) -> None:
    alone, helped = (open_small(photos, workers=workers, colour_jitter=0.4) for workers in (0, 2))
    for epoch in (0, 1):
        expected = list(alone.training_batches(Epoch(4, seed=5, number=epoch)))
        assert len(expected) == 5
        assert same(expected, helped.training_batches(Epoch(4, seed=5, number=epoch)))
        assert same(expected[3:], alone.training_batches(Epoch(4, seed=5, number=epoch, first=3)))
        assert same(expected[2:], helped.training_batches(Epoch(4, seed=5, number=epoch, first=2)))
    assert same(alone.batches("test", 3), helped.batches("test", 3))
    assert not same(
        alone.training_batches(Epoch(4, seed=5, number=0)), alone.training_batches(Epoch(4, seed=5, number=1))
    )
    assert not same(
        alone.training_batches(Epoch(4, seed=5, number=0)), alone.training_batches(Epoch(4, seed=6, number=0))
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_torchs_own_random_numbers_are_the_callers(photos: Path, workers: int) -> None:
    data = open_small(photos, workers=workers)
    before = torch.get_rng_state()
    list(data.training_batches(Epoch(8, seed=0, number=0)))
    list(data.batches("test", 8))
    assert torch.equal(torch.get_rng_state(), before)


def test_each_process_takes_its_share(photos: Path) -> None:
    data = open_small(photos)
    shares = zip(
        *(data.training_batches(Epoch(6, seed=0, number=0, shard=Shard(rank, 2))) for rank in (0, 1)), strict=True
    )
    joined = [Batch(torch.cat([a.images, b.images]), torch.cat([a.labels, b.labels])) for a, b in shares]
    assert same(joined, data.training_batches(Epoch(6, seed=0, number=0)))


def test_training_images_are_augmented_and_the_others_never(photos: Path) -> None:
    data = open_small(photos)
    for part in PARTS:
        assert same(data.batches(part, 4), data.batches(part, 4))
    held_out = torch.cat([batch.images for batch in data.batches("held_out", 1)])
    plain = v2.Compose([v2.Resize(9), v2.CenterCrop(8), v2.PILToTensor()])
    expected = torch.stack([plain(Image.open(photos / path).convert("RGB")) for path in data.paths("held_out")])
    assert (pixels(data, held_out).int() - expected).abs().max() <= 1, "but for rounding"
    as_it_is = {image.numpy().tobytes() for batch in data.batches("train", 4) for image in batch.images}
    augmented = [
        image.numpy().tobytes() for batch in data.training_batches(Epoch(4, seed=0, number=0)) for image in batch.images
    ]
    assert not as_it_is & set(augmented)


def test_another_seed_augments_differently_whatever_the_order(photos: Path) -> None:
    data = open_small(photos)
    made = []
    for seed in (0, 1):
        batches = data.training_batches(Epoch(4, seed=seed, number=0))
        made.append({image.numpy().tobytes() for batch in batches for image in batch.images})
    assert not made[0] & made[1]


def test_half_of_the_training_images_are_mirrored_and_all_are_cropped(tmp_path: Path) -> None:
    ramp = torch.arange(0, 256, 4, dtype=torch.uint8).expand(3, 64, 64)  # left dark, right bright
    for index in range(100):
        path = tmp_path / ("train", "val")[index < 4] / f"class{index % 2}" / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        v2.functional.to_pil_image(ramp).save(path)
    data = open_small(tmp_path)
    (batch,) = data.training_batches(Epoch(data.size("train"), seed=0, number=0))
    slopes = batch.images[:, 0, 0, -1] - batch.images[:, 0, 0, 0]
    assert 30 <= int((slopes < 0).sum()) <= 56
    assert len(set(slopes.abs().tolist())) > 50


def test_batches_are_normalised_and_channels_last(photos: Path) -> None:
    data = open_small(photos, workers=1)
    batches = list(data.batches("train", 20))
    assert [tuple(batch.images.shape) for batch in batches] == [(20, 3, 8, 8), (2, 3, 8, 8)]
    for images, labels in batches:
        assert (images.dtype, labels.dtype) == (torch.float32, torch.int64)
        assert images.is_contiguous(memory_format=torch.channels_last)
    assert batches[0].labels.tolist() == [0] * 11 + [1] * 9


def test_workers_are_kept_from_epoch_to_epoch(photos: Path) -> None:
    data = open_small(photos, workers=2)
    list(data.training_batches(Epoch(4, seed=0, number=0)))
    children = {child.pid for child in multiprocessing.active_children()}
    list(data.batches("held_out", 4))
    list(data.training_batches(Epoch(4, seed=0, number=1)))
    assert {child.pid for child in multiprocessing.active_children()} == children
    assert len(children) == 2
    # A Ctrl-C is sent to the group of the main process, which is then no longer theirs.
    assert os.getpgrp() not in {os.getpgid(child) for child in children if child}
    del data
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("error", [ConnectionResetError, ConnectionRefusedError, EOFError, FileNotFoundError])
def test_a_worker_that_ends_while_it_sends_a_batch_is_told_like_any_other(
    error: type[Exception], photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(DataLoader[Any]):
        def __iter__(self) -> Any:
            yield from itertools.islice(super().__iter__(), 1)
            raise error("the other side is gone")

    monkeypatch.setattr("msdnet.data.folder.DataLoader", Broken)
    monkeypatch.setattr("msdnet.data.folder.PATIENCE", 0)
    batches = open_small(photos).training_batches(Epoch(4, seed=0, number=0))
    assert len(next(batches).labels) == 4
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \({error.__name__}.*gone.* exited unexpectedly"):
        next(batches)


def test_batches_in_turn_and_broken_off_do_not_mix(photos: Path) -> None:
    data = open_small(photos, workers=1)
    expected = {part: list(data.batches(part, 2)) for part in PARTS}
    broken = data.training_batches(Epoch(4, seed=0, number=0))
    next(broken)
    del broken
    turns = list(zip(data.batches("held_out", 2), data.batches("test", 2), strict=False))
    assert same([a for a, _ in turns], expected["held_out"][: len(turns)])
    assert same([b for _, b in turns], expected["test"][: len(turns)])
    assert same(data.batches("train", 2), expected["train"])


def test_a_worker_can_be_started_without_fork(photos: Path) -> None:
    data = open_small(photos, colour_jitter=0.3)
    reader = pickle.loads(pickle.dumps(data._reader))
    sample = data._sample("train", 0, seed=3)
    assert torch.equal(reader[[sample]].images, data._reader[[sample]].images)


# One image


def read(tmp_path: Path, image: Image.Image, name: str, **saving: Any) -> Tensor:
    """The bytes (3, 8, 8) that come of an image in a file."""
    root = make(tmp_path)
    for path in (root / "val/ant").iterdir():
        path.unlink()
    image.save(root / "val/ant" / name, **saving)
    data = open_small(root)
    return pixels(data, next(data.batches("test", 1)).images)[0]


@pytest.mark.parametrize(("mode", "name"), [("L", "a.png"), ("P", "a.png"), ("1", "a.bmp"), ("RGBA", "a.webp")])
def test_modes_become_rgb(tmp_path: Path, mode: str, name: str) -> None:
    image = texture((9, 9)).convert(mode)
    saving = {"lossless": True} if name.endswith("webp") else {}
    expected = v2.functional.pil_to_tensor(image.convert("RGB"))[:, 0:8, 0:8]
    assert torch.equal(read(tmp_path, image, name, **saving), expected)


def test_cmyk_and_transparent_palettes(tmp_path: Path) -> None:
    image = Image.new("CMYK", (9, 9), (255, 0, 0, 0))
    assert read(tmp_path, image, "a.jpg").float().mean(dim=(1, 2)).tolist() == pytest.approx([0, 255, 255], abs=3)
    palette = Image.new("RGB", (9, 9), (10, 200, 30)).quantize(4)
    assert read(tmp_path, palette, "a.png", transparency=b"\0\1")[:, 0, 0].tolist() == [10, 200, 30]


def test_sixteen_bits_are_scaled_not_cut_off(tmp_path: Path) -> None:
    image = Image.new("I;16", (9, 9), 0x8123)
    assert set(read(tmp_path, image, "a.png").flatten().tolist()) == {0x81}


def test_photos_are_turned_upright(tmp_path: Path) -> None:
    upright, exif = texture((96, 80)), Image.Exif()
    exif[0x0112] = 6  # the camera was held on its side
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "turned.png", exif=exif)
    box = centre(upright.size, 10, 8)
    with Image.open(tmp_path / "turned.png") as image:
        turned = cropped(image, centre(image.size, 10, 8), 8)
    assert difference(turned, cropped(upright, box, 8)).max() <= 1


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data:UserWarning:PIL.TiffImagePlugin")
@pytest.mark.parametrize(
    "exif", [b"Exif\0\0garbage", b"Exif\0\0II*\0\xff\0\0\0", b"Exif\0\0MM\0*\0\0\0\x08\0\x09\x01\x12"]
)
def test_broken_metadata_do_not_matter(tmp_path: Path, exif: bytes) -> None:
    grey = Image.new("RGB", (9, 9), (77, 77, 77))
    assert set(read(tmp_path, grey, "a.jpg", exif=exif).flatten().tolist()) == {77}


def difference(image: Image.Image, other: Image.Image) -> Tensor:
    one, two = (torch.tensor(list(each.tobytes())).float() for each in (image, other))
    return (one - two).abs()


@pytest.mark.parametrize("size", [(64, 64), (90, 61), (47, 120), (8, 8), (5, 300), (21, 20)])
@pytest.mark.parametrize(("resize", "side"), [(32, 28), (9, 8), (16, 16), (35, 8)])
def test_the_test_crop_is_that_of_torchvision(size: tuple[int, int], resize: int, side: int) -> None:
    image = texture(size)
    ours = cropped(image, centre(size, resize, side), side)
    theirs = v2.CenterCrop(side)(v2.Resize(resize)(image))
    assert difference(ours, theirs).max() <= 1, "but for rounding"


def test_large_jpegs_are_decoded_small_and_look_the_same(tmp_path: Path) -> None:
    texture((1203, 801)).save(tmp_path / "large.jpg", quality=95)
    box = centre((1203, 801), 72, 64)
    with Image.open(tmp_path / "large.jpg") as image:
        ours = cropped(image, box, 64)
        assert image.size == (301, 201)
    with Image.open(tmp_path / "large.jpg") as image:
        theirs = v2.CenterCrop(64)(v2.Resize(72)(image))
    assert difference(ours, theirs).mean() < 1


# Unreadable images


def spoil(root: Path) -> dict[str, str]:
    """Four broken files among the training images: their names, and what is wrong with them."""
    texture((64, 64)).save(root / "train/ant/000.jpg")
    (root / "train/ant/000.png").unlink()
    whole = (root / "train/ant/000.jpg").read_bytes()
    (root / "train/ant/000.jpg").write_bytes(whole[: len(whole) // 2])
    (root / "train/ant/001.png").write_bytes(b"")
    (root / "train/ant/002.png").write_text("no image")
    (root / "train/ant/003.png").unlink()
    (root / "train/ant/003.png").symlink_to(root / "gone.png")
    return {"000.jpg": "truncated", "001.png": "not an image", "002.png": "not an image", "003.png": "No such file"}


@pytest.mark.parametrize("workers", [0, 2])
def test_an_unreadable_image_is_named_and_ends_the_run(tmp_path: Path, workers: int) -> None:
    spoil(make(tmp_path))
    data = open_small(tmp_path, workers=workers, held_out=1)
    with pytest.raises(ValueError, match=r"^unreadable image .*/train/ant/00\d\.\w+: (.*) \(--skip-unreadable"):
        list(data.training_batches(Epoch(13, seed=0, number=0)))


@pytest.mark.parametrize("workers", [0, 2])
def test_unreadable_images_are_named_once_and_skipped(tmp_path: Path, workers: int) -> None:
    reasons = spoil(make(tmp_path))
    data = open_small(tmp_path, workers=workers, held_out=1, held_out_seed=1, unreadable="skip")
    assert data.held_out_indices[0] > 3
    with pytest.warns(UserWarning, match="unreadable image") as caught:
        batches = list(data.training_batches(Epoch(13, seed=0, number=0)))
    texts = [str(warning.message) for warning in caught]  # torch may have some of its own
    said = sorted(text.partition("/train/ant/")[2] for text in texts if "unreadable image" in text)
    assert len(said) == 4
    assert all(name in text and reason in text for text, (name, reason) in zip(said, reasons.items(), strict=True))
    for images, labels in batches:  # a readable image stands in, so that no average is disturbed
        readable = images[labels != UNREADABLE]
        assert all((readable == stand_in).flatten(1).all(dim=1).any() for stand_in in images[labels == UNREADABLE])
    assert sum(int((batch.labels == UNREADABLE).sum()) for batch in batches) == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = list(data.training_batches(Epoch(13, seed=0, number=1)))
    assert sum(int((batch.labels == UNREADABLE).sum()) for batch in again) == 4


@pytest.mark.parametrize("limit", [100, 50])  # where Pillow warns of 120 pixels, and where it refuses them
def test_a_decompression_bomb_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    data = open_small(make(tmp_path))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(ValueError, match=rf"val/ant/000.png: more than {limit} pixels"):
        next(data.batches("test", 4))
