"""Checks of what people write into configs and recipes, and of where they want something to be written; and the making
of dataclasses from plain values.

Every error names the field, what it got and what it takes. Knows nothing of what the fields mean.
"""

import dataclasses
import json
import math
import operator
import os
import tempfile
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, SupportsIndex, TypeVar

from msdnet.errors import NewerFormatError, newer_format, of_file
from msdnet.naming import did_you_mean, shortened
from msdnet.writing import told_of

__all__ = [
    "check_choice",
    "check_file_writable",
    "check_flag",
    "check_folder_writable",
    "check_number",
    "check_same",
    "check_svg_writable",
    "check_whole",
    "from_mapping",
    "instead_of_folder",
    "keep_checked",
    "make_tuples",
    "numbers",
    "read_as",
    "read_table",
    "table_from_json",
    "whole_numbers",
]

T = TypeVar("T")

# Of what differs, so many fields are named, with so many characters of each value: the names of classes may be many.
_NAMED, _SHOWN = 3, 100


def check_whole(name: str, value: object, at_least: int = 1, or_else: str = "") -> int:
    """A whole number of any kind (numpy's too), as a plain one."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} must be a whole number{or_else}, got {value!r}")
    number = operator.index(value)
    if number < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {number}")
    return number


def check_number(
    name: str, value: object, low: float, high: float = math.inf, above: bool = False, below: bool = False
) -> float:
    """A finite number from low (or above it) to high (or below it)."""
    upper = "" if high == math.inf else f" and {'below' if below else 'at most'} {high:g}"
    bounds = f"{'above' if above else 'at least'} {low:g}{upper}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number {bounds}, got {value!r}")
    value = value if isinstance(value, int | float) else float(value)  # numpy's numbers become plain ones
    if not (math.isfinite(value) and low <= value <= high) or (above and value == low) or (below and value == high):
        finite = "finite and " if math.isinf(value) else ""
        raise ValueError(f"{name} must be {finite}{bounds}, got {value!r}")
    return value


def check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false, got {value!r}")


def check_choice(name: str, value: object, options: Iterable[str]) -> None:
    known = list(options)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}")


def instead_of_folder(path: Path) -> str:
    """What is at a place where a folder should be, in words: an error begins with it."""
    return f"{path}: a file, not a folder" if path.exists() else f"{path}: no such folder"


def check_folder_writable(folder: Path) -> None:
    """Refuse a folder into which nothing can be written: better told before the work is done. It is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if folder.exists():
            raise type(error)(instead_of_folder(folder)) from error
        raise type(error)(f"{folder}: this folder cannot be made ({error.strerror})") from error
    with told_of(folder), tempfile.TemporaryFile(dir=folder):
        pass


def check_file_writable(file: Path) -> None:
    """The same for a file, which may be there already and need not be a plain one; its folder must be there."""
    if file.is_dir():
        raise ValueError(f"{file}: is a folder, and a file is to be written")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"{file}: there is no folder {file.parent}")
    if not file.exists():
        with told_of(file):
            check_folder_writable(file.parent)
    elif not os.access(file, os.W_OK):
        raise PermissionError(f"{file}: may not be written to")


def check_svg_writable(file: Path) -> None:
    """The same for a drawing: one by another ending would be opened as something else."""
    if file.suffix.lower() not in (".svg", ""):
        raise ValueError(f"{file}: must end in .svg, since that is what is drawn")
    check_file_writable(file)


def check_same(what: str, found: object, expected: object) -> None:
    """Refuse what differs, naming the fields where it does, a few of them at most, rather than the whole."""
    differences = [f"{': '.join(names)} is {how}" for names, how in _differences((), found, expected)]
    if differences:
        between = ": " if isinstance(found, dict) and isinstance(expected, dict) else ""
        more = [f"and {len(differences) - _NAMED} more"] if len(differences) > _NAMED else []
        raise ValueError(f"{what}{between}{', '.join(differences[:_NAMED] + more)}")


