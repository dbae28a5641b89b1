"""Claims about the parts of MSDNet (the ablation, figure 10) and about weights by P(B)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from msdnet.reproduce.claims.claim import NEARLY_ALL, ON_PAR, Claim, Finding, Results
from msdnet.reproduce.claims.readings import Tradeoff, budgets, in_steps, listed, span
from msdnet.reproduce.studies import MEANS, ablation_names, expected_accuracy, gain_over_even_weights, prior_names

__all__ = ["CLAIMS"]


# --- figure 10: parts left out. A part changes how much of whole layers is computed lazily, too, so that a claim holds
# only if it does by both ways of counting.

_MUCH = 3  # points: "drastically" is more, "slightly" less
_COUNTED = {"whole layers": False, "what is computed": True}


def _lost(measured: Results, *names: str, lazy: bool) -> tuple[NDArray[np.float64], str]:
    """(who, budgets): points below MSDNet of what lacks a part, at budgets in equal ratios; and between which.

    From where all have an answer to the highest full cost, so that everybody's last answer counts.
    """
    full, *lacking = (_exits(measured, name, lazy=lazy) for name in ("msdnet", *names))
    low, high = max(one.places[0].x for one in (full, *lacking)), max(one.full for one in (full, *lacking))
    lost = [[full.at(budget) - one.at(budget) for budget in budgets(low, high)] for one in lacking]
    return np.array(lost), f"from {low:.0f} to {high:.0f} million multiply-adds"


def _exits(measured: Results, variant: str, *, lazy: bool = False) -> Tradeoff:
    return in_steps(*measured.each(ablation_names(variant)), lazy=lazy)


def _counting_both(find: Callable[[bool], Finding]) -> Finding:
    """Words for each way of counting, of which the second is lazy; it holds if it does by both, in part if by one."""
    found = {called: find(lazy) for called, lazy in _COUNTED.items()}
    words = "; ".join(f"by {called}, {finding.measured}" for called, finding in found.items())
    holds = [finding.holds for finding in found.values()]
    return Finding(words, all(holds), in_part=any(holds) and not all(holds))


def _dense_is_crucial(measured: Results) -> Finding:
    """It holds if more than a few points are lost on average, and something at nearly all budgets and at the end.

    Whether it matters more than several scales, the words tell.
    """

    def find(lazy: bool) -> Finding:
        lost, where = _lost(measured, "without_dense", "without_scales", lazy=lazy)
        (dense, scales), at_the_end = lost.mean(axis=1), lost[0, -1]
        words = f"{listed([-dense])} points against MSDNet on average {where}, {listed([-at_the_end])} at the end"
        behind = float((lost[0] > ON_PAR).mean())
        words += f", behind by more than a point at {behind:.0%} of the budgets"
        words += f" (without several scales {listed([-scales])} on average)"
        return Finding(words, bool(dense > _MUCH and behind >= NEARLY_ALL and at_the_end > ON_PAR))

    return _counting_both(find)


def _scales_matter_early(measured: Results) -> Finding:
    """It holds if the lowest third of the budgets loses on average, the highest does not, and the two differ."""

    def find(lazy: bool) -> Finding:
        (lost,), where = _lost(measured, "without_scales", lazy=lazy)
        third = len(lost) // 3
        early, late = lost[:third].mean(), lost[-third:].mean()
        words = f"{listed([-early])} points against MSDNet at the lowest third of the budgets {where}"
        first, its_first = (_exits(measured, name, lazy=lazy).places[0].x for name in ("msdnet", "without_scales"))
        alone = f" (from {its_first:.0f} to {first:.0f} it alone has an answer)" if its_first < first else ""
        holds = early > ON_PAR > late and early - late > ON_PAR
        return Finding(f"{words}, {listed([-late])} at the highest{alone}", bool(holds))

    return _counting_both(find)


def _plain_at_its_own_cost(measured: Results) -> Finding:
    """It holds if it is on par with MSDNet. That it has no answer for less is so by its making."""
    above, words = _last_answers(measured, "plain", "msdnet")
    first, *_ = _exits(measured, "msdnet").places
    words += f"; for less it has no answer, where MSDNet has one from {first.x:.0f} million on"
    return Finding(words, abs(above) < ON_PAR)


def _plain_above_not_dense(measured: Results) -> Finding:
    above, words = _last_answers(measured, "plain", "without_dense")
    return Finding(words, above > ON_PAR)


def _last_answers(measured: Results, one: str, other: str) -> tuple[float, str]:
    """Points of one above the other, either of which may cost a little more."""
    ours, theirs = (_exits(measured, name).places[-1] for name in (one, other))
    words = f"{listed([ours.y - theirs.y])} points, at {ours.x:.0f} against {theirs.x:.0f} million multiply-adds"
    return ours.y - theirs.y, words


def _same_growth(measured: Results) -> Finding:
    """It holds if it is behind on average."""

    def find(lazy: bool) -> Finding:
        (lost,), where = _lost(measured, "same_growth", lazy=lazy)
        words = f"{listed([-lost.mean()])} points against MSDNet on average {where}"
        return Finding(words, bool(lost.mean() > ON_PAR))

    return _counting_both(find)


# --- weights by P(B)


def _gains_by_prior(measured: Results) -> list[list[float]]:
    """(judged by, trained for): points of expected accuracy above equal weights, for each mean of the budgets."""
    curves = []
    for mean in MEANS:
        places = gain_over_even_weights(measured.each((*prior_names(None), *prior_names(mean))))
        curves.append({place.x: place.y for place in places})
    return [[curve[mean / 1e6] for curve in curves] for mean in MEANS]


def _prior_helps_where_it_should(measured: Results) -> Finding:
    """It holds if weights made for the smallest budgets are better for these than weights made for the largest, and the
    other way round, by more than the margin (in part); and if weights gain on the budgets that they are made for, on
    average more than half of it, which is about what chance can bring to a mean of three, and on none lose more than
    it.

    All three begin with the same seed, so that their luck may be the same: the words tell how far equal weights from
    three seeds are apart.
    """
    rows = _gains_by_prior(measured)
    apart = rows[0][0] - rows[0][-1], rows[-1][-1] - rows[-1][0]
    own = [row[place] for place, row in enumerate(rows)]
    trained_for = ", ".join(f"{mean / 1e6:.0f}" for mean in MEANS)
    by_mean = [f"{listed(row)} at a mean of {mean / 1e6:.0f} M" for mean, row in zip(MEANS, rows, strict=True)]
    words = f"points of expected accuracy against equal weights, trained for {trained_for} M: {'; '.join(by_mean)}"
    words += f" ({_trained(measured)}; seeds of equal weights differ by up to {_spread_of_seeds(measured):.1f})"
    matter, gain = min(apart) > ON_PAR, min(own) > -ON_PAR and float(np.mean(own)) > ON_PAR / 2
    return Finding(words, matter and gain, in_part=matter and not gain)


def _equal_weights_do_well(measured: Results) -> Finding:
    """It holds if they are at most slightly worse than those made for the budgets, whichever these are."""
    own = [row[place] for place, row in enumerate(_gains_by_prior(measured))]
    words = f"weights made for the budgets bring {span(own)} points against equal ones ({_trained(measured)})"
    return Finding(words, max(own) < _MUCH)


def _trained(measured: Results) -> str:
    """What it is that was judged: others may be longer in training, and have more exits."""
    first, *_ = measured.each(prior_names(None))
    return f"{len(first.costs)} exits, {first.recipe['epochs']} epochs"


def _spread_of_seeds(measured: Results) -> float:
    """Points of expected accuracy between the best and the worst seed of equal weights, at most."""
    seeds = [expected_accuracy([one]) for one in measured.each(prior_names(None))]
    values = np.array([[place.y for place in places if 1e6 * place.x in MEANS] for places in seeds])
    return float(np.ptp(values, axis=0).max())


CLAIMS = (
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
        _dense_is_crucial,
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
        "ablation: the plain network is substantially better at its cost than MSDNet without dense connections",
        "B.1",
        _plain_above_not_dense,
        "ablation",
    ),
    Claim(
        "ablation: dense connections are particularly important in combination with several classifiers",
        "B.1",
        otherwise="not measured: the paper concludes it from the claim above; to show it would take a network of "
        "several scales that is not dense and has one classifier, which is not among the paper's",
    ),
)
