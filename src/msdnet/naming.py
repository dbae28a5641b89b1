"""Names that people type: the nearest one to a typing error, registries, and how names are shown.

Knows nothing of what the names stand for.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

__all__ = ["Registry", "UnknownNameError", "a_few", "did_you_mean", "printable", "shortened"]

T = TypeVar("T")


def did_you_mean(name: object, options: Iterable[str]) -> str:
    """A hint to end an error message with: the options that begin so, the nearest one, or else all of them.

    >>> did_you_mean("any", ["anytime", "anyone", "budget"]), did_you_mean("bugdet", ["anytime", "budget"])
    ("did you mean 'anyone' or 'anytime'?", "did you mean 'budget'?")
    >>> did_you_mean("CIFAR10", ["cifar10", "cifar100"])
    "did you mean 'cifar10'?"
    """
    known, typed = sorted(options), str(name).lower()
    near = [option for option in known if option.lower() == typed]
    near = near or [option for option in known if typed and option.lower().startswith(typed)]
    near = near or difflib.get_close_matches(typed, known, n=1, cutoff=0.5)
    if not near:
        return f"known: {', '.join(known) or 'none'}"
    *others, last = map(repr, near)
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"


def a_few(names: Iterable[str], most: int = 5) -> str:
    """The first of many names, and how many there are beside them.

    >>> a_few("abcdefg"), a_few("ab")
    ('a, b, c, d, e and 2 more', 'a, b')
    """
    told = list(names)
    return ", ".join(told[:most]) + (f" and {len(told) - most} more" if len(told) > most else "")


def printable(name: str) -> str:
    r"""On one line, whatever it holds; what cannot be shown is written as in a string of Python.

    >>> print(printable("two\nlines, \x1b, \udcff"))
    two\nlines, \x1b, \udcff
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def shortened(name: str, most: int = 300) -> str:
    """The beginning and the end of a name that nobody would read.

    >>> shortened("a" * 500, most=20)
    'aaaaaaaa...aaaaaaaa'
    """
    part = (most - 3) // 2
    return name if len(name) <= most else f"{name[:part]}...{name[-part:]}"


class UnknownNameError(ValueError, KeyError):
    """Nothing is registered under a name: wrong for who typed it, and missing as in any mapping."""

    __str__ = Exception.__str__  # a KeyError would put the message in quotes


class Registry(Mapping[str, T]):
    """Named things of one kind. A name is given once; an unknown one is answered with the nearest.

    What is the same again, or is defined again in its own place, as by a cell of a notebook that is run twice, is no
    second thing.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str, entry: T) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a {self.kind}'s name must be a word, got {name!r}")
        known = self._entries.get(name, entry)
        if known != entry and not _same_place(known, entry):
            raise ValueError(f"{self.kind} {name!r} is registered already")
        self._entries[name] = entry

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            raise UnknownNameError(f"unknown {self.kind} {name!r}; {did_you_mean(name, self._entries)}")
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    __eq__, __hash__ = object.__eq__, object.__hash__  # a registry is itself, whatever another holds


def _same_place(one: object, other: object) -> bool:
    """Whether two classes or functions are defined under the same name in the same module."""
    places = [(getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)) for thing in (one, other)]
    return places[0] == places[1] and None not in places[0]
