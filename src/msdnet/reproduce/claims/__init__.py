"""What the paper claims, from its abstract to its appendix, each claim judged by what was measured."""

from collections.abc import Mapping

from msdnet.files import CIFAR
from msdnet.reproduce.claims import anytime, budgeted, counted, densenet_star, imagenet, studies, sums, unmeasured, why
from msdnet.reproduce.claims.claim import SECTIONS, Claim, Finding, judge, sum_up
from msdnet.reproduce.experiment import Experiment
from msdnet.reproduce.imagenet import CLASSES, is_imagenet
from msdnet.reproduce.measurement import Measurement

__all__ = ["CLAIMS", "Claim", "Finding", "judge", "judge_all", "why_not_judged"]

_OF = (sums, unmeasured, counted, why, studies, anytime, budgeted, densenet_star, imagenet)
CLAIMS: tuple[Claim, ...] = tuple(
    sorted((claim for some in _OF for claim in some.CLAIMS), key=lambda claim: SECTIONS.index(claim.section))
)


def why_not_judged(experiment: Experiment, measured: Mapping[str, Measurement]) -> str | None:
    """Why the paper's claims cannot be judged by what is measured for it, if they cannot."""
    classes = experiment.subjects[0].network.classes
    if experiment.dataset not in CIFAR and classes != CLASSES:
        return f"the paper's are of ImageNet's {CLASSES:,} classes, and these are {classes:,} of another folder"
    if experiment.is_try:
        return "this is a try"
    if experiment.dataset not in CIFAR and not all(is_imagenet(one.images) for one in measured.values()):
        return "the paper's are of ImageNet, and by their classes' names, or their number, these images are others"
    return None


def judge_all(measured: Mapping[str, Mapping[str, Measurement]]) -> dict[Claim, Finding | None]:
    """Every claim, by what was measured for each experiment."""
    found = {claim: judge(claim, measured.get(claim.experiment or "", {})) for claim in CLAIMS}
    return {
        claim: sum_up({part: found[part] for part in claim.parts}) if claim.parts else finding
        for claim, finding in found.items()
    }
