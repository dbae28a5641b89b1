"""Claims about why MSDNet is as it is: classifiers on the way (figure 3), the ablation (figure 10), weights by P(B)."""

import numpy as np

from msdnet.reproduce.claims.claim import ON_PAR, ON_PAR_RELATIVE, Claim, Finding, NotMeasured, Results
from msdnet.reproduce.claims.readings import Tradeoff, listed, span
from msdnet.reproduce.figure import Place, anytime
from msdnet.reproduce.studies import FAMILIES, MEANS, gain_over_even_weights, relative_accuracy, why_names

__all__ = ["CLAIMS"]


# --- figure 3: one classifier on the way. Accuracies are per cent of that of the network without it.


def _relative(measured: Results, family: str, exit: int) -> list[Place]:
    """Of all six places, by their share of the layers."""
    places = relative_accuracy([measured[name] for name in why_names(family)], exit)
    return [Place(place.x, 100 * place.y) for place in places]


def _by_place(measured: Results) -> Finding:
    """It holds if the correlation is 0.8 or more in each of the three networks."""
    found = {}
    for family in FAMILIES:
        x, y = zip(*_relative(measured, family, 0), strict=True)
        found[family] = float(np.corrcoef(x, y)[0, 1])
    words = ", ".join(f"{value:.2f} in the {family}" for family, value in found.items())
    return Finding(f"correlation of its accuracy with its place: {words}", min(found.values()) >= 0.8)


def _staircase(measured: Results) -> Finding:
    steps = np.diff([place.y for place in _relative(measured, "ResNet", 0)])
    words = f"from each of the six classifiers to the next: {listed(steps)} %"
    return Finding(words, bool(steps[[1, 3]].min() > steps[[0, 2, 4]].max()))


def _early_classifiers(measured: Results) -> Finding:
    """Of the first two, which in the other networks work at the finest resolution, at their share of the layers."""
    msdnet, words, holds = _relative(measured, "MSDNet", 0), [], True
    for family in ("ResNet", "DenseNet"):
        above = [_on_line(msdnet, theirs.x) - theirs.y for theirs in _relative(measured, family, 0)[:2]]
        words.append(f"{listed(above)} % against the {family}'s")
        holds &= min(above) > ON_PAR_RELATIVE
    return Finding(f"the first two: {'; '.join(words)}", holds)


def _on_line(places: list[Place], share: float) -> float:
    """Between places; before the first, on the line through the first two, since a later one would be too good."""
    first, second = places[:2]
    if share < first.x:
        return first.y - (first.x - share) * (second.y - first.y) / (second.x - first.x)
    return float(np.interp(share, [place.x for place in places], [place.y for place in places]))


def _harm(measured: Results, family: str) -> list[float]:
    """What the last classifier loses by each place of the other, in per cent of its accuracy."""
    return [100 - place.y for place in _relative(measured, family, -1)]


def _harms_a_resnet(measured: Results) -> Finding:
    """It holds if it is more than half of what the paper has."""
    harm = _harm(measured, "ResNet")
    return Finding(f"at most {max(harm):.1f} %; by place: {listed(-loss for loss in harm)} %", max(harm) > 3.5)


def _harms_more_in_early_layers(measured: Results) -> Finding:
    harm = _harm(measured, "ResNet")
    early, late = np.mean(harm[:2]), np.mean(harm[-2:])
    words = f"{-early:+.1f} % by the first two places on average, {-late:+.1f} % by the last two"
    return Finding(words, bool(early - late > ON_PAR_RELATIVE))


def _harms_a_densenet_less(measured: Results) -> Finding:
    """It holds if it is less than half of what the ResNet suffers, and if that is something."""
    densenet, resnet = (max(_harm(measured, family)) for family in ("DenseNet", "ResNet"))
    words = f"at most {densenet:.1f} %, against {resnet:.1f} % in the ResNet"
    return Finding(words, resnet > ON_PAR_RELATIVE and densenet < resnet / 2)


def _wherever_it_is(measured: Results) -> Finding:
    """It holds if the six trainings of a network lie within the margin on both sides of their middle."""
    spreads, words = [], []
    for family in ("DenseNet", "MSDNet"):
        harm = _harm(measured, family)
        spreads.append(max(harm) - min(harm))
        words.append(f"{family}: {listed(-loss for loss in harm)} % by place")
    return Finding("; ".join(words), max(spreads) < 2 * ON_PAR_RELATIVE)


# --- figure 10: parts left out. Costs count whole layers, as in the figure.

_DRASTICALLY = 3  # points


def _lost(measured: Results, name: str) -> list[Place]:
    """Points below MSDNet of each exit of what lacks a part, by its cost, from MSDNet's first answer on."""
    full = anytime([measured["ablation_msdnet"]])
    msdnet, exits = Tradeoff(full, full[-1].x), anytime([measured[f"ablation_{name}"]])
    lost = [Place(exit.x, msdnet.at(exit.x) - exit.y) for exit in exits if exit.x >= full[0].x]
    if not lost:
        raise NotMeasured(f"ablation_{name} at a cost for which MSDNet has an answer")
    return lost


def _at_costs(lost: list[Place]) -> str:
    costs = ", ".join(f"{exit.x:.0f}" for exit in lost)
    return f"{listed(-exit.y for exit in lost)} points against MSDNet, at {costs} million multiply-adds"


def _dense_matters_most(measured: Results) -> Finding:
    """It holds if every exit loses, and on average more than a few points, and more than without several scales."""
    dense, scales = (_lost(measured, name) for name in ("without_dense", "without_scales"))
    on_average = [float(np.mean([exit.y for exit in lost])) for lost in (dense, scales)]
    words = f"exits without them: {_at_costs(dense)}; {-on_average[0]:+.1f} on average"
    words += f" (without several scales {-on_average[1]:+.1f})"
    drastically = on_average[0] > max(_DRASTICALLY, on_average[1])
    return Finding(words, min(exit.y for exit in dense) > ON_PAR and drastically)


