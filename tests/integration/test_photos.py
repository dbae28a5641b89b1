"""The folder pipeline on 1,300 real photos of ten classes, a few of them grey."""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
import torch
from torchvision import datasets  # type: ignore[import-untyped]
from torchvision.transforms import v2  # type: ignore[import-untyped]

from msdnet.data.base import UNREADABLE
from msdnet.data.folder import FolderData

PHOTOS = Path(os.environ.get("MSDNET_PHOTOS") or Path(__file__).parents[3] / "shared/data/photos")

pytestmark = [
    pytest.mark.skipif(not PHOTOS.is_dir(), reason=f"no photos at {PHOTOS}; MSDNET_PHOTOS may name another folder"),
    # Python 3.12 and newer warn of every fork beside threads, and torch always has some.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def test_all_photos_are_found_and_a_tenth_of_the_training_photos_is_held_out() -> None:
    data = FolderData(PHOTOS)
    assert len(data.classes) == 10
    assert (data.size("train"), data.size("held_out"), data.size("test")) == (810, 90, 400)
    assert min(Counter(path.split("/")[1] for path in data.paths("train")).values()) > 60


def test_test_photos_are_those_of_torchvision() -> None:
    plain = v2.Compose(
        [
            v2.Resize(256),
            v2.CenterCrop(224),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(FolderData.normalisation.mean, FolderData.normalisation.std),
        ]
    )
    theirs = datasets.ImageFolder(PHOTOS / "val", plain)
    seen = 0
    for images, labels in FolderData(PHOTOS, workers=2).batches("test", 50):
        assert (labels != UNREADABLE).all()
        image, label = theirs[seen]
        # One level of 255 at most: ours resizes and crops at once.
        assert (images[0] - image).abs().max() < 1.01 / 255 / 0.224
        assert labels[0] == label
        seen += len(labels)
    assert seen == 400


def test_an_epoch_is_the_same_with_and_without_workers() -> None:
    alone, helped = (FolderData(PHOTOS, workers=workers, crop_size=96, subset=128) for workers in (0, 2))
    batches = [list(data.training_batches(32, seed=1, epoch=2)) for data in (alone, helped)]
    assert len(batches[0]) == len(batches[1]) == 4
    for one, other in zip(*batches, strict=True):
        assert torch.equal(one.images, other.images)
        assert torch.equal(one.labels, other.labels)
    images = torch.cat([batch.images for batch in batches[0]])
    assert images.mean().abs() < 0.3, "photos are what the normalisation was made for"
    assert 0.8 < images.std() < 1.3


def test_one_folder_of_photos_is_divided(tmp_path: Path) -> None:
    shutil.copytree(PHOTOS / "val", tmp_path / "photos")
    data = FolderData(tmp_path / "photos", crop_size=32)
    assert data.size("train") + data.size("held_out") + data.size("test") == 400
    assert 25 <= data.size("test") <= 55
    assert 22 <= data.size("held_out") <= 50


def test_a_truncated_photo_is_skipped(tmp_path: Path) -> None:
    for part in ("train", "val"):
        for name in ("church", "tench"):
            source, target = PHOTOS / part / name, tmp_path / part / name
            target.mkdir(parents=True)
            for path in sorted(source.iterdir())[:10]:
                shutil.copy(path, target)
    cut = sorted((tmp_path / "val/church").iterdir())[3]
    cut.write_bytes(cut.read_bytes()[:2000])
    data = FolderData(tmp_path, workers=1, unreadable="skip")
    with pytest.warns(UserWarning, match=f"unreadable image {cut}: .*truncated"):
        (batch,) = data.batches("test", 20)
    assert (batch.labels == UNREADABLE).nonzero().flatten().tolist() == [3]
