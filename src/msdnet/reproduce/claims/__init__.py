"""What the paper claims, from its abstract to its appendix, each claim judged by what was measured."""

from msdnet.reproduce.claims import comparisons, counted, imagenet, studies, unmeasured
from msdnet.reproduce.claims.claim import SECTIONS, Claim, Finding, judge

__all__ = ["CLAIMS", "Claim", "Finding", "judge"]

CLAIMS: tuple[Claim, ...] = tuple(
    sorted(
        (*unmeasured.CLAIMS, *studies.CLAIMS, *comparisons.CLAIMS, *imagenet.CLAIMS, *counted.CLAIMS),
        key=lambda claim: SECTIONS.index(claim.section),
    )
)
