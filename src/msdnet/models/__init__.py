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
    """A model of the package by its name, or one's own by its folder.

    Some other folder of a model's name, which happens to lie here, hides no model.
    """
    name, known = str(model), model_names()
    is_path = Path(name).name != name or name.startswith(".")
    if name in known and not is_path and not (Path(model) / MANIFEST).is_file():
        return Bundle(_here() / name)
    if not is_path and not Path(model).exists():
        hint = did_you_mean(name, known)
        raise FileNotFoundError(f"no folder and no model of the package is called {name!r}; {hint}")
    return Bundle(model)


def _here() -> Path:
    return Path(str(resources.files("msdnet.models")))
