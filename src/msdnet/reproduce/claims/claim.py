"""What a claim of the paper is, and how it is judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from msdnet.reproduce.measurement import Measurement

__all__ = ["NOT_YET", "ON_PAR", "ON_PAR_CIFAR10", "SECTIONS", "Claim", "Finding", "Measured", "judge"]

Measured = Mapping[str, Measurement]
"""By the names of the systems."""

# Points: less than this, two accuracies on 10,000 images, of two trainings, are about the same. Among the few errors
# on CIFAR-10, chance moves an accuracy by half as much.
ON_PAR, ON_PAR_CIFAR10 = 1.0, 0.5

NOT_YET = "not measured yet"

SECTIONS = ("abstract", "1", "2", "4", "4.1", "5.1", "5.2", "5.3", "6", "B.1", "B.2")
"""Of the paper, where it claims something."""


class Finding(NamedTuple):
    """What was measured, in words, and whether the claim holds."""

    measured: str
    holds: bool


@dataclass(frozen=True)
class Claim:
    """Something that the paper says."""

    says: str
    section: str
    """Of the paper."""
    find: Callable[[Measured], Finding] | None = None
    """`KeyError` if something that it takes is not measured yet. Each system is one training: see `ON_PAR`."""
    experiment: str | None = None
    """That measures what it takes; none where costs are counted, for which nothing is trained."""
    otherwise: str = NOT_YET
    """What is to be said where it cannot be judged."""


def judge(claim: Claim, measured: Measured) -> Finding | None:
    """What was found; nothing if not all that it takes is measured."""
    try:
        return claim.find(measured) if claim.find else None
    except KeyError:
        return None
