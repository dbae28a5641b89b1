"""Claims about DenseNet*, whose growth doubles after each transition (figure 8)."""

import numpy as np

from msdnet.reproduce.claims.claim import ON_PAR, Claim, Finding, Results
from msdnet.reproduce.claims.readings import in_steps, over_budgets, span
from msdnet.reproduce.claims.systems import best_of_msdnets
from msdnet.reproduce.comparison import ANYTIME_MSDNET, DENSENETS, DENSENETS_STAR, VARYING, VARYING_STAR
from msdnet.reproduce.figure import anytime, sizes

__all__ = ["CLAIMS"]

_A_FEW_POINTS = 3


def _anytime(measured: Results) -> Finding:
    """Ensembles; what they bring beyond MSDNet's full cost is told and does not count, as in figure 5.

    Slightly worse is behind everywhere, and by less than a few points on average.
    """
    star, plain = measured[VARYING_STAR], measured[VARYING[1]]
    over_plain = [gain for side in in_steps(star).gains(anytime([plain])) for gain in side]
    msdnet = in_steps(measured[ANYTIME_MSDNET]).gains(anytime([star]))
    above, where = over_budgets(in_steps(measured[ANYTIME_MSDNET]), [in_steps(star)])
    words = (
        f"{span(over_plain)} points against DenseNets; MSDNet {msdnet.against('DenseNets*')}; over all budgets {where} "
        f"{np.mean(above):+.1f} on average"
    )
    slightly = msdnet.above(0) and float(np.mean(msdnet.within)) < _A_FEW_POINTS
    return Finding(words, bool(over_plain) and min(over_plain) > ON_PAR and slightly)


def _budgeted(measured: Results) -> Finding:
    pairs = zip(measured.each(DENSENETS_STAR), measured.each(DENSENETS), strict=True)
    over_plain = [100 * (star.test_accuracy[-1] - plain.test_accuracy[-1]) for star, plain in pairs]
    msdnets = best_of_msdnets(measured).gains(sizes(measured.each(DENSENETS_STAR)))
    words = (
        f"{span(over_plain)} points against DenseNets of about the same cost; MSDNets {msdnets.against('DenseNets*')}"
    )
    return Finding(words, min(over_plain) > ON_PAR and msdnets.outperforms(ON_PAR, on_par=ON_PAR))


CLAIMS = (
    Claim(
        "anytime: DenseNet* outperforms DenseNet by a large margin, but is still slightly worse than MSDNet",
        "5.3",
        _anytime,
        "densenet-star",
    ),
    Claim(
        "budgeted: DenseNet* is significantly above DenseNet, but still substantially outperformed by MSDNets",
        "5.3",
        _budgeted,
        "densenet-star",
    ),
)