def _scales_matter_early(measured: Results) -> Finding:
    """It holds if the first exit that can be compared loses, and the last two do not."""
    lost, exits = _lost(measured, "without_scales"), anytime([measured["ablation_without_scales"]])
    words = f"exits without them: {_at_costs(lost)}"
    for cheaper in exits[: len(exits) - len(lost)]:
        words += f"; {cheaper.y:.1f} % at {cheaper.x:.0f} million, where MSDNet has no answer yet"
    return Finding(words, lost[0].y > ON_PAR and max(exit.y for exit in lost[-2:]) < ON_PAR)


def _plain_at_its_own_cost(measured: Results) -> Finding:
    """It holds if it is on par with MSDNet, which has an answer for half of the cost, too."""
    (plain,), (first, *_) = _lost(measured, "plain"), anytime([measured["ablation_msdnet"]])
    words = f"{_at_costs([plain])}; for less it has no answer, where MSDNet has one from {first.x:.0f} million on"
    return Finding(words, abs(plain.y) < ON_PAR and first.x < plain.x / 2)


def _plain_above_not_dense(measured: Results) -> Finding:
    (plain,), exits = (anytime([measured[f"ablation_{name}"]]) for name in ("plain", "without_dense"))
    above = plain.y - Tradeoff(exits, exits[-1].x).at(plain.x)
    return Finding(f"{above:+.1f} points at its cost", above > ON_PAR)


def _same_growth(measured: Results) -> Finding:
    """It holds if exits that can be compared are behind on average."""
    lost = _lost(measured, "same_growth")
    return Finding(_at_costs(lost), float(np.mean([exit.y for exit in lost])) > ON_PAR)


# --- weights by P(B)


def _gains_by_prior(measured: Results) -> list[list[float]]:
    """(judged by, trained for): points of expected accuracy above equal weights, for each mean of the budgets."""
    curves = []
    for mean in MEANS:
        places = gain_over_even_weights([measured["cifar_anytime"], measured[f"prior_{mean / 1e6:.0f}m"]])
        curves.append({place.x: place.y for place in places})
    return [[curve[mean / 1e6] for curve in curves] for mean in MEANS]


def _prior_helps_where_it_should(measured: Results) -> Finding:
    """It holds if weights made for the smallest budgets are better for these than weights made for the largest, and the
    other way round, by more than the margin; and if weights gain on the budgets that they are made for on average, and
    lose more than the margin on none.
    """
    rows = _gains_by_prior(measured)
    apart = rows[0][0] - rows[0][-1], rows[-1][-1] - rows[-1][0]
    own = [row[place] for place, row in enumerate(rows)]
    trained_for = ", ".join(f"{mean / 1e6:.0f}" for mean in MEANS)
    by_mean = [f"{listed(row)} at a mean of {mean / 1e6:.0f} M" for mean, row in zip(MEANS, rows, strict=True)]
    words = f"points of expected accuracy against equal weights, trained for {trained_for} M: {'; '.join(by_mean)}"
    return Finding(words, min(apart) > ON_PAR and min(own) > -ON_PAR and float(np.mean(own)) > 0)


def _equal_weights_do_well(measured: Results) -> Finding:
    own = [row[place] for place, row in enumerate(_gains_by_prior(measured))]
    return Finding(f"weights made for the budgets bring {span(own)} points against equal ones", max(own) < ON_PAR)


CLAIMS = (
    Claim(
        "the accuracy of a classifier is highly correlated with its position within the network", "4", _by_place, "why"
    ),
    Claim(
        "in a ResNet it is a staircase, with big improvements after the 2nd and 4th classifiers, right after pooling",
        "4",
        _staircase,
        "why",
    ),
    Claim("MSDNets substantially increase the accuracy of early classifiers", "4", _early_classifiers, "why"),
    Claim(
        "an intermediate classifier reduces the accuracy of a ResNet's final classifier by up to 7 %",
        "4",
        _harms_a_resnet,
        "why",
    ),
    Claim("it does so more when it is attached to an earlier layer", "4", _harms_more_in_early_layers, "why"),
    Claim("a DenseNet suffers much less from this effect", "4", _harms_a_densenet_less, "why"),
    Claim(
        "with dense connections the final classifier is more or less independent of the place of the intermediate one",
        "4",
        _wherever_it_is,
        "why",
    ),
    Claim(
        "weights of the exits can bring in what is known of the budgets, P(B)",
        "4.1",
        _prior_helps_where_it_should,
        "prior",
    ),
    Claim("the same weight for all exits works well in practice", "4.1", _equal_weights_do_well, "prior"),
    Claim(
        "MSDNets with the same growth at all scales have a worse trade-off of accuracy and cost",
        "5.3",
        _same_growth,
        "ablation",
    ),
    Claim(
        "ablation: dense connections are crucial, removing them hurts the overall accuracy drastically",
        "B.1",
        _dense_matters_most,
        "ablation",
    ),
    Claim(
        "ablation: removing multi-scale convolutions hurts only in the lower budget regions",
        "B.1",
        _scales_matter_early,
        "ablation",
    ),
    Claim(
        "ablation: the plain network performs similarly to MSDNet at just its own cost, but is unsuited to others",
        "B.1",
        _plain_at_its_own_cost,
        "ablation",
    ),
    Claim(
        "ablation: the plain network is substantially better at its cost than MSDNet without dense connections, "
        "which suggests that these matter above all where there are several classifiers",
        "B.1",
        _plain_above_not_dense,
        "ablation",
    ),
)
