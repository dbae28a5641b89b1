"""Claims about one intermediate classifier (figure 3). Accuracies are per cent of that of the network without it.

The paper does not say what its classifiers are made of, so claims are asked of both kinds (`HEADS`).
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from msdnet.reproduce.claims.claim import NOT_YET, ON_PAR_RELATIVE, Claim, Finding, NotMeasured, Results
from msdnet.reproduce.claims.readings import listed
from msdnet.reproduce.figure import Place
from msdnet.reproduce.studies import FAMILIES, HEADS, STUDIED, relative_accuracy, why_names

__all__ = ["CLAIMS"]

_FindOfHeads: TypeAlias = Callable[[Results, str], Finding]


def _of_both_kinds(measured: Results, find: _FindOfHeads) -> Finding:
    """It holds if it does with both kinds of classifiers, and in part if with one.

    Where one kind is not measured yet and it does not hold with the other, it cannot hold as a whole any more.
    """
    found = {kind: _if_measured(find, measured, heads) for heads, kind in HEADS.items()}
    holds = [finding.holds for finding in found.values() if finding]
    if len(holds) < len(found) and all(holds):
        raise NotMeasured("one kind of classifiers")
    told = {kind: finding.measured if finding else NOT_YET for kind, finding in found.items()}
    words = "; ".join(f"classifiers {kind}: {said}" for kind, said in told.items())
    return Finding(words, all(holds), in_part=any(holds) and not all(holds))


def _if_measured(find: _FindOfHeads, measured: Results, heads: str) -> Finding | None:
    try:
        return find(measured, heads)
    except NotMeasured:
        return None


def _relative(measured: Results, family: str, heads: str, exit: int) -> list[Place]:
    """Of all six places, by their share of the layers."""
    places = relative_accuracy(measured.each(why_names(family, heads)), exit)
    return [Place(place.x, 100 * place.y) for place in places]


def _called(family: str, heads: str) -> str:
    """MSDNet has classifiers of its own in any case."""
    return family if (family, heads) in STUDIED else f"{family} (with its own)"


def _by_place(measured: Results, heads: str) -> Finding:
    """It holds if the correlation is 0.8 or more in each of the three networks."""
    found = {}
    for family in FAMILIES:
        x, y = zip(*_relative(measured, family, heads, 0), strict=True)
        found[family] = float(np.corrcoef(x, y)[0, 1])
    words = ", ".join(f"{value:.2f} in the {_called(family, heads)}" for family, value in found.items())
    return Finding(f"correlation of accuracy and place {words}", min(found.values()) >= 0.8)


def _staircase(measured: Results, heads: str) -> Finding:
    steps = np.diff([place.y for place in _relative(measured, "ResNet", heads, 0)])
    words = f"from each of the six to the next {listed(steps)}%"
    return Finding(words, bool(steps[[1, 3]].min() > steps[[0, 2, 4]].max()))


def _early_classifiers(measured: Results, heads: str) -> Finding:
    """Of the first two, which in the other networks work at the finest resolution, at their share of the layers.

    MSDNet's have convolutions in any case: against others that only pool, these are compared as well.
    """
    msdnet, words, holds = _relative(measured, "MSDNet", heads, 0), [], True
    for family in ("ResNet", "DenseNet"):
        above = [_on_line(msdnet, theirs.x) - theirs.y for theirs in _relative(measured, family, heads, 0)[:2]]
        words.append(f"{listed(above)}% against the {family}'s")
        holds &= min(above) > ON_PAR_RELATIVE
    return Finding(f"the first two {', '.join(words)}", holds)


def _on_line(places: list[Place], share: float) -> float:
    """Between places; before the first, on the line through the first two, since a later one would be too good."""
    first, second = places[:2]
    if share < first.x:
        return first.y - (first.x - share) * (second.y - first.y) / (second.x - first.x)
    return float(np.interp(share, [place.x for place in places], [place.y for place in places]))


def _unsatisfactory(measured: Results, heads: str) -> Finding:
    """It holds if the first classifiers lose more than a quarter of the accuracy, in both networks."""
    first = {family: _relative(measured, family, heads, 0)[0].y for family in ("ResNet", "DenseNet")}
    words = ", ".join(f"{family} {accuracy:.0f}%" for family, accuracy in first.items())
    return Finding(f"the first classifier's accuracy, of the network's without it: {words}", max(first.values()) < 75)


def _harm(measured: Results, family: str, heads: str) -> list[float]:
    """What the last classifier loses by each place of the other, in per cent of its accuracy."""
    return [100 - place.y for place in _relative(measured, family, heads, -1)]


def _harms_a_resnet(measured: Results, heads: str) -> Finding:
    """It holds if it is more than half of what the paper has."""
    harm = _harm(measured, "ResNet", heads)
    return Finding(f"at most {max(harm):.1f}%, by place {listed(-loss for loss in harm)}%", max(harm) > 3.5)


def _early_and_late(measured: Results, family: str, heads: str) -> tuple[float, str]:
    """How much more the first two places harm than the last two, on average."""
    harm = _harm(measured, family, heads)
    early, late = float(np.mean(harm[:2])), float(np.mean(harm[-2:]))
    return early - late, f"{listed([-early])}% by the first two places on average, {listed([-late])}% by the last two"


def _harms_more_in_early_layers(measured: Results, heads: str) -> Finding:
    more, words = _early_and_late(measured, "ResNet", heads)
    return Finding(words, more > ON_PAR_RELATIVE)


def _harms_a_densenet_less(measured: Results, heads: str) -> Finding:
    """It holds if it is less than half of what the ResNet suffers, and if that is something."""
    densenet, resnet = (max(_harm(measured, family, heads)) for family in ("DenseNet", "ResNet"))
    words = f"at most {densenet:.1f}%, against {resnet:.1f}% in the ResNet"
    return Finding(words, resnet > ON_PAR_RELATIVE and densenet < resnet / 2)


def _wherever_it_is(measured: Results, heads: str) -> Finding:
    """It holds if early places harm neither network more than late ones do, nor less: as is asked of the ResNet."""
    words, holds = [], True
    for family in ("DenseNet", "MSDNet"):
        more, told = _early_and_late(measured, family, heads)
        words.append(f"{_called(family, heads)} {told}")
        holds &= abs(more) < ON_PAR_RELATIVE
    return Finding(", ".join(words), holds)


def _do_not_interfere(measured: Results, heads: str) -> Finding:
    """It holds if no intermediate classifier harms the last one of a network with dense connections."""
    harm = {family: max(_harm(measured, family, heads)) for family in ("DenseNet", "MSDNet")}
    words = ", ".join(f"{_called(family, heads)} {max(most, 0.0):.1f}%" for family, most in harm.items())
    return Finding(f"what the last classifier loses at most: {words}", max(harm.values()) < ON_PAR_RELATIVE)


def _claim(says: str, find: _FindOfHeads, section: str = "4") -> Claim:
    return Claim(says, section, partial(_of_both_kinds, find=find), "why")


CLAIMS = (
    _claim(
        "early layers lack coarse features, and classifiers attached to them have unsatisfactorily high error rates",
        _unsatisfactory,
    ),
    _claim("the accuracy of a classifier is highly correlated with its position within the network", _by_place),
    _claim(
        "in a ResNet it is a staircase, with big improvements after the 2nd and 4th classifiers, right after pooling",
        _staircase,
    ),
    _claim("MSDNets substantially increase the accuracy of early classifiers", _early_classifiers),
    _claim(
        "an intermediate classifier reduces the accuracy of a ResNet's final classifier by up to 7%", _harms_a_resnet
    ),
    _claim("it does so more when it is attached to an earlier layer", _harms_more_in_early_layers),
    _claim("a DenseNet suffers much less from this effect", _harms_a_densenet_less),
    _claim(
        "with dense connections the final classifier is more or less independent of the place of the intermediate one",
        _wherever_it_is,
    ),
    _claim("dense connections ensure that classifiers do not interfere with each other", _do_not_interfere, "6"),
)
