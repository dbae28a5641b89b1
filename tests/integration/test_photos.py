"""The folder pipeline on 1,300 real photos of ten classes, a few of them grey."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from torchvision import datasets
from torchvision.transforms import v2

from msdnet import MSDNetConfig
from msdnet.data.base import UNREADABLE, Epoch
from msdnet.data.folder import FolderData

# Python 3.12 and newer warn of every fork beside threads, and torch always has some.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def test_all_photos_are_found_and_a_tenth_of_the_training_photos_is_held_out(photos: Path) -> None:
    data = FolderData(photos)
    assert len(data.classes) == 10
    assert (data.size("train"), data.size("held_out"), data.size("test")) == (810, 90, 400)
    assert min(Counter(path.split("/")[1] for path in data.paths("train")).values()) > 60


def test_test_photos_are_those_of_torchvision(photos: Path) -> None:
    plain = v2.Compose(
        [
            v2.Resize(256),
            v2.CenterCrop(224),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(FolderData.normalisation.mean, FolderData.normalisation.std),
        ]
    )
    theirs = datasets.ImageFolder(photos / "val", plain)
    seen = 0
    for images, labels in FolderData(photos, workers=2).batches("test", 50):
        assert (labels != UNREADABLE).all()
        image, label = theirs[seen]
        # One level of 255 at most: ours resizes and crops at once.
        assert (images[0] - image).abs().max() < 1.01 / 255 / 0.224
        assert labels[0] == label
        seen += len(labels)
    assert seen == 400


def test_an_epoch_is_the_same_with_and_without_workers(photos: Path) -> None:
    alone, helped = (FolderData(photos, workers=workers, crop_size=96, subset=128) for workers in (0, 2))
    batches = [list(data.training_batches(Epoch(32, seed=1, number=2))) for data in (alone, helped)]
    assert len(batches[0]) == len(batches[1]) == 4
    for one, other in zip(*batches, strict=True):
        assert torch.equal(one.images, other.images)
        assert torch.equal(one.labels, other.labels)
    images = torch.cat([batch.images for batch in batches[0]])
    assert images.mean().abs() < 0.3, "photos are what the normalisation was made for"
    assert 0.8 < images.std() < 1.3


def test_one_folder_of_photos_is_divided(photos: Path, tmp_path: Path) -> None:
    shutil.copytree(photos / "val", tmp_path / "photos")
    data = FolderData(tmp_path / "photos", crop_size=32)
    assert data.size("train") + data.size("held_out") + data.size("test") == 400
    assert 25 <= data.size("test") <= 55
    assert 22 <= data.size("held_out") <= 50


def test_a_truncated_photo_is_skipped(photos: Path, tmp_path: Path) -> None:
    for part in ("train", "val"):
        for name in ("church", "tench"):
            source, target = photos / part / name, tmp_path / part / name
            target.mkdir(parents=True)
            for path in sorted(source.iterdir())[:10]:
                shutil.copy(path, target)
    cut = sorted((tmp_path / "val/church").iterdir())[3]
    cut.write_bytes(cut.read_bytes()[:2000])
    data = FolderData(tmp_path, workers=1, unreadable="skip")
    with pytest.warns(UserWarning, match=f"unreadable image {cut}: .*truncated"):
        (batch,) = data.batches("test", 20)
    assert (batch.labels == UNREADABLE).nonzero().flatten().tolist() == [3]


def test_the_command_line_trains_on_photos(photos: Path, tmp_path: Path) -> None:
    """One epoch of few photos with a small network: the whole way, with worker processes and the ImageNet stem."""
    config = MSDNetConfig(exits=(1, 2, 3), stem="imagenet", seed_channels=8, growth=8, head_width=32)
    (tmp_path / "small.json").write_text(config.to_json())
    options = ["--data", photos, "--network", tmp_path / "small.json", "--image-size", "96", "--subset", "128"]
    sizes = ["--epochs", "1", "--batch-size", "16", "--workers", "2", "--device", "cpu", "--out", tmp_path / "run"]
    command = [sys.executable, "-m", "msdnet", "train", "paper_imagenet", *options, *sizes, "--test"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    assert "epoch 1/1" in done.stdout
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert len(summary["test_accuracy"]) == 3
    facts = json.loads((tmp_path / "run/run.json").read_text())
    assert facts["images"]["classes"][0] == "cassette_player"
    assert facts["images"]["held_out"] == 90
