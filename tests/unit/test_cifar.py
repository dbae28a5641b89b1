"""Reading CIFAR's binary layout, and augmenting it, on small files written here."""

import dataclasses
import hashlib
import http.server
import shutil
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
import pytest
import torch
from rich.live import Live

import msdnet
from msdnet.bundle import ImageSpec
from msdnet.data import DataConfig, Epoch, Shard, open_data
from msdnet.data.cifar import PADDING, CifarData
from msdnet.data.download import fetch_cifar
from msdnet.evaluation import evaluate
from msdnet.export import export_network
from msdnet.files import CIFAR, CifarLayout, dataset_at, fingerprint, hold_out, open_labelled
from msdnet.networks import create_network
from tests.helpers import TINY

TRAIN, TEST = 40, 10


@pytest.fixture(params=["cifar10", "cifar100"])
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CifarLayout:
    """A real layout, but with files of a few records."""
    real = CIFAR[request.param]
    small = dataclasses.replace(real, records_per_file=(TRAIN // len(real.train_files), TEST))
    monkeypatch.setitem(CIFAR._entries, "small", small)
    return small


@pytest.fixture
def root(layout: CifarLayout, tmp_path: Path) -> Path:
    """Image i of the training set is all i, its label i % 5; test images are all 200."""
    folder = tmp_path / layout.folder
    folder.mkdir()
    (folder / layout.names_file).write_text("a\nb\nc\nd\ne\n\n")
    values = torch.arange(TRAIN).chunk(len(layout.train_files))
    for name, chunk in zip(layout.train_files, values, strict=True):
        write_records(folder / name, layout, chunk, chunk % 5)
    write_records(folder / layout.test_files[0], layout, torch.full((TEST,), 200), torch.arange(TEST) % 5)
    return tmp_path


def write_records(path: Path, layout: CifarLayout, values: torch.Tensor, labels: torch.Tensor) -> None:
    records = values[:, None].repeat(1, layout.record_bytes).to(torch.uint8)
    records[:, 0] = 99  # the coarse label of CIFAR-100, which must not be taken for the fine one
    records[:, layout.label_bytes - 1] = labels
    records.numpy().tofile(path)


def open_small(root: Path, **options: int) -> CifarData:
    return CifarData("small", root, **({"held_out": 8} | options))  # type: ignore[arg-type]


def pixel_values(data: CifarData, images: torch.Tensor) -> list[int]:
    """What the middle of each image was before it was normalised."""
    middle = images[:, 0, 16, 16] * data.normalisation.std[0] + data.normalisation.mean[0]
    return [round(float(value) * 255) for value in middle]


def test_parts_are_apart_and_labels_are_right(root: Path) -> None:
    data = open_small(root)
    seen = {}
    for part in ("train", "held_out"):
        batches = list(data.batches(part, 7))
        seen[part] = [value for batch in batches for value in pixel_values(data, batch.images)]
        assert [value % 5 for value in seen[part]] == torch.cat([batch.labels for batch in batches]).tolist()
    assert sorted(seen["train"] + seen["held_out"]) == list(range(TRAIN))
    assert tuple(seen["held_out"]) == data.held_out_indices
    (test,) = data.batches("test", 100)
    assert set(pixel_values(data, test.images)) == {200}
    assert data.classes == ("a", "b", "c", "d", "e")
    assert (data.size("train"), data.size("held_out"), data.size("test")) == (32, 8, 10)


def test_held_out_images_come_in_the_order_of_a_bundles_records(root: Path, tmp_path: Path) -> None:
    """So that what one makes of an image can be put beside what the exits made of it."""
    data = open_small(root)
    network = create_network(TINY, classes=5)
    spec = ImageSpec(side=32, resize=32, mean=data.normalisation.mean, std=data.normalisation.std)
    held_out = data.batches("held_out", 3)
    bundle = export_network(
        network, tmp_path / "bundle", name="small", classes=data.classes, images=spec, held_out=held_out
    )
    model = msdnet.load(bundle.folder, threads=1)
    images = open_labelled(root, "small", part="held_out", held_out=8, classes=model.classes)
    assert images.held_out == fingerprint(data.held_out_indices)
    found = evaluate(model, images)
    assert len(set(found.confidence[:, -1].round(4).tolist())) == 8, "or else the order could not be told"
    np.testing.assert_allclose(found.confidence, model.held_out("largest"), atol=1e-5)
    np.testing.assert_array_equal(found.correct, model.held_out("correct"))


def test_training_never_opens_the_test_files(root: Path, layout: CifarLayout) -> None:
    (root / layout.folder / layout.test_files[0]).unlink()
    data = open_small(root)
    assert sum(len(batch.labels) for batch in data.training_batches(Epoch(8, seed=0, number=0))) == 32
    with pytest.raises(FileNotFoundError, match=layout.test_files[0]):
        data.size("test")


def test_an_epoch_shows_every_training_image_once(root: Path) -> None:
    data = open_small(root)
    values = [
        v for batch in data.training_batches(Epoch(8, seed=3, number=2)) for v in pixel_values(data, batch.images)
    ]
    assert sorted(values) == sorted(set(range(TRAIN)) - set(data.held_out_indices))


def test_batches_depend_on_seed_and_epoch_and_can_be_taken_up_midway(root: Path) -> None:
    data = open_small(root)
    whole = list(data.training_batches(Epoch(8, seed=3, number=2)))
    list(data.training_batches(Epoch(8, seed=9, number=9)))
    again = list(data.training_batches(Epoch(8, seed=3, number=2, first=2)))
    assert all(torch.equal(a.images, b.images) for a, b in zip(whole[2:], again, strict=True))
    for seed, epoch in ((3, 3), (4, 2)):
        other = next(data.training_batches(Epoch(8, seed=seed, number=epoch)))
        assert not torch.equal(whole[0].images, other.images)


def test_processes_share_every_batch(root: Path) -> None:
    data = open_small(root)
    whole = next(data.training_batches(Epoch(8, seed=0, number=0))).images
    shares = [next(data.training_batches(Epoch(8, seed=0, number=0, shard=Shard(rank, 2)))).images for rank in (0, 1)]
    assert torch.equal(whole, torch.cat(shares))
    with pytest.raises(ValueError, match="batch_size must be a multiple of the 3 processes, got 8"):
        next(data.training_batches(Epoch(8, seed=0, number=0, shard=Shard(0, 3))))


def test_crops_are_pad_shift_and_mirror(root: Path) -> None:
    """Against a crop of one image by hand, for every corner and flip."""
    data = open_small(root)
    data._padded[0, PADDING:-PADDING, PADDING:-PADDING] = torch.randint(0, 256, (32, 32, 3), dtype=torch.uint8)
    data.normalisation = dataclasses.replace(data.normalisation, mean=(0.0,) * 3, std=(1 / 255,) * 3)
    for top, left, flip in ((0, 0, 0), (8, 3, 0), (4, 4, 1), (1, 8, 1)):
        cropped = data._crop(torch.tensor([[0, top, left, flip]]))[0]
        expected = data._padded[0, top : top + 32, left : left + 32].permute(2, 0, 1).float()
        torch.testing.assert_close(cropped, expected.flip(2) if flip else expected)
    assert data._crop(torch.zeros(2, 4, dtype=torch.long)).is_contiguous(memory_format=torch.channels_last)


def test_augmentation_covers_all_corners_and_both_sides(root: Path) -> None:
    data = open_small(root)
    ramp = torch.arange(32 * 32, dtype=torch.int64).view(32, 32)
    data._padded[:, PADDING:-PADDING, PADDING:-PADDING] = ((ramp * 7) % 251)[None, :, :, None].to(torch.uint8)
    seen = {
        tuple(batch.images[i, 0, 12, 12:16].tolist())
        for e in range(60)
        for batch in data.training_batches(Epoch(8, seed=0, number=e))
        for i in range(8)
    }
    assert len(seen) > 0.9 * 2 * (2 * PADDING + 1) ** 2


def test_a_subset_leaves_the_held_out_images_as_they_are(root: Path) -> None:
    data = open_small(root, subset=10)
    assert (data.size("train"), data.size("held_out")) == (10, 8)
    whole = open_small(root)
    assert data.held_out_indices == whole.held_out_indices
    assert torch.equal(data._labels["train"], whole._labels["train"][:10]), "the first, as the config's docstring says"


def test_held_out_images_are_the_same_everywhere() -> None:
    assert hold_out(50_000, 5_000, seed=0)[:5] == EXPECTED_HELD_OUT
    assert len(set(hold_out(50_000, 5_000, seed=0)) & set(hold_out(50_000, 5_000, seed=1))) < 700


EXPECTED_HELD_OUT = (10, 16, 31, 39, 46)


@pytest.mark.parametrize(
    ("count", "message"), [(0, "at least 1"), (40, "fewer than the 40 training images"), (41, "fewer than the 40")]
)
def test_held_out_must_leave_something_to_train_on(root: Path, count: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"held_out must be {message}.*, got {count}"):
        open_small(root, held_out=count)


def test_root_may_be_the_folder_itself_or_the_environment(
    root: Path, layout: CifarLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_small(root / layout.folder).size("train") == 32
    monkeypatch.setenv("MSDNET_DATA", str(root))
    assert CifarData("small", held_out=8).size("train") == 32


def test_missing_and_truncated_files_are_named(root: Path, layout: CifarLayout) -> None:
    path = root / layout.folder / layout.train_files[0]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=f"{path}: .* bytes where .* records take .*: truncated, or another file"):
        open_small(root)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=f"{path}: missing"):
        open_small(root)
    with pytest.raises(FileNotFoundError, match="official binary layout"):
        open_small(root / "elsewhere")


def test_labels_beyond_the_classes_are_refused(root: Path, layout: CifarLayout) -> None:
    (root / layout.folder / layout.names_file).write_text("a\nb\n")
    with pytest.raises(ValueError, match="label 4 where there are 2 classes"):
        open_small(root)


def test_the_kind_of_data_is_seen_from_its_files(root: Path, layout: CifarLayout, tmp_path: Path) -> None:
    del CIFAR._entries["small"]
    for file in layout.train_files:  # a missing file is no reason to take it for something else
        (root / layout.folder / file).unlink()
    for place in (root, root / layout.folder):
        assert CIFAR[dataset_at(place)].folder == layout.folder
    (tmp_path / "photos").mkdir()
    assert dataset_at(tmp_path / "photos") == "folder"
    for name in ("cifar10", "cifar100"):
        (root / CIFAR[name].folder).mkdir(exist_ok=True)
    for classes in (None, ["neither", "of", "them"]):
        for name in ("cifar10", "cifar100"):
            (root / CIFAR[name].folder / CIFAR[name].names_file).write_text(f"a\n{name}\n")
        with pytest.raises(ValueError, match="holds cifar10 and cifar100; say which by --dataset"):
            dataset_at(root, classes)
    assert dataset_at(root, ["a", "cifar10"]) == "cifar10", "those that a model knows decide"


@pytest.mark.parametrize("dataset", ["folder", "small"])
def test_the_release_for_python_is_told_from_the_one_that_is_read(
    layout: CifarLayout, tmp_path: Path, dataset: str
) -> None:
    folder = tmp_path / layout.python_folder
    folder.mkdir()
    for name in (*layout.train_files, *layout.test_files):
        (folder / name.removesuffix(".bin")).touch()
    message = f"{folder}: CIFAR's release for Python, .* binary release, {layout.folder}/, is: {layout.url}"
    for place in (tmp_path, folder):
        with pytest.raises(ValueError, match=message):
            open_data(DataConfig(dataset=dataset, root=str(place)))
        with pytest.raises(ValueError, match=message):
            open_labelled(place, dataset)


def test_a_folder_of_images_may_be_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no folder of images is named"):
        DataConfig(dataset="folder")
    monkeypatch.setenv("MSDNET_DATA", str(tmp_path))
    assert DataConfig(dataset="folder").found().root == str(tmp_path)


@pytest.fixture
def server(root: Path, layout: CifarLayout) -> Iterator[CifarLayout]:
    """The layout with the address and checksum of an archive served from this machine."""
    pytest.importorskip("pooch")
    archive = root / "cifar.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(root / layout.folder, arcname=layout.folder)
    handler = partial(_Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        md5 = hashlib.md5(archive.read_bytes(), usedforsecurity=False).hexdigest()
        yield dataclasses.replace(layout, url=f"http://127.0.0.1:{running.server_port}/cifar.tar.gz", md5=md5)
        running.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_download_is_checked_and_unpacked_once(server: CifarLayout, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    folder = fetch_cifar(server, cache)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [server.names_file, *server.train_files, *server.test_files]
    )
    unreachable = dataclasses.replace(server, url="http://127.0.0.1:1/")
    assert fetch_cifar(unreachable, cache) == folder


def test_a_failed_download_says_what_else_would_do(server: CifarLayout, tmp_path: Path) -> None:
    unreachable = dataclasses.replace(server, url="http://127.0.0.1:1/cifar.tar.gz")
    with pytest.raises(OSError, match=r"cannot be downloaded \(ConnectionError\); --data or MSDNET_DATA may name"):
        fetch_cifar(unreachable, tmp_path / "cache")


def test_a_cache_that_cannot_be_written_to_is_not_called_a_failed_download(
    server: CifarLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("Pooch could not write")

    monkeypatch.setattr("pooch.retrieve", refuse)
    with pytest.raises(OSError, match=r"go to .*cache \(XDG_CACHE_HOME\), which cannot be written to; --data"):
        fetch_cifar(server, tmp_path / "cache")


def test_a_download_that_breaks_off_gives_the_terminal_back(
    server: CifarLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A display that goes on would hide the cursor, and write over what is told next."""
    shown, start = [], Live.start

    def noted(live: Live, refresh: bool = False) -> None:
        shown.append(live)
        start(live, refresh)

    monkeypatch.setattr(Live, "start", noted)
    monkeypatch.setattr(_Quiet, "copyfile", lambda _, source, target: target.write(source.read(100)))
    with pytest.raises(OSError, match="cannot be downloaded"):
        fetch_cifar(server, tmp_path / "cache")
    assert [live.is_started for live in shown] == [False]


def test_a_download_with_another_checksum_is_never_used(server: CifarLayout, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(ValueError, match="hash"):
        fetch_cifar(dataclasses.replace(server, md5="0" * 32), cache)
    assert not (cache / server.folder).exists()


def test_a_folder_that_lacks_a_file_is_unpacked_anew(server: CifarLayout, tmp_path: Path) -> None:
    folder = fetch_cifar(server, tmp_path / "cache")
    (folder / server.test_files[0]).unlink()
    assert fetch_cifar(server, tmp_path / "cache") == folder
    assert (folder / server.test_files[0]).is_file()


@pytest.mark.parametrize("whole", [True, False])
def test_what_another_process_has_unpacked_meanwhile_stays(
    server: CifarLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """It may be reading it; but a part of one is of no use to anybody."""
    cache, copy = tmp_path / "cache", shutil.copyfileobj
    folder = cache / server.folder

    def disturbed(source: IO[bytes], target: IO[bytes]) -> None:
        copy(source, target)
        if not folder.exists():
            folder.mkdir()
            names = [server.names_file, *server.train_files, *server.test_files] if whole else [server.names_file]
            for name in names:
                (folder / name).write_text("another process's")

    monkeypatch.setattr(shutil, "copyfileobj", disturbed)
    assert fetch_cifar(server, cache) == folder
    assert ((folder / server.names_file).read_text() == "another process's") == whole
    assert (folder / server.test_files[0]).is_file()
    assert {path.name for path in cache.iterdir() if path.is_dir()} == {server.folder}


def test_of_two_that_unpack_at_the_same_moment_both_succeed(
    server: CifarLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, left = Path.rename, [lambda: fetch_cifar(server, tmp_path / "cache")]

    def disturbed(path: Path, target: Path) -> Path:
        if left:
            left.pop()()
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", disturbed)
    folder = fetch_cifar(server, tmp_path / "cache")
    assert not left
    assert (folder / server.test_files[0]).is_file()
