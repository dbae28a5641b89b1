"""Claims about anytime prediction on CIFAR-100 and CIFAR-10 (figures 5 and 11)."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from msdnet.reproduce.claims.claim import NEARLY_ALL, ON_PAR, ON_PAR_CIFAR10, Claim, Finding, NotMeasured, Results
from msdnet.reproduce.claims.readings import Gains, against_each, in_steps, listed, over_budgets
from msdnet.reproduce.claims.systems import ENSEMBLES, NAMES, PUBLISHED, published_fractalnet
from msdnet.reproduce.comparison import ANYTIME_MSDNET, FRACTALNET, IDENTICAL, VARYING, WITH_CLASSIFIERS
from msdnet.reproduce.figure import Place, anytime

__all__ = ["ABOVE_CLASSIFIERS", "CIFAR10", "CLAIMS", "ENSEMBLES_BEGIN_BETTER", "NEARLY_ALL_BUDGETS"]


def _above_exits_of(
    measured: Results, names: Sequence[str], published: Sequence[Place] = (), margin: float = ON_PAR
) -> Finding:
    """At the cost of each exit. Those that cost more than MSDNet can spend must still be on par with its last answer.

    But not those of ensembles, which would go on to any cost: the paper's figures end about where MSDNet does.
    Where one that is measured shows that it does not hold, others need not be.
    """
    exits = {f"the exits of {NAMES[name]}": name for name in names}
    missing = [kind for kind, name in exits.items() if name not in measured]

    def holds(kind: str, found: Gains) -> bool:
        return found.above(margin) if exits.get(kind) in ENSEMBLES else found.outperforms(margin, on_par=margin)

    rivals = {kind: anytime([measured[name]]) for kind, name in exits.items() if kind not in missing}
    rivals |= {PUBLISHED: list(published)} if published else {}
    finding = against_each(in_steps(measured[ANYTIME_MSDNET]), rivals, holds, aside=PUBLISHED)
    beaten = finding.verdict == "no" and len(missing) < len(exits)
    if missing and not beaten:
        raise NotMeasured(exits[missing[0]])
    return finding._replace(measured="; ".join([finding.measured, *(f"{kind} still to come" for kind in missing)]))


def _above_the_best_other(measured: Results) -> tuple[list[float], str]:
    """Points, and where."""
    others = measured.each((*ENSEMBLES, *WITH_CLASSIFIERS, FRACTALNET))
    return over_budgets(in_steps(measured[ANYTIME_MSDNET]), [in_steps(other) for other in others])


def _for_nearly_all_budgets(measured: Results) -> Finding:
    """It holds if that is nine tenths of them, and if it is on par at the others."""
    above, where = _above_the_best_other(measured)
    share = float(np.mean([gain > 0 for gain in above]))
    words = f"above all others at {share:.0%} of the budgets {where}, at worst {min(above):+.1f} points"
    return Finding(words, share >= NEARLY_ALL and min(above) > -ON_PAR)


def _high_throughout(measured: Results) -> Finding:
    """It holds if no other system is better by more than the margin, whatever the budget."""
    above, where = _above_the_best_other(measured)
    return Finding(f"at worst {min(above):+.1f} points against the best other answer, {where}", min(above) > -ON_PAR)


def _against_the_cheapest(measured: Results) -> tuple[float, str]:
    """Points above the cheapest network that begins an ensemble, at its cost: the least budget of any."""
    first = min(anytime([measured[name]])[0] for name in ENSEMBLES)
    above = in_steps(measured[ANYTIME_MSDNET]).at(first.x) - first.y
    return above, f"{above:+.1f} points against the cheapest first network, at {first.x:.0f} million multiply-adds"


def _on_par_at_first(measured: Results) -> Finding:
    """On par is neither above nor below."""
    first, words = _against_the_cheapest(measured)
    return Finding(words, abs(first) < ON_PAR)


def _above_a_second_network(measured: Results) -> Finding:
    """Exits beyond MSDNet's full cost are told and do not count, as above."""
    later = [place for name in ENSEMBLES for place in anytime([measured[name]])[1:]]
    gains = in_steps(measured[ANYTIME_MSDNET]).gains(later)
    return Finding(gains.against("two networks or more"), gains.above(0))


