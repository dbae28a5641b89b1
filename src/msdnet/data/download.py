"""Fetching the CIFAR archives once, checked against their published checksums.

Uses pooch, which downloads to a temporary file, compares the checksum and only then keeps it: a broken
download is started again and never used. Needs the extra `train`.
"""

import shutil
import tarfile
import tempfile
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msdnet.files import download_folder
from msdnet.writing import new_folder

if TYPE_CHECKING:
    from msdnet.files import CifarLayout

__all__ = ["fetch_cifar"]


def fetch_cifar(layout: "CifarLayout", cache: Path | None = None) -> Path:
    """The folder of a CIFAR release, downloaded and unpacked if it is not there yet."""
    import pooch

    cache = cache or download_folder()
    if cache is None:
        raise ValueError(
            f"there is no home to download to; --data or MSDNET_DATA may name a folder with {layout.folder}/"
        )
    folder = cache / layout.folder
    if _is_complete(folder, layout):
        return folder
    try:
        with closing(_Progress()) as shown:  # pooch leaves it open where the download breaks off
            archive = pooch.retrieve(layout.url, known_hash=f"md5:{layout.md5}", path=cache, progressbar=shown)
    except OSError as error:
        ours = f"--data or MSDNET_DATA may name a folder that holds {layout.folder}/"
        if isinstance(error, PermissionError):
            raise OSError(f"downloads go to {cache} (XDG_CACHE_HOME), which cannot be written to; {ours}") from error
        raise OSError(f"{layout.url}: cannot be downloaded ({type(error).__name__}); {ours}") from error
    _unpack(Path(archive), layout, folder)
    return folder


def _unpack(archive: Path, layout: "CifarLayout", folder: Path) -> None:
    """Take just the files of the layout out of the archive; the folder appears only when it is complete.

    If another process was faster, its own stays: somebody may be reading it.
    """
    _clear_incomplete(folder, layout)
    try:
        with new_folder(folder) as scratch:
            _extract(archive, _files(layout), scratch)
            _clear_incomplete(folder, layout)  # it may be another's, and came meanwhile
    except FileExistsError:
        if not _is_complete(folder, layout):
            raise


def _extract(archive: Path, wanted: set[str], folder: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            name = PurePosixPath(member.name).name
            source = tar.extractfile(member) if name in wanted else None
            if source is not None:
                with (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    missing = wanted - {path.name for path in folder.iterdir()}
    if missing:
        raise ValueError(f"{archive}: no {', '.join(sorted(missing))} in it")


def _clear_incomplete(folder: Path, layout: "CifarLayout") -> None:
    if folder.exists() and not _is_complete(folder, layout):
        with suppress(OSError), tempfile.TemporaryDirectory(dir=folder.parent) as scratch:  # others may be faster
            folder.rename(Path(scratch, folder.name))  # in one move, and gone with the scratch folder


def _files(layout: "CifarLayout") -> set[str]:
    return {layout.names_file, *layout.train_files, *layout.test_files}


def _is_complete(folder: Path, layout: "CifarLayout") -> bool:
    return all((folder / name).is_file() for name in _files(layout))


class _Progress:
    """Shows pooch's progress with rich: what it asks for is tqdm's interface."""

    def __init__(self) -> None:
        from rich.progress import DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

        self._progress = Progress(
            "downloading",
            *Progress.get_default_columns()[1:3],
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        self._task = self._progress.add_task("download", total=None)

    @property
    def total(self) -> float | None:
        return self._progress.tasks[0].total

    @total.setter
    def total(self, size: float) -> None:
        self._progress.update(self._task, total=size)
        self._progress.start()

    def update(self, size: int) -> None:
        self._progress.update(self._task, advance=size)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        if self._progress.live.is_started:
            self._progress.stop()
