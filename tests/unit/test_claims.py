"""Claims are judged by what was measured: one that holds, one that does not, and what is not measured yet."""

import re
from dataclasses import replace
from typing import Any

import pytest

from msdnet.reproduce import CLAIMS, EXPERIMENTS, Claim, Measurement, find_experiment, judge
from msdnet.reproduce.claims.claim import NOT_YET, SECTIONS
from msdnet.reproduce.subjects import Subject
from tests.unit.test_reproduce import measured, point

MILLION = 1_000_000


def claim(words: str) -> Claim:
    (found,) = (one for one in CLAIMS if words in one.says)
    return found


def network(name: str, *exits: tuple[float, float], budgets: tuple[tuple[float, float], ...] = ()) -> Measurement:
    """Exits, and budgets, as millions of multiply-adds and accuracies in per cent."""
    points: tuple[Any, ...] = tuple(point(name, cost * 1e6, right / 100, right / 100) for cost, right in budgets)
    costs, accuracies = zip(*exits, strict=True)
    return measured(name, tuple(round(cost * MILLION) for cost in costs), tuple(a / 100 for a in accuracies), points)


def all_of(*networks: Measurement) -> dict[str, Measurement]:
    return {one.name: one for one in networks}


MSDNET = network("cifar_anytime", (15, 60), (50, 70), (100, 74))


@pytest.mark.parametrize(("last", "holds"), [(69.0, True), (70.5, False)])
def test_classifiers_on_the_way_are_met_at_the_cost_of_each_exit(last: float, holds: bool) -> None:
    """At 90 million stands what MSDNet's exit at 50 said; at 120, which it cannot spend, what its last said."""
    others = network("resnet_mc", (30, 50), (90, last), (120, 75)), network("densenet_mc", (40, 55))
    finding = judge(claim("ResNet-MC and DenseNet-MC at any budget"), all_of(MSDNET, *others))
    assert finding is not None
    assert finding.holds is holds
    assert finding.measured == (
        f"{70 - last:+.1f} to +10.0 points above the exits of ResNet-MC (-1.0 against exits beyond its full cost); "
        "+5.0 points above the exits of DenseNet-MC"
    )


def test_nothing_is_said_of_what_is_not_measured() -> None:
    assert all(judge(one, all_of(MSDNET)) is None for one in CLAIMS if one.experiment)


def test_every_claim_is_judged_or_says_why_not() -> None:
    assert [one.says for one in CLAIMS if not one.find and one.otherwise == NOT_YET] == []
    assert len({one.says for one in CLAIMS}) == len(CLAIMS)
    sections = [SECTIONS.index(one.section) for one in CLAIMS]
    assert sections == sorted(sections), "in the order of the paper"
    assert {one.experiment for one in CLAIMS if one.experiment} == {*EXPERIMENTS, "gallery"}


def batch_networks(*budgets: tuple[float, float]) -> list[Measurement]:
    nothing = ((10.0, 1.0),)
    others = [network(f"cifar_batch_{exits}", (9, 1), (300, 1), budgets=nothing) for exits in range(5, 9)]
    return [network("cifar_batch_4", (10, 50), (300, 80), budgets=budgets), *others]


@pytest.mark.parametrize(("resnet", "holds", "words"), [(70.5, True, "-0.5 points"), (72.5, False, "-2.5 points")])
def test_a_tenth_of_the_cost_of_resnet_110(resnet: float, holds: bool, words: str) -> None:
    networks = all_of(*batch_networks((10, 60), (25, 70), (100, 75)), network("resnet_110", (250, resnet)))
    finding = judge(claim("ResNet-110 at a tenth"), networks)
    assert finding is not None
    assert finding.holds is holds
    assert finding.measured.startswith(f"{words} at a tenth of its cost; as accurate ")


def test_how_many_times_cheaper_is_read_off_between_points() -> None:
    """Half-way between 70 and 75 per cent lies, by the logarithm, 50 between 25 and 100: a fifth of 250."""
    networks = all_of(*batch_networks((10, 60), (25, 70), (100, 75)), network("resnet_110", (250, 72.5)))
    finding = judge(claim("ResNet-110 at a tenth"), networks)
    assert finding is not None
    assert finding.measured.endswith("as accurate 5.0 times cheaper")
    networks["resnet_110"] = network("resnet_110", (250, 76))
    finding = judge(claim("ResNet-110 at a tenth"), networks)
    assert finding is not None
    assert finding.measured.endswith("never as accurate (75.0 at most, against 76.0 %)")