def _differences(names: tuple[str, ...], found: object, expected: object) -> Iterator[tuple[tuple[str, ...], str]]:
    """The fields by their names, the outermost first; what each is, and should be."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in sorted(found.keys() | expected.keys()):
            yield from _differences((*names, name), found.get(name), expected.get(name))
    elif found != expected:
        yield names, f"{shortened(repr(found), _SHOWN)}, not {shortened(repr(expected), _SHOWN)}"


def whole_numbers(name: str, values: object, at_least: int = 1) -> tuple[int, ...]:
    return tuple(check_whole(f"each of {name}", entry, at_least) for entry in _entries(name, values, "whole numbers"))


def numbers(name: str, values: object, low: float) -> tuple[float, ...]:
    return tuple(check_number(f"each of {name}", entry, low) for entry in _entries(name, values, "numbers"))


def keep_checked(instance: object, check: Callable[..., object], *fields: str, **limits: object) -> None:
    """In a frozen dataclass, what a check makes of a field (a plain number, a tuple) takes its place."""
    for name in fields:
        object.__setattr__(instance, name, check(name, getattr(instance, name), **limits))


def _entries(name: str, values: object, kind: str) -> Iterable[object]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of {kind}, got {values!r}")
    return values


def make_tuples(instance: object, *fields: str) -> None:
    """Lists, as they come from a file, are tuples in a frozen dataclass; nothing stays nothing."""
    for name in fields:
        values = getattr(instance, name)
        object.__setattr__(instance, name, None if values is None else tuple(values))


def table_from_json(text: str, what: str, newest: int | None = None) -> dict[str, Any]:
    """The fields in a JSON text; its `format`, where it has one, must not be newer than what this version reads."""
    try:
        values = _fields(text)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
    too_new = _too_new(values, newest)
    if too_new:
        raise ValueError(f"{what}: {too_new}")
    return values


def read_table(path: Path, newest: int | None = None) -> dict[str, Any]:
    """The same for a file: a `FileError` says what is wrong with it, a `NewerFormatError` that nothing is."""
    with of_file(path):
        values = _fields(path.read_bytes())
    too_new = _too_new(values, newest)
    if too_new:
        raise NewerFormatError(path, too_new)
    return values


def _fields(text: str | bytes) -> dict[str, Any]:
    try:
        values = json.loads(text if isinstance(text, str) else text.decode())
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from error
    if not isinstance(values, dict):
        raise ValueError(f"must be a table of fields, got {type(values).__name__}")
    return values


def _too_new(values: Mapping[str, Any], newest: int | None) -> str:
    """What is said of a newer format; of one that can be read, nothing."""
    version = values.get("format")
    if newest is None or not isinstance(version, int | float) or version <= newest:
        return ""
    return newer_format(version, newest)


def read_as(cls: type[T], path: Path, newest: int | None = None) -> T:
    """A dataclass from the fields in a JSON file; errors as those of `read_table`."""
    values = read_table(path, newest)
    with of_file(path):
        return from_mapping(cls, values)


def from_mapping(cls: type[T], values: object, what: str = "") -> T:
    """A dataclass from plain values (of JSON or TOML); fields that are dataclasses take mappings of their own.

    What is missing takes its default; what is unknown, or missing without a default, is refused. Errors begin with
    `what` is made, unless the caller tells it.
    """
    begin = f"{what}: " if what else ""
    if not isinstance(values, Mapping):
        raise TypeError(f"{begin}must be a table of fields, got {type(values).__name__}")
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for name in values:
        if name not in fields:
            raise ValueError(f"{begin}has no field {name!r}; {did_you_mean(name, fields)}")
    for name, field in fields.items():
        if name not in values and field.default is field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{begin}must have the field {name!r}")
    hints = typing.get_type_hints(cls)
    nested = {name: _nested(hints[name], value, f"{begin}{name}") for name, value in values.items()}
    try:
        return cls(**nested)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{begin}{error}") from error


def _nested(hint: object, value: object, what: str) -> object:
    """The dataclass that a field holds, where it does (`Part` or `Part | None`); a tuple; or the value as it is."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if isinstance(value, list) and any(typing.get_origin(option) is tuple for option in options):
        return tuple(value)  # which a file has no word for
    for option in options:
        if isinstance(option, type) and dataclasses.is_dataclass(option) and value is not None:
            own = getattr(option, "from_dict", None)  # of a table that says itself what it is
            if isinstance(value, option):
                return value
            return from_mapping(option, value, what) if own is None else own(value)
    return value
