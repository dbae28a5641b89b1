"""Where the data are: all who ask are told the same."""

from pathlib import Path

import pytest

from msdnet.data import DataConfig
from msdnet.data.download import fetch_cifar
from msdnet.files import CIFAR, CifarLayout, data_root, dataset_at, download_folder, find_cifar, open_labelled


def test_a_folder_that_is_given_comes_before_the_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MSDNET_DATA", raising=False)
    assert data_root(None) is None
    monkeypatch.setenv("MSDNET_DATA", str(tmp_path))
    assert data_root(None) == data_root("") == tmp_path
    assert data_root("here") == data_root(Path("here")) == Path("here")


def test_what_a_training_downloaded_is_found_by_who_downloads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MSDNET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    layout = CIFAR["cifar100"]
    with pytest.raises(FileNotFoundError, match="no data are named or were downloaded"):
        find_cifar(layout, None)
    folder = tmp_path / "msdnet" / layout.folder
    folder.mkdir(parents=True)
    (folder / layout.names_file).write_text("apple")
    assert find_cifar(layout, None) == folder
    with pytest.raises(FileNotFoundError, match="no such folder"):  # a folder that is given is the only one
        find_cifar(layout, tmp_path / "other")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert download_folder() == Path.home() / ".cache/msdnet"


def test_who_has_no_home_has_downloaded_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("MSDNET_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(FileNotFoundError, match="no data are named or were downloaded"):
        find_cifar(CIFAR["cifar100"], None)
    with pytest.raises(ValueError, match=r"no home to download to; --data .* a folder with cifar-100-binary/"):
        fetch_cifar(CIFAR["cifar100"])


def test_an_empty_variable_names_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSDNET_DATA", "")
    assert data_root(None) is None
    assert dataset_at(None) == "cifar100"
    assert DataConfig().found().root is None

    def fetch(_: CifarLayout) -> Path:
        return tmp_path

    assert find_cifar(CIFAR["cifar100"], None, fetch) == tmp_path
    with pytest.raises(ValueError, match="no folder of images is named"):
        DataConfig(dataset="folder")
    with pytest.raises(ValueError, match=r"must be named \(--data\)"):
        open_labelled(None, "folder")