@pytest.mark.parametrize(("gains", "holds"), [((4, 2, 0.5, 0.3), True), ((2, 2, 2, 2), False)])
def test_ensembles_that_level_off(gains: tuple[float, ...], holds: bool) -> None:
    def ensemble(name: str) -> Measurement:
        accuracy = [60.0 + sum(gains[:k]) for k in range(5)]
        return network(name, *((40.0 * (k + 1), right) for k, right in enumerate(accuracy)))

    networks = all_of(ensemble("ensemble_resnet_20"), ensemble("ensemble_densenet_bc_28_12"))
    finding = judge(claim("level off"), networks)
    assert finding is not None
    assert finding.holds is holds
    assert "five ResNet-20: +" in finding.measured


@pytest.mark.parametrize(
    ("words", "measured", "holds"),
    [
        ("network reduction", "134.1 instead of 199.5 million", True),
        ("lazy evaluation", "13.3 instead of 15.0 million multiply-adds to its first exit, fewer at 7 of 11", True),
        ("about 1.3e8 multiply-adds", "ResNet-MC 154, DenseNet-MC 126 million", False),
        ("more filters to high-resolution maps", "DenseNet-100 0.80 M parameters, 288 M multiply-adds", True),
    ],
)
def test_costs_are_counted_without_any_training(words: str, measured: str, holds: bool) -> None:
    finding = judge(claim(words), {})
    assert finding is not None
    assert measured in finding.measured
    assert finding.holds is holds


def made_up(subject: Subject) -> Measurement:
    """The deeper an exit, the better."""
    layers = subject.network.exit_layers
    costs = [20.0 * (k + 1) for k in range(len(layers))] if len(layers) > 1 else [90.0]
    exits = ((cost, 50 + 20 * layer / layers[-1]) for cost, layer in zip(costs, layers, strict=True))
    made = network(subject.name, *exits, budgets=((20, 60), (50, 65), (120, 70)))
    return replace(made, network=subject.network.to_dict())


@pytest.mark.parametrize("one", [one for one in CLAIMS if one.find], ids=lambda one: one.says)
def test_every_claim_can_be_judged_by_the_systems_of_its_experiment(one: Claim) -> None:
    """With numbers made up: all that a claim takes is something that its experiment measures."""
    subjects = find_experiment(one.experiment).subjects if one.experiment else ()
    finding = judge(one, all_of(*map(made_up, subjects)))
    assert finding is not None
    assert isinstance(finding.holds, bool)
    assert re.search(r"\d", finding.measured)
    assert not re.search(r"nan|inf\b", finding.measured)


@pytest.mark.parametrize(("first", "second", "holds"), [(59.5, 65.0, True), (61.5, 65.0, False), (59.5, 71.0, False)])
def test_ensembles_are_met_at_their_first_network_and_from_the_second_on(
    first: float, second: float, holds: bool
) -> None:
    names = (
        "ensemble_resnets_varying",
        "ensemble_resnet_20",
        "ensemble_densenets_varying",
        "ensemble_densenet_bc_28_12",
    )
    ensembles = [network(name, (20, first), (60, second), (500, 90)) for name in names]
    finding = judge(claim("as soon as they need a second one"), all_of(MSDNET, *ensembles))
    assert finding is not None
    assert finding.holds is holds
    assert "(-16.0 to -16.0 against exits beyond its full cost)" in finding.measured


def larger_systems(**accuracy: float) -> list[Measurement]:
    """All at 200 million, and as good as MSDNet at 25 unless said otherwise."""
    names = [f"densenet_bc_{layers}_12" for layers in (16, 28, 58, 100)]
    names += ["stochastic_110", "wide_resnet_16_4", "wide_resnet_40_4", "fractalnet_20"]
    return [network(name, (200, accuracy.get(name, 70.0))) for name in names]


@pytest.mark.parametrize(
    ("accuracy", "holds"),
    [
        ({}, True),
        ({"stochastic_110": 99.0}, False),  # of which nothing is ever reached
        ({"wide_resnet_40_4": 99.0}, True),  # but another of its kind is
    ],
)
def test_cheaper_than_something_of_each_kind(accuracy: dict[str, float], holds: bool) -> None:
    networks = all_of(*batch_networks((10, 60), (25, 70), (100, 75)), *larger_systems(**accuracy))
    finding = judge(claim("up to 5 times cheaper"), networks)
    assert finding is not None
    assert finding.holds is holds
    assert "DenseNet-100: as accurate 8.0 times cheaper" in finding.measured


@pytest.mark.parametrize(("accuracy", "holds"), [(68.5, True), (69.5, False)])
def test_early_exits_of_others_are_met_at_what_they_spent(accuracy: float, holds: bool) -> None:
    others = [network(name, (20, 50), (200, 72), budgets=((25, accuracy),)) for name in ("resnet_mc", "densenet_mc")]
    networks = all_of(*batch_networks((10, 60), (25, 70), (100, 75)), *others)
    finding = judge(claim("DenseNet-MC with early exits"), networks)
    assert finding is not None
    assert finding.holds is holds


