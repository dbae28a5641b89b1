"""What the paper claims, from its abstract to its appendix, each claim judged by what was measured."""

from collections.abc import Mapping

from msdnet.reproduce.claims import anytime, budgeted, counted, densenet_star, imagenet, studies, sums, unmeasured, why
from msdnet.reproduce.claims.claim import SECTIONS, Claim, Finding, judge, sum_up
from msdnet.reproduce.measurement import Measurement

__all__ = ["CLAIMS", "Claim", "Finding", "judge", "judge_all"]

_OF = (sums, unmeasured, counted, why, studies, anytime, budgeted, densenet_star, imagenet)
CLAIMS: tuple[Claim, ...] = tuple(
    sorted((claim for some in _OF for claim in some.CLAIMS), key=lambda claim: SECTIONS.index(claim.section))
)


def judge_all(measured: Mapping[str, Mapping[str, Measurement]]) -> dict[Claim, Finding | None]:
    """Every claim, by what was measured for each experiment."""
    found = {claim: judge(claim, measured.get(claim.experiment or "", {})) for claim in CLAIMS}
    return {
        claim: sum_up({part: found[part] for part in claim.parts}) if claim.parts else finding
        for claim, finding in found.items()
    }
