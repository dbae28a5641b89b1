"""What is public, and that it is there without torch."""

import importlib
import pkgutil
import subprocess
import sys
from types import FunctionType

import pytest

import msdnet
from msdnet.extras import install

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None                       # any import of torch now fails
import msdnet
assert msdnet.preset_config("cifar_anytime").depth == 24
assert all(hasattr(msdnet, name) for name in msdnet.__all__)
try:
    msdnet.create_network("cifar_anytime")
except ImportError as error:
    print(error)
"""


# The one left out runs the command line when it is imported.
MODULES = {m.name for m in pkgutil.walk_packages(msdnet.__path__, "msdnet.")} - {"msdnet.__main__"}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_what_is_public_is_declared(name: str) -> None:
    module = importlib.import_module(name)
    defined = {
        key
        for key, value in vars(module).items()
        if isinstance(value, type | FunctionType) and value.__module__ == name and not key.startswith("_")
    }
    assert defined <= set(module.__all__)
    assert all(hasattr(module, key) for key in module.__all__)


@pytest.mark.parametrize("package", ["msdnet.training", "msdnet.reproduce"])
def test_names_that_are_imported_later_are_no_modules_own(package: str) -> None:
    """Or else it would depend on what was imported before whether one gets the module or what it is named for."""
    module = importlib.import_module(package)
    assert not MODULES & {f"{package}.{name}" for name in module.__all__}
    assert dir(module) == sorted(module.__all__)


def test_the_packages_own_names() -> None:
    assert all(hasattr(msdnet, name) for name in msdnet.__all__)
    everything: dict[str, object] = {}
    exec("from msdnet import *", everything)
    assert set(msdnet.__all__) <= set(everything)


def test_a_stranger_sees_what_is_public_and_nothing_else() -> None:
    seen = {name for name in dir(msdnet) if not name.startswith("__")}
    assert seen == {*msdnet.__all__, "MSDNetClassifier"}
    assert all(hasattr(msdnet, name) for name in seen)
    with pytest.raises(AttributeError, match="module 'msdnet' has no attribute 'Modle'"):
        msdnet.Modle  # noqa: B018


def test_the_package_imports_without_torch_and_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True)
    assert done.stdout == f"create_network needs torch: {install('train')}\n"
