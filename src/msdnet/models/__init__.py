"""The models that come with the package, each a bundle in a folder of this one."""

from importlib import resources
from pathlib import Path

from msdnet.bundle import MANIFEST, Bundle
from msdnet.naming import did_you_mean

__all__ = ["find_bundle", "model_names"]


def model_names() -> list[str]:
    """What `msdnet.load` knows by name."""
    return sorted(folder.name for folder in _here().iterdir() if (folder / MANIFEST).is_file())


def find_bundle(model: str | Path) -> Bundle:
    """A model of the package by its name, or one's own by its folder."""
    name = str(model)
    if Path(model).exists() or Path(name).name != name or name.startswith("."):
        return Bundle(model)
    if name not in model_names():
        hint = did_you_mean(name, model_names())
        raise FileNotFoundError(f"no folder and no model of the package is called {name!r}; {hint}")
    return Bundle(_here() / name)


def _here() -> Path:
    return Path(str(resources.files("msdnet.models")))
