"""Claims about ImageNet: each with numbers for and against it."""

from dataclasses import replace
from typing import Any

import pytest

from msdnet.reproduce import CLAIMS, Claim, Finding, Measurement, find_experiment, judge, why_not_judged
from msdnet.reproduce.claims.claim import NOT_YET
from tests.unit.test_claims import IMAGENET, all_of, network
from tests.unit.test_reproduce import point

DENSENETS = [f"imagenet_densenet_{k}" for k in (37, 57, 77, 99, 121)]


def claim(words: str) -> Claim:
    (found,) = (one for one in CLAIMS if words in one.says and one.says.startswith("ImageNet"))
    return found


def imagenet(ours: float, *changes: Measurement, **images: Any) -> dict[str, Measurement]:
    """Others have 69 per cent at 1.7 thousand million."""
    singles = [*(f"imagenet_resnet_{k}" for k in (10, 18, 26, 34, 50)), *DENSENETS]
    networks = all_of(
        *(network(f"imagenet_{k}", (600, ours - 5), (1000, ours), (2900, ours)) for k in (4, 6, 7)),
        *(network(name, (1700, 69)) for name in singles),
        *(
            network(name, (900, 60), (2800, 69), budgets=((900, 60), (1700, 69), (2800, 69)))
            for name in ("ensemble_resnets", "ensemble_densenets")
        ),
    )
    for k in (4, 6, 7):
        points = tuple(point(f"imagenet_{k}", c * 1e6, right / 100, 0.5) for c, right in ((600, 69), (1700, ours)))
        networks[f"imagenet_{k}"] = replace(networks[f"imagenet_{k}"], points=points)
    networks |= all_of(*changes)
    return {name: replace(one, images=IMAGENET | images) for name, one in networks.items()}


def found(words: str, networks: dict[str, Measurement]) -> Finding:
    finding = judge(claim(words), networks)
    assert finding is not None
    return finding


@pytest.mark.parametrize(
    ("words", "ours", "holds"),
    [
        ("substantially above the ensembles", 74.0, True),
        ("substantially above the ensembles", 69.5, False),
        ("4 to 8% higher", 74.0, True),
        ("4 to 8% higher", 71.5, False),
        ("substantially above ResNets and DenseNets of the same cost", 74.0, True),
        ("substantially above ResNets and DenseNets of the same cost", 69.5, False),
        ("75% at an average of 1.7e9", 75.0, True),
        ("75% at an average of 1.7e9", 73.0, False),
        ("2 to 3 times cheaper", 74.0, True),
        ("on par with or worse than their members", 74.0, True),
        ("set very precisely", 74.0, True),
    ],
)
def test_claims_of_imagenet(words: str, ours: float, holds: bool) -> None:
    assert found(words, imagenet(ours)).holds is holds
    assert claim(words).otherwise == NOT_YET


def test_exits_are_joined_by_lines_and_the_better_ensemble_counts() -> None:
    """Of all three, from where all have an answer: a line from 60 to 69 per cent is met by one that is 4 above it."""
    ends = (900, 2800)
    msdnet = network("imagenet_7", *zip(ends, (64, 73), strict=True))
    worse = network("ensemble_resnets", *zip(ends, (50, 55), strict=True))
    finding = found("substantially above the ensembles", imagenet(74.0, msdnet, worse))
    assert finding.holds
    assert finding.measured == "+4.0 points against the better ensemble, from 900 to 2,800 million multiply-adds"
    late = network("ensemble_resnets", (3500, 50))
    finding = found("substantially above the ensembles", imagenet(74.0, late))
    assert (finding.holds, finding.measured) == (False, "0 answers up to 2,900 million multiply-adds by all of them")