def _ensembles_begin_better(measured: Results) -> Finding:
    """By however little: the claim that they are on par there is of the same figure."""
    first, words = _against_the_cheapest(measured)
    return Finding(words, first < 0)


def _ensembles_gain_less(measured: Results) -> Finding:
    """From the cost of an ensemble's first network to MSDNet's full cost; it holds if all are behind by a margin."""
    msdnet, words, holds = in_steps(measured[ANYTIME_MSDNET]), [], True
    for name in ENSEMBLES:
        ensemble = in_steps(measured[name])
        low = max(ensemble.places[0].x, msdnet.places[0].x)
        theirs, ours = (one.at(msdnet.full) - one.at(low) for one in (ensemble, msdnet))
        words.append(f"{NAMES[name]} {theirs:+.1f} points, MSDNet {ours:+.1f}")
        holds &= ours - theirs > ON_PAR
    return Finding(f"up to MSDNet's full cost: {'; '.join(words)}", holds)


def _shallow_ones_level_off(measured: Results) -> Finding:
    words, holds = [], True
    for name in IDENTICAL:
        steps = 100 * np.diff(measured[name].test_accuracy)
        words.append(f"{NAMES[name]}: {listed(steps)} points by each network more")
        holds &= bool(steps[-2:].sum() < steps[:2].sum() / 3)  # the last two bring much less than the first two did
    return Finding("; ".join(words), holds)


NEARLY_ALL_BUDGETS = Claim(
    "anytime: MSDNet outperforms the other baselines for nearly all budgets",
    "5.1",
    _for_nearly_all_budgets,
    "anytime-cifar100",
)
ENSEMBLES_BEGIN_BETTER = Claim(
    "anytime: at extremely low budgets ensembles have an advantage, by their first, small network",
    "5.1",
    _ensembles_begin_better,
    "anytime-cifar100",
)
ABOVE_CLASSIFIERS = Claim(
    "anytime: MSDNet is substantially above ResNet-MC and DenseNet-MC at any budget",
    "5.1",
    partial(_above_exits_of, names=WITH_CLASSIFIERS),
    "anytime-cifar100",
)
CIFAR10 = Claim(
    "CIFAR-10, anytime: MSDNet outperforms all baselines by a significant margin",
    "B.2",
    partial(
        _above_exits_of,
        names=(*VARYING, *WITH_CLASSIFIERS),
        published=published_fractalnet("cifar10"),
        margin=ON_PAR_CIFAR10,
    ),
    "anytime-cifar10",
)
CLAIMS = (
    Claim(
        "anytime: it can answer at any time and maintain high accuracies throughout",
        "1",
        _high_throughout,
        "anytime-cifar100",
    ),
    Claim(
        "MSDNets substantially outperform FractalNets",
        "2",
        partial(_above_exits_of, names=(FRACTALNET,), published=published_fractalnet("cifar100")),
        "anytime-cifar100",
    ),
    ABOVE_CLASSIFIERS,
    NEARLY_ALL_BUDGETS,
    Claim(
        "anytime: MSDNet is on par with ensembles when the budget is very small",
        "5.1",
        _on_par_at_first,
        "anytime-cifar100",
    ),
    Claim(
        "anytime: MSDNet outperforms an ensemble as soon as that needs a second network",
        "5.1",
        _above_a_second_network,
        "anytime-cifar100",
    ),
    ENSEMBLES_BEGIN_BETTER,
    Claim(
        "anytime: the accuracy of ensembles does not increase nearly as fast with the budget",
        "5.1",
        _ensembles_gain_less,
        "anytime-cifar100",
    ),
    Claim(
        "anytime: ensembles of shallow networks level off rapidly", "5.1", _shallow_ones_level_off, "anytime-cifar100"
    ),
    CIFAR10,
)
