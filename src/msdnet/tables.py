"""Tables of fields, as JSON and TOML have them, and the dataclasses that are made of them.

Knows nothing of what the fields mean: a dataclass checks its own.
"""

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from msdnet.errors import NewerFormatError, newer_format, of_file
from msdnet.naming import did_you_mean

__all__ = ["from_mapping", "make_tuples", "read_as", "read_table", "table_from_json"]

T = TypeVar("T")


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
    `what`, where it is given.
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
