"""Checks of what people write into configs and recipes, and give to functions.

Every error names the field, what it got and what it takes. Knows nothing of what the fields mean.
"""

import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import SupportsIndex

from msdnet.naming import shortened

__all__ = [
    "check_choice",
    "check_flag",
    "check_increasing",
    "check_number",
    "check_same",
    "check_whole",
    "keep_checked",
    "numbers",
    "whole_numbers",
]

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
    within = abs(value) <= sys.float_info.max and low <= value <= high  # a whole number may be greater
    if not within or (above and value == low) or (below and value == high):
        finite = "finite and " if abs(value) > sys.float_info.max else ""
        raise ValueError(f"{name} must be {finite}{bounds}, got {value!r}")
    return value


def check_increasing(name: str, values: Sequence[float]) -> None:
    if any(later <= earlier for earlier, later in pairwise(values)):
        raise ValueError(f"{name} must increase from one to the next, got {values}")


def check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false, got {value!r}")


def check_choice(name: str, value: object, options: Iterable[str]) -> None:
    known = list(options)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}")


def check_same(what: str, found: object, expected: object, *, places: tuple[str, str]) -> None:
    """Refuse what differs, naming the fields where it does, a few of them at most, rather than the whole.

    - places: where each of the two is from, in words: "epochs: 200 here, 100 in the run" says who is who
    """
    differences = [*_differences("", found, expected, places)]
    if differences:
        more = [f"and {len(differences) - _NAMED} more"] if len(differences) > _NAMED else []
        raise ValueError(f"{what}: {'; '.join(differences[:_NAMED] + more)}")


def _differences(field: str, found: object, expected: object, places: tuple[str, str]) -> Iterator[str]:
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in sorted(found.keys() | expected.keys()):
            yield from _differences(f"{field}{name}: ", found.get(name), expected.get(name), places)
    elif found != expected:
        both = zip((found, expected), places, strict=True)
        yield field + ", ".join(f"{_shown(value)} {place}" for value, place in both)


def _shown(value: object) -> str:
    return "nothing" if value is None else shortened(repr(value), _SHOWN)


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
