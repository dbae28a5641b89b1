"""The models that come with the package, each a bundle in a folder of this one."""

from importlib import resources
from pathlib import Path

from msdnet.bundle import MANIFEST, Bundle
from msdnet.naming import did_you_mean

__all__ = ["find_bundle", "is_model", "model_names"]


def model_names() -> list[str]:
    """What `msdnet.load` knows by name."""
    return sorted(folder.name for folder in _here().iterdir() if (folder / MANIFEST).is_file())


def find_bundle(model: str | Path) -> Bundle:
    """A model of the package by its name, or one's own by its folder.

    Some other folder of a model's name, which happens to lie here, hides no model.
    """
    name = str(model)
    if is_model(model):
        return Bundle(_here() / name)
    if not _is_path(name) and not Path(model).exists():
        hint = did_you_mean(name, model_names())
        raise FileNotFoundError(f"no folder and no model of the package is called {name!r}; {hint}")
    return Bundle(model)


def is_model(model: str | Path) -> bool:
    """Whether it is a model of the package that is meant, whatever lies here."""
    name = str(model)
    return name in model_names() and not _is_path(name) and not (Path(model) / MANIFEST).is_file()


def _is_path(name: str) -> bool:
    return Path(name).name != name or name.startswith(".")


def _here() -> Path:
    return Path(str(resources.files("msdnet.models")))
