"""Claims that sum up others, by which they are judged: true if all of these are, false if one is, else in part."""

from msdnet.reproduce.claims import anytime, budgeted, imagenet
from msdnet.reproduce.claims.claim import Claim

__all__ = ["CLAIMS"]

_OPEN = "the sum of {} claims below, not all of which are measured yet"


def _sum(says: str, section: str, *parts: Claim) -> Claim:
    return Claim(says, section, otherwise=_OPEN.format(len(parts)), parts=parts)


CLAIMS = (
    _sum(
        "networks evaluated one after the other are optimal if the first is all that is run, else far from optimal",
        "4",
        anytime.ENSEMBLES_BEGIN_BETTER,
        anytime.NEARLY_ALL_BUDGETS,
    ),
    _sum(
        "on three data sets MSDNet substantially improves the state of the art in both settings",
        "abstract",
        anytime.ABOVE_CLASSIFIERS,
        anytime.NEARLY_ALL_BUDGETS,
        anytime.CIFAR10,
        imagenet.ABOVE_ENSEMBLES,
        budgeted.CONSISTENTLY,
        budgeted.CIFAR10,
        imagenet.ABOVE_SINGLE_NETWORKS,
    ),
)
