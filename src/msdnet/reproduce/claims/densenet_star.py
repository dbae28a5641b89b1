"""Claims about DenseNet*, whose growth doubles after each transition (figure 8)."""

from collections.abc import Callable

import numpy as np

from msdnet.reproduce.claims.claim import ON_PAR, Claim, Finding, Results
from msdnet.reproduce.claims.readings import in_steps, over_budgets, span
from msdnet.reproduce.claims.systems import best_of_msdnets
from msdnet.reproduce.comparison import ANYTIME_MSDNET, DENSENETS, DENSENETS_STAR, VARYING, VARYING_STAR
from msdnet.reproduce.figure import anytime, sizes

__all__ = ["CLAIMS"]

_A_FEW_POINTS = 3


def _ensemble_above_densenets(measured: Results) -> Finding:
    """At the costs of all that the ensemble of DenseNets answers."""
    star, plain = measured[VARYING_STAR], measured[VARYING[1]]
    above = [gain for side in in_steps(star).gains(anytime([plain])) for gain in side]
    return Finding(f"{span(above)} points", bool(above) and min(above) > ON_PAR)


def _ensemble_below_msdnet(measured: Results) -> Finding:
    """Slightly worse is behind wherever it answers, and there by less than a few points on average. What it brings
    beyond MSDNet's full cost is told and does not count, as in figure 5.
    """
    msdnet, star = in_steps(measured[ANYTIME_MSDNET]), measured[VARYING_STAR]
    gains = msdnet.gains(anytime([star]))
    over_all, where = over_budgets(msdnet, [in_steps(star)])
    words = f"MSDNet {gains.against('DenseNets*')}; over all budgets {where} {np.mean(over_all):+.1f} on average"
    return Finding(words, gains.above(0) and float(np.mean(gains.within)) < _A_FEW_POINTS)


def _above_densenets(measured: Results) -> Finding:
    pairs = zip(measured.each(DENSENETS_STAR), measured.each(DENSENETS), strict=True)
    above = [100 * (star.test_accuracy[-1] - plain.test_accuracy[-1]) for star, plain in pairs]
    return Finding(f"{span(above)} points, each at about the same cost", min(above) > ON_PAR)


def _below_msdnets(measured: Results) -> Finding:
    gains = best_of_msdnets(measured).gains(sizes(measured.each(DENSENETS_STAR)))
    return Finding(f"MSDNets {gains.against('DenseNets*')}", gains.outperforms(ON_PAR, on_par=ON_PAR))


def _claim(says: str, find: Callable[[Results], Finding]) -> Claim:
    return Claim(says, "5.3", find, "densenet-star")


CLAIMS = (
    _claim("anytime: DenseNets* outperform DenseNets by a large margin, as ensembles", _ensemble_above_densenets),
    _claim("anytime: DenseNets*, as an ensemble, are still slightly worse than MSDNet", _ensemble_below_msdnet),
    _claim("budgeted: DenseNet* is significantly more accurate than DenseNet, at all budgets", _above_densenets),
    _claim("budgeted: DenseNets* are still substantially outperformed by MSDNets", _below_msdnets),
)