def test_four_points_are_asked_from_a_thousand_to_three_thousand_million() -> None:
    msdnet = network("imagenet_7", (600, 62), (1000, 74), (2900, 76))
    ensembles = [network(name, (600, 61), (2800, 70)) for name in ("ensemble_resnets", "ensemble_densenets")]
    finding = found("4 to 8% higher", imagenet(74.0, msdnet, *ensembles))
    assert finding.holds
    assert finding.measured.endswith("from 1,000 to 2,900 million multiply-adds")


@pytest.mark.parametrize(("ours", "resnets"), [(75.0, 70.0), (73.5, 60.0)])
def test_both_the_accuracy_and_the_lead_over_resnets_are_asked(ours: float, resnets: float) -> None:
    others = [network(f"imagenet_resnet_{k}", (1700, resnets)) for k in (10, 18, 26, 34, 50)]
    assert not found("75% at an average of 1.7e9", imagenet(ours, *others)).holds


@pytest.mark.parametrize(
    ("images", "is_it"),
    [
        ({}, True),
        ({"training": 1_231_000}, True),
        ({"classes": IMAGENET["classes"][:4]}, False),
        ({"classes": [f"class{k}" for k in range(1000)]}, False),
        ({"training": 90_000, "held_out": 10_000}, False),
        ({"training": 2_000_000}, False),
    ],
    ids=["imagenet", "a few missing", "4 classes", "other names", "fewer images", "more images"],
)
def test_the_papers_numbers_are_those_of_imagenet(images: dict[str, Any], is_it: bool) -> None:
    """A thousand classes are not enough: any folder may have so many."""
    claims = [one for one in CLAIMS if one.says.startswith("ImageNet") and one.experiment]
    assert len(claims) == 7
    assert [judge(one, imagenet(74.0, **images)) is not None for one in claims] == [is_it] * 7
    for name in ("anytime-imagenet", "budgeted-imagenet"):
        why = why_not_judged(find_experiment(name), imagenet(74.0, **images))
        assert (why is None) == is_it


def test_single_networks_that_cost_more_are_told_and_do_not_count() -> None:
    finding = found("above ResNets and DenseNets of", imagenet(74.0, network("imagenet_resnet_50", (4000, 90))))
    assert finding.holds
    assert "against ResNets (-16.0 against costlier ones)" in finding.measured


def test_one_system_of_other_images_is_enough_to_judge_nothing() -> None:
    networks = imagenet(74.0)
    networks[DENSENETS[0]] = replace(networks[DENSENETS[0]], images=IMAGENET | {"training": 90_000})
    assert judge(claim("2 to 3 times cheaper"), networks) is None


def test_a_folder_of_a_thousand_other_classes_is_not_called_imagenet() -> None:
    for name in ("anytime-imagenet", "budgeted-imagenet"):
        for classes, called in (
            (IMAGENET["classes"], "ImageNet"),
            (None, "ImageNet"),
            ([f"class{k}" for k in range(1000)], "a folder of 1000 classes"),
        ):
            assert find_experiment(name, classes=classes).title.endswith(f" on {called}")


def test_ensembles_that_are_above_their_members() -> None:
    above = network("ensemble_resnets", (900, 60), (2800, 72), budgets=((900, 60), (1700, 72), (2800, 72)))
    finding = found("than their members", imagenet(74.0, above))
    assert not finding.holds
    assert "ensemble of ResNets +3.0 points against single networks of the same cost" in finding.measured


@pytest.mark.parametrize(("unreached", "holds"), [(2, True), (3, False)])
def test_half_of_the_densenets_are_reached_at_half_of_their_cost(unreached: int, holds: bool) -> None:
    """The others are reached at 1 / 2.8 of it, at 600 million."""
    better = [network(name, (1700, 80)) for name in DENSENETS[:unreached]]
    finding = found("2 to 3 times cheaper", imagenet(74.0, *better))
    assert finding.holds is holds
    assert "DenseNet-37: never as accurate" in finding.measured
    assert "DenseNet-121: as accurate at least 2.8 times cheaper" in finding.measured
