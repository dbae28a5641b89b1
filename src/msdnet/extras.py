"""What extras bring, what to say where one is missing, and how not to import them before they are needed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

__all__ = ["BROUGHT_BY", "Brought", "MissingExtraError", "imported_later", "install", "needed_for", "stand_in"]


class Brought(NamedTuple):
    """What to install for a module."""

    package: str
    extra: str
    """The smallest that has it."""


BROUGHT_BY = {
    "torch": Brought("torch", "train"),
    "torchvision": Brought("torchvision", "train"),
    "onnx": Brought("onnx", "train"),
    "pooch": Brought("pooch", "train"),
    "sklearn": Brought("scikit-learn", "sklearn"),
}
"""By the name of the module."""


def install(extra: str) -> str:
    """What to do about an extra that is missing."""
    return f"install msdnet with the extra {extra} (in a clone: pip install '.[{extra}]')"


class MissingExtraError(ImportError):
    """Something is not installed that an extra would bring."""


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Say how to get what is imported inside and missing.

    Any other module that is missing is a fault of ours, or of the installation: no extra would mend it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        brought = BROUGHT_BY.get(error.name or "")
        if brought is None:
            raise
        raise MissingExtraError(f"{what} needs {brought.package}: {install(brought.extra)}") from error


def stand_in(name: str, missing: MissingExtraError) -> type:
    """What is in the place of a class that cannot be imported: all can look at it; who calls it is told what to do."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise MissingExtraError(str(missing)) from missing

    return type(name, (), {"__new__": refuse, "__doc__": f"{missing}.", "__module__": __name__})


def imported_later(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package some of whose names take seconds to import: they wait until someone asks for them.

    - names: those of each module of the package; none may be a module's own, since importing that would take its place
    """
    where = {name: f"{package}.{module}" for module, several in names.items() for name in several}

    def find(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(where[name]), name)

    return find
