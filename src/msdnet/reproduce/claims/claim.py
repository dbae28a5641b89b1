"""What a claim of the paper is, and how it is judged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msdnet.reproduce.measurement import Measurement

__all__ = [
    "NEARLY_ALL",
    "NOT_YET",
    "ON_PAR",
    "ON_PAR_CIFAR10",
    "ON_PAR_RELATIVE",
    "SECTIONS",
    "Claim",
    "Finding",
    "NotMeasured",
    "Results",
    "judge",
    "sum_up",
]

# Points: less than this, two accuracies on 10,000 images, of two trainings, are about the same. Among the few errors
# on CIFAR-10, chance moves an accuracy by half as much.
ON_PAR, ON_PAR_CIFAR10 = 1.0, 0.5
# The same in per cent of an accuracy of about 70%, which figure 3 is in.
ON_PAR_RELATIVE = 1.5

NEARLY_ALL = 0.9
"""Of the budgets."""

NOT_YET = "not measured yet"

SECTIONS = ("abstract", "1", "2", "4", "4.1", "5.1", "5.2", "5.3", "6", "B.1", "B.2")
"""Of the paper, where it claims something."""


class NotMeasured(Exception):  # noqa: N818  (not an error: it is still to be measured)
    """Something that a claim takes is not measured yet."""


class Results(dict[str, Measurement]):
    """What was measured, by the names of the systems; what was not raises `NotMeasured`."""

    def __missing__(self, name: str) -> Measurement:
        raise NotMeasured(name)

    def each(self, names: Sequence[str]) -> list[Measurement]:
        return [self[name] for name in names]


class Finding(NamedTuple):
    """What was measured, in words, and whether the claim holds."""

    measured: str
    holds: bool
    in_part: bool = False
    """It does not hold as a whole, but it does by one of two readings, for one part of what is said, or against all
    that was trained here."""

    @property
    def verdict(self) -> str:
        """In a word or two."""
        return "yes" if self.holds else "in part" if self.in_part else "no"


@dataclass(frozen=True)
class Claim:
    """Something that the paper says."""

    says: str
    section: str
    """Of the paper."""
    find: Callable[[Results], Finding] | None = None
    """`NotMeasured` if something that it takes is not measured yet. Each system is one training: see `ON_PAR`."""
    experiment: str | None = None
    """That measures what it takes; none where costs are counted, for which nothing is trained."""
    otherwise: str = NOT_YET
    """What is to be said where it cannot be judged."""
    parts: tuple["Claim", ...] = ()
    """Claims that it sums up: it is judged by theirs."""
    elsewhere: "Claim | None" = None
    """The same, asked of other images, of which the paper does not say it: told, but no verdict."""


def judge(claim: Claim, measured: Mapping[str, Measurement]) -> Finding | None:
    """What was found; nothing if not all that it takes is measured."""
    try:
        return claim.find(Results(measured)) if claim.find else None
    except NotMeasured:
        return None


def sum_up(found: Mapping[Claim, Finding | None]) -> Finding | None:
    """Of a claim's parts: true if all are, false if one is, open if one is open, and else in part."""
    verdicts = {part.says: finding.verdict if finding else "open" for part, finding in found.items()}
    told = []
    for verdict, called in {"yes": "true", "in part": "true in part", "no": "false", "open": "open"}.items():
        parts = [says for says, one in verdicts.items() if one == verdict]
        which = f" ({'; '.join(parts)})" if parts and verdict in ("in part", "no") else ""
        told.append(f"{len(parts)} {called}{which}")
    given = set(verdicts.values())
    if "open" in given and "no" not in given:
        return None
    words = f"sums up {len(found)} claims: {', '.join(told)}"
    return Finding(words, given == {"yes"}, in_part="no" not in given and "in part" in given)