@pytest.mark.parametrize(("accuracy", "holds"), [(70.5, True), (72.0, False)])
def test_ensembles_are_compared_with_single_networks_of_their_cost(accuracy: float, holds: bool) -> None:
    members = {
        "resnets": [f"resnet_{k}" for k in (20, 32, 44, 56, 110)],
        "densenets": [f"densenet_bc_{k}_12" for k in (16, 28, 58, 100)],
    }
    singles = [network(name, (100, 70)) for names in members.values() for name in names]
    ensembles = [
        network(f"ensemble_{kind}_varying", (20, 50), (900, 80), budgets=((100, accuracy),)) for kind in members
    ]
    finding = judge(claim("on par with or worse than their members alone"), all_of(*singles, *ensembles))
    assert finding is not None
    assert finding.holds is holds


@pytest.mark.parametrize(("star", "holds"), [(68.0, True), (64.5, False), (71.0, False)])
def test_densenet_star_lies_between(star: float, holds: bool) -> None:
    """MSDNet has 70 per cent at 50 million and 25, DenseNet 64."""
    depths = (16, 28, 58, 100)
    stars = [network(f"densenet_star_{k}_8", (60, star)) for k in depths]
    plain = [network(f"densenet_bc_{k}_12", (60, 64)) for k in depths]
    ensembles = network("ensemble_densenets_star_varying", (55, star)), network("ensemble_densenets_varying", (60, 64))
    networks = all_of(MSDNET, *batch_networks((10, 60), (60, 70)), *stars, *plain, *ensembles)
    finding = judge(claim("DenseNet* is well above"), networks)
    assert finding is not None
    assert finding.holds is holds


def baselines(**accuracy: float) -> list[Measurement]:
    """Single networks at 50 million, other systems with a budget of 25; each at 65 per cent, or as said."""
    singles = [f"resnet_{k}" for k in (20, 32, 44, 56, 110)] + [f"densenet_bc_{k}_12" for k in (16, 28, 58, 100)]
    singles += ["stochastic_110", "wide_resnet_16_4", "wide_resnet_40_4", "fractalnet_20"]
    others = ["resnet_mc", "densenet_mc", "ensemble_resnets_varying", "ensemble_densenets_varying"]
    return [network(name, (50, accuracy.get(name, 65.0))) for name in singles] + [
        network(name, (20, 50), (25, 60), budgets=((25, accuracy.get(name, 65.0)),)) for name in others
    ]


@pytest.mark.parametrize(
    ("words", "accuracy", "holds"),
    [
        ("consistently outperform all", {}, True),
        ("consistently outperform all", {"resnet_44": 72.6}, False),  # at 50 million MSDNet has 72.5
        ("consistently outperform all", {"densenet_mc": 70.1}, False),
        ("consistently outperform all", {"ensemble_resnets_varying": 70.1}, False),
        ("CIFAR-10, budgeted", {}, True),
        ("CIFAR-10, budgeted", {"resnet_44": 72.2}, False),  # not by a significant margin
    ],
)
def test_all_baselines_are_met_at_what_they_cost(words: str, accuracy: dict[str, float], holds: bool) -> None:
    networks = all_of(*batch_networks((10, 60), (25, 70), (100, 75)), *baselines(**accuracy))
    finding = judge(claim(words), networks)
    assert finding is not None
    assert finding.holds is holds


def test_what_costs_more_than_any_msdnet_is_told_but_decides_nothing() -> None:
    networks = all_of(*batch_networks((10, 60), (25, 70), (100, 75)), *baselines())
    networks["wide_resnet_40_4"] = network("wide_resnet_40_4", (1300, 79))
    finding = judge(claim("consistently outperform all"), networks)
    assert finding is not None
    assert finding.holds
    assert "Wide ResNet 40-4 -4.0 at costs that it cannot spend" in finding.measured


@pytest.mark.parametrize(("beaten_at", "holds"), [(None, True), (60, False)])
def test_the_range_of_one_network_ends_where_another_is_above_it(beaten_at: float | None, holds: bool) -> None:
    networks = all_of(*batch_networks((10, 60), (25, 70), (100, 75)), *baselines())
    if beaten_at is not None:
        networks["resnet_56"] = network("resnet_56", (beaten_at, 80))
    finding = judge(claim("a single network can outperform"), networks)
    assert finding is not None
    assert finding.holds is holds
    assert f"from 10 to {beaten_at or 100} million" in finding.measured


@pytest.mark.parametrize(("spent", "holds"), [(24.0, True), (23.0, False)])
def test_budgets_are_kept_within_a_twentieth(spent: float, holds: bool) -> None:
    networks = batch_networks((10, 60), (25, 70))
    off = point("cifar_batch_4", 25e6, 0.7, 0.7, cost=spent * 1e6)
    beyond = point("cifar_batch_4", 900e6, 0.7, 0.7, cost=300e6)  # more than it can spend is not missed
    networks[0] = replace(networks[0], points=(off, beyond))
    finding = judge(claim("set very precisely"), all_of(*networks, *baselines()))
    assert finding is not None
    assert finding.holds is holds
    assert f"MSDNets {100 * (spent / 25 - 1):+.1f} to +0.0 %, ensembles +0.0 to +0.0 %" in finding.measured


