"""Claims are judged by what was measured: one that holds, one that does not, and what is not measured yet."""

import re
from typing import Any

import pytest

from msdnet.reproduce import CLAIMS, EXPERIMENTS, Claim, Measurement, find_experiment, judge
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
        f"{70 - last:+.1f} to +10.0 points above ResNet-MC's exits (-1.0 against exits beyond its full cost); "
        "+5.0 points above DenseNet-MC's exits"
    )


def test_nothing_is_said_of_what_is_not_measured() -> None:
    assert all(judge(one, all_of(MSDNET)) is None for one in CLAIMS)


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


def test_every_claim_can_be_judged_by_the_systems_of_its_experiment() -> None:
    """With numbers made up: all that a claim takes is something that its experiment measures."""
    for one in CLAIMS:
        assert one.experiment in EXPERIMENTS
        names = {subject.name for subject in find_experiment(one.experiment).subjects}
        made = {
            name: network(name, *((20.0 * (k + 1), 60.0 + k) for k in range(5)), budgets=((20, 60), (50, 65)))
            for name in names
        }
        finding = judge(one, made)
        assert finding is not None, one.says
        assert re.search(r"\d", finding.measured)


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
    finding = judge(claim("on par with or worse than their members"), all_of(*singles, *ensembles))
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