@pytest.mark.parametrize(("later", "holds"), [(66.0, True), (75.0, False)])
def test_ensembles_gain_less_up_to_the_full_cost(later: float, holds: bool) -> None:
    """MSDNet gains 14 points from 20 to 100 million."""
    names = [
        *("ensemble_resnets_varying", "ensemble_resnet_20", "ensemble_densenets_varying", "ensemble_densenet_bc_28_12")
    ]
    ensembles = [network(name, (20, 60), (60, later), (500, 90)) for name in names]
    finding = judge(claim("does not increase nearly as fast"), all_of(MSDNET, *ensembles))
    assert finding is not None
    assert finding.holds is holds
    assert f"five ResNet-20 {later - 60:+.1f} points, MSDNet +14.0" in finding.measured


@pytest.mark.parametrize(("words", "exits", "holds"), [("naively", 60.0, True), ("CIFAR-10: ResNet-MC", 69.8, False)])
def test_exits_are_met_by_single_networks_of_their_cost(words: str, exits: float, holds: bool) -> None:
    networks = all_of(*baselines())
    for k in (20, 32, 44, 56, 110):
        networks[f"resnet_{k}"] = network(f"resnet_{k}", (k, 70))
    for k in (16, 28, 58, 100):
        networks[f"densenet_bc_{k}_12"] = network(f"densenet_bc_{k}_12", (k, 70))
    for name in ("resnet_mc", "densenet_mc"):
        networks[name] = network(name, (10, 5), (30, exits), (90, exits))  # no single network costs as little as 10
    finding = judge(claim(words), networks)
    assert finding is not None
    assert finding.holds is holds
    assert f"exits of ResNet-MC {exits - 70:+.1f} to {exits - 70:+.1f} points" in finding.measured


# ImageNet, in thousands of millions


def imagenet(ours: float, **changes: Measurement) -> dict[str, Measurement]:
    singles = [f"imagenet_resnet_{k}" for k in (10, 18, 26, 34, 50)]
    singles += [f"imagenet_densenet_{k}" for k in (37, 57, 77, 99, 121)]
    networks = all_of(
        *(network(f"imagenet_{k}", (600, ours - 5), (1000, ours), (3200, ours)) for k in (4, 6, 7)),
        *(network(name, (1700, 69)) for name in singles),
        *(
            network(name, (900, 60), (2800, 69), budgets=((900, 60), (1700, 69), (2800, 69)))
            for name in ("ensemble_resnets", "ensemble_densenets")
        ),
    )
    for k in (4, 6, 7):
        points = tuple(point(f"imagenet_{k}", c * 1e6, right / 100, 0.5) for c, right in ((600, 69), (1700, ours)))
        networks[f"imagenet_{k}"] = replace(networks[f"imagenet_{k}"], points=points)
    return networks | changes


@pytest.mark.parametrize(
    ("words", "ours", "holds"),
    [
        ("substantially above the ensembles", 74.0, True),
        ("substantially above the ensembles", 69.5, False),
        ("4 to 8 % higher", 74.0, True),
        ("4 to 8 % higher", 71.5, False),
        ("substantially above ResNets and DenseNets of the same cost", 74.0, True),
        ("substantially above ResNets and DenseNets of the same cost", 69.5, False),
        ("75 % at an average of 1.7e9", 75.0, True),
        ("75 % at an average of 1.7e9", 73.0, False),
        ("2 to 3 times cheaper", 74.0, True),
        ("on par with or worse than their members", 74.0, True),
    ],
)
def test_claims_of_imagenet(words: str, ours: float, holds: bool) -> None:
    (one,) = (one for one in CLAIMS if words in one.says and one.says.startswith("ImageNet"))
    finding = judge(one, imagenet(ours))
    assert finding is not None
    assert finding.holds is holds
    assert "ImageNet was not at hand" in one.otherwise


def test_claims_of_imagenet_that_do_not_hold() -> None:
    above = network("ensemble_resnets", (900, 60), (2800, 72), budgets=((900, 60), (1700, 72), (2800, 72)))
    (members,) = (one for one in CLAIMS if one.says.startswith("ImageNet") and "than their members" in one.says)
    finding = judge(members, imagenet(74.0, ensemble_resnets=above))
    assert finding is not None
    assert not finding.holds
    finding = judge(claim("2 to 3 times cheaper"), imagenet(74.0, imagenet_densenet_37=network("x", (500, 69))))
    assert finding is not None
    assert not finding.holds
