"""Claims about intermediate classifiers, parts left out and weights: each with numbers for and against it."""

import itertools
from dataclasses import replace

import pytest
import torch

from msdnet.networks import create_network
from msdnet.reproduce import Measurement, find_experiment, judge
from msdnet.reproduce.studies import (
    FAMILIES,
    HEADS,
    ablation_names,
    expected_accuracy,
    gain_over_even_weights,
    prior_names,
    why_names,
)
from tests.unit.test_claims import all_of, claim, found, network
from tests.unit.test_reproduce import measured

STAIRS = (40.0, 44.0, 60.0, 64.0, 75.2, 79.2)
"""Of 80 per cent, by a classifier at each of six places."""
NO_HARM = (80.0,) * 6
HARM = (74.4, 76.0, 77.0, 78.0, 79.0, 80.0)


# One intermediate classifier


def one_classifier(
    *,
    own: dict[str, tuple[float, ...]] | None = None,
    last: dict[str, tuple[float, ...]] | None = None,
    kinds: tuple[str, ...] = tuple(HEADS),
) -> dict[str, Measurement]:
    """The accuracy of the intermediate classifier, and of the last, by family; alone, the last has about 80 per cent.

    - kinds: of classifiers that these are the accuracies of; the others climb the stairs and do no harm
    """
    systems = {subject.name: subject for subject in find_experiment("why").subjects}
    made = {}
    for family, heads in itertools.product(FAMILIES, HEADS):
        *alone, _, _, _, _, _, _ = why_names(family, heads)
        others = why_names(family, heads)[len(alone) :]
        for name, accuracy in zip(alone, (79, 80, 81), strict=True):
            made[name] = network(name, (100, accuracy))
        given = heads in kinds
        own_accuracies = ((own or {}) if given else {}).get(family, STAIRS)
        last_accuracies = ((last or {}) if given else {}).get(family, NO_HARM)
        for name, first, final in zip(others, own_accuracies, last_accuracies, strict=True):
            made[name] = network(name, (50, first), (100, final))
    return {name: replace(one, network=systems[name].network.to_dict()) for name, one in made.items()}


@pytest.mark.parametrize(
    ("kinds", "verdict"), [((), "no"), (("pool",), "in part"), (("conv",), "in part"), (("conv", "pool"), "yes")]
)
def test_a_claim_is_asked_of_both_kinds_of_classifiers(kinds: tuple[str, ...], verdict: str) -> None:
    finding = found("by up to 7%", one_classifier(last={"ResNet": HARM}, kinds=kinds))
    assert finding.verdict == verdict
    assert finding.holds is (verdict == "yes")
    words, pooled = finding.measured.split("; classifiers that only pool: ")
    assert words.startswith("classifiers like MSDNet's: at most ")
    assert pooled.startswith("at most 7.0%" if "pool" in kinds else "at most 0.0%")


def without_those_that_pool(networks: dict[str, Measurement]) -> dict[str, Measurement]:
    return {name: one for name, one in networks.items() if "pooled" not in name}


def test_what_fails_with_one_kind_is_false_before_the_other_is_measured() -> None:
    finding = found("by up to 7%", without_those_that_pool(one_classifier()))
    assert finding.verdict == "no"
    assert finding.measured.endswith("; classifiers that only pool: not measured yet")
    harmed = without_those_that_pool(one_classifier(last={"ResNet": HARM}))
    assert judge(claim("by up to 7%"), harmed) is None, "it may hold with both"


def test_against_classifiers_that_pool_alone_msdnet_is_better_in_part() -> None:
    accuracies: tuple[float, ...] = (10.0, 20.0, *STAIRS[2:])
    low = dict.fromkeys(("ResNet", "DenseNet"), accuracies)
    finding = found("accuracy of early classifiers", one_classifier(own=low, kinds=("pool",)))
    assert finding.verdict == "in part"


@pytest.mark.parametrize(
    ("resnet", "kinds", "verdict"),
    [(59.9, ("conv", "pool"), "yes"), (60.8, ("pool",), "in part"), (60.8, ("conv", "pool"), "no"), (60.8, (), "yes")],
)
def test_early_classifiers_are_unsatisfactory_below_three_quarters(
    resnet: float, kinds: tuple[str, ...], verdict: str
) -> None:
    """Of 80 per cent; elsewhere they begin with half of it."""
    finding = found("unsatisfactorily high", one_classifier(own={"ResNet": (resnet, *STAIRS[1:])}, kinds=kinds))
    assert finding.verdict == verdict
    assert finding.measured.count(f"ResNet {resnet / 0.8:.0f}%, DenseNet 50%") == len(kinds)


def test_classifiers_that_pool_have_no_convolutions_and_msdnet_keeps_its_own() -> None:
    systems = {subject.name: subject for subject in find_experiment("why").subjects}
    for family in ("ResNet", "DenseNet"):
        *_, place = why_names(family, "pool")
        conv, pool = (create_network(systems[name].network) for name in (place.replace("pooled_", ""), place))
        assert len([layer for layer in conv.heads[0].modules() if isinstance(layer, torch.nn.Conv2d)]) == 2
        assert not [layer for layer in pool.heads[0].modules() if isinstance(layer, torch.nn.Conv2d)]
        assert place.startswith(f"why_{FAMILIES[family][0]}_pooled_at_")
    assert why_names("MSDNet", "pool") == why_names("MSDNet", "conv")


@pytest.mark.parametrize(("msdnet", "holds"), [(STAIRS, True), ((70.0, 60.0, 70.0, 60.0, 70.0, 60.0), False)])
def test_accuracy_follows_the_place_in_every_network(msdnet: tuple[float, ...], holds: bool) -> None:
    finding = found("highly correlated", one_classifier(own={"MSDNet": msdnet}))
    assert finding.holds is holds
    assert "0.99 in the DenseNet, 0.98 in the ResNet" in finding.measured


def test_a_correlation_below_four_fifths_is_not_high() -> None:
    finding = found("highly correlated", one_classifier(own={"MSDNet": (50.0, 40.0, 62.0, 58.0, 60.0, 60.0)}))
    assert not finding.holds
    assert "0.69 in the MSDNet" in finding.measured


@pytest.mark.parametrize(("resnet", "holds"), [(STAIRS, True), ((40.0, 50.0, 60.0, 70.0, 75.0, 79.0), False)])
def test_the_staircase_rises_after_the_second_and_the_fourth(resnet: tuple[float, ...], holds: bool) -> None:
    assert found("staircase", one_classifier(own={"ResNet": resnet})).holds is holds


def test_steps_of_the_staircase_are_per_cent_of_the_last_alone() -> None:
    assert "+5.0 +20.0 +5.0 +14.0 +5.0%" in found("staircase", one_classifier()).measured


@pytest.mark.parametrize(("second", "holds"), [(60.0, True), (44.9, False)])
def test_early_classifiers_are_met_at_the_others_places(second: float, holds: bool) -> None:
    """MSDNet's first are at 4/24, 7/24 and 11/24 of the layers, the DenseNet's before them, at 9/58, and at 17/58."""
    finding = found("accuracy of early classifiers", one_classifier(own={"MSDNet": (45.0, second, *STAIRS[2:])}))
    rise = (second - 45) / (7 / 24 - 4 / 24)
    before = 45 - rise * (4 / 24 - 9 / 58)
    between = second + (STAIRS[2] - second) / (11 / 24 - 7 / 24) * (17 / 58 - 7 / 24)
    assert finding.holds is holds
    assert f"{(before - 40) / 0.8:+.1f} {(between - 44) / 0.8:+.1f}% against the DenseNet's" in finding.measured


@pytest.mark.parametrize(("resnet", "holds"), [(HARM, True), ((78.0,) * 6, False)])
def test_harm_is_what_the_last_classifier_loses_at_most(resnet: tuple[float, ...], holds: bool) -> None:
    finding = found("by up to 7%", one_classifier(last={"ResNet": resnet}))
    assert finding.holds is holds
    assert finding.measured.count(f": at most {100 - min(resnet) / 0.8:.1f}%") == len(HEADS)


@pytest.mark.parametrize(("resnet", "holds"), [(HARM, True), (HARM[::-1], False)])
def test_harm_is_greater_in_early_layers(resnet: tuple[float, ...], holds: bool) -> None:
    assert found("attached to an earlier layer", one_classifier(last={"ResNet": resnet})).holds is holds


@pytest.mark.parametrize(("densenet", "holds"), [((78.0, *NO_HARM[1:]), True), ((77.0, *NO_HARM[1:]), False)])
def test_a_densenet_suffers_less_than_half(densenet: tuple[float, ...], holds: bool) -> None:
    finding = found("suffers much less", one_classifier(last={"ResNet": HARM, "DenseNet": densenet}))
    assert finding.holds is holds


def test_nobody_suffers_less_where_nobody_suffers() -> None:
    hardly = (79.0, *NO_HARM[1:])
    assert not found("suffers much less", one_classifier(last={"ResNet": hardly})).holds


@pytest.mark.parametrize("family", ["DenseNet", "MSDNet"])
@pytest.mark.parametrize(("first", "holds"), [(78.0, True), (77.0, False), (82.0, True), (83.0, False)])
def test_the_last_is_as_good_wherever_the_other_is(family: str, first: float, holds: bool) -> None:
    """The mean of the first two places, against that of the last two."""
    networks = one_classifier(last={family: (first, *NO_HARM[1:]), "ResNet": HARM})
    assert found("independent of the place", networks).holds is holds


@pytest.mark.parametrize("family", ["DenseNet", "MSDNet"])
@pytest.mark.parametrize(("fourth", "holds"), [(79.2, True), (78.0, False)])
def test_classifiers_interfere_where_the_last_one_loses_by_any_place(family: str, fourth: float, holds: bool) -> None:
    networks = one_classifier(last={family: (*NO_HARM[:3], fourth, *NO_HARM[4:])})
    finding = found("do not interfere", networks)
    assert finding.holds is holds
    assert f"{family} {100 - fourth / 0.8:.1f}%" in finding.measured


# Parts left out


Three = tuple[float, float, float]


def lacking(name: str, accuracies: Three, lazily: Three = (50, 150, 300)) -> Measurement:
    """Three exits stand for seven, at 50, 150 and 300 million multiply-adds of whole layers."""
    one = network(f"ablation_{name}", *zip((50, 150, 300), accuracies, strict=True))
    return replace(one, costs=tuple(round(cost * 1e6) for cost in lazily))


def ablated(
    dense: Three = (50.0, 60.0, 65.0), scales: Three = (60.0, 70.0, 75.0), plain: float = 74.5
) -> dict[str, Measurement]:
    """MSDNet has 65, 70 and 75 per cent on average of its seeds."""
    luck = dict(zip(ablation_names("msdnet"), (-1.0, 0.0, 1.0), strict=True))
    msdnets = [replace(lacking("msdnet", (65 + more, 70 + more, 75 + more)), name=name) for name, more in luck.items()]
    plains = zip(ablation_names("plain"), (plain + 0.5, plain, plain - 0.5), strict=True)
    return all_of(
        *msdnets,
        *(replace(lacking("without_dense", dense), name=name) for name in ablation_names("without_dense")),
        lacking("without_scales", scales),
        *(network(name, (295, right)) for name, right in plains),
    )


def test_what_others_are_judged_by_is_trained_from_several_seeds() -> None:
    names = {subject.name for subject in find_experiment("ablation").subjects}
    assert names >= {"ablation_msdnet", "ablation_msdnet_seed2", "ablation_plain_seed1", "ablation_without_dense_seed2"}
    assert not names & {"ablation_without_scales_seed1", "ablation_same_growth_seed1"}
    networks = ablated()
    del networks["ablation_plain_seed2"]
    assert judge(claim("similarly to MSDNet at just its own cost"), networks) is None


def test_what_is_not_dense_has_no_bottlenecks_and_all_cost_about_the_same() -> None:
    """There is nothing to narrow where nothing piles up."""
    for subject in find_experiment("ablation").subjects:
        built = create_network(subject.network)
        kernels = {layer.kernel_size for layer in built.modules() if isinstance(layer, torch.nn.Conv2d)}
        assert ((1, 1) in kernels) is subject.network.to_dict()["dense"], subject.name
        assert built.costs(32, lazy=False)[-1] == pytest.approx(3.0e8, rel=0.05), subject.name


@pytest.mark.parametrize(
    ("dense", "scales", "holds"),
    [
        ((50.0, 60.0, 65.0), (60.0, 70.0, 75.0), True),
        ((50.0, 60.0, 74.5), (60.0, 70.0, 75.0), False),  # the last exit is as good
        ((62.5, 67.5, 72.5), (65.0, 70.0, 75.0), False),  # worse everywhere, but not drastically
        ((60.0, 65.0, 70.0), (50.0, 60.0, 65.0), True),  # though scales matter more
        ((66.0, 58.0, 60.0), (65.0, 70.0, 75.0), False),  # better at first
    ],
)
def test_dense_connections_matter_to_the_end(dense: Three, scales: Three, holds: bool) -> None:
    finding = found("dense connections are crucial", ablated(dense, scales))
    assert finding.holds is holds
    assert finding.measured.count("(without several scales ") == 2


@pytest.mark.parametrize(
    ("scales", "holds"),
    [
        ((60.0, 70.0, 75.0), True),
        ((64.5, 70.0, 75.0), False),
        ((60.0, 68.5, 73.9), False),
        ((63.9, 69.2, 74.2), False),  # a little everywhere, a little more at first
    ],
)
def test_scales_matter_at_small_budgets_and_not_at_large_ones(scales: Three, holds: bool) -> None:
    """The lowest third of 50 to 300 ends at 91, where the first exit stands; the highest begins at 165."""
    finding = found("only in the lower budget regions", ablated(scales=scales))
    assert finding.holds is holds
    lowest = f"{scales[0] - 65:+.1f} points against MSDNet at the lowest third of the budgets from 50 to 300"
    assert finding.measured.startswith(f"by whole layers, {lowest}")


def test_what_comes_before_msdnets_first_answer_stands_when_that_comes() -> None:
    """An exit of 30 million is the newest answer at 50, where MSDNet's first is met: that early, much is lost."""
    networks = ablated()
    networks["ablation_without_scales"] = network("ablation_without_scales", (30, 45), (140, 70), (310, 75))
    finding = found("only in the lower budget regions", networks)
    assert "-20.0 points against MSDNet at the lowest third of the budgets from 50 to 310" in finding.measured


def test_parts_count_by_whole_layers_and_by_what_is_computed() -> None:
    """As good as MSDNet at the same cost of whole layers, for twice of what is computed."""
    networks = ablated()
    networks["ablation_same_growth"] = lacking("same_growth", (65.0, 70.0, 75.0), lazily=(100, 300, 600))
    finding = found("the same growth at all scales", networks)
    whole, lazily = finding.measured.split("; by what is computed, ")
    assert whole.startswith("by whole layers, 0.0 points")
    assert lazily.startswith("-3")
    assert finding.verdict == "in part"


@pytest.mark.parametrize(("same", "holds"), [((62.0, 68.0, 73.0), True), ((64.5, 69.5, 74.5), False)])
def test_the_same_growth_at_all_scales_is_judged_on_average(same: Three, holds: bool) -> None:
    networks = ablated() | all_of(lacking("same_growth", same))
    assert found("the same growth at all scales", networks).holds is holds


@pytest.mark.parametrize(
    ("plain", "similar", "above"), [(74.5, True, True), (72.0, False, True), (65.5, False, False), (77.0, False, True)]
)
def test_the_plain_network_is_met_at_its_cost(plain: float, similar: bool, above: bool) -> None:
    networks = ablated(plain=plain)
    finding = found("similarly to MSDNet at just its own cost", networks)
    assert finding.holds is similar
    assert finding.measured.startswith(f"{plain - 75:+.1f} points, at 295 against 300 million")
    assert "from 50 million on" in finding.measured
    assert found("substantially better at its cost", networks).holds is above


# Weights by the distribution of budgets


def weighted(name: str, *accuracies: float) -> Measurement:
    """Three exits, at 10, 40 and 120 million multiply-adds."""
    return measured(name, (11_000_000, 41_000_000, 121_000_000), tuple(value / 100 for value in accuracies))


EVENS = [weighted(name, 60, 70, 75 + more) for name, more in zip(prior_names(None), (-1, 0, 1), strict=True)]
FOR_15, FOR_45, FOR_160 = (
    weighted("prior_15m", 61, 69.5, 72),
    weighted("prior_45m", 60.5, 70.5, 74.5),
    weighted("prior_160m", 58.5, 71, 76.3),
)


def test_a_prior_helps_if_each_is_better_than_the_opposite_on_its_own_budgets() -> None:
    finding = found("what is known of the budgets", all_of(*EVENS, FOR_15, FOR_45, FOR_160))
    assert finding.holds
    assert "trained for 15, 45, 160 M: " in finding.measured
    assert finding.measured.count(" at a mean of ") == 3
    assert finding.measured.endswith(" (3 exits, 10 epochs; seeds of equal weights differ by up to 1.0)")


def test_a_prior_does_not_help_where_the_opposite_or_none_is_as_good() -> None:
    swapped = replace(FOR_160, name="prior_15m"), replace(FOR_15, name="prior_160m")
    assert found("what is known of the budgets", all_of(*EVENS, FOR_45, *swapped)).verdict == "no"
    nothing = [replace(EVENS[1], name=one.name) for one in (FOR_15, FOR_45, FOR_160)]
    assert found("what is known of the budgets", all_of(*EVENS, *nothing)).verdict == "no"
    worse = weighted("prior_45m", 58, 68, 73)  # than equal weights, on the budgets that it is made for
    assert not found("what is known of the budgets", all_of(*EVENS, FOR_15, worse, FOR_160)).holds
    # Each is better than the opposite, and less than a point worse than equal weights: but it brings nothing.
    hardly = (
        weighted("prior_15m", 59.4, 69, 72),
        weighted("prior_45m", 59.2, 69.5, 74),
        weighted("prior_160m", 57, 70, 75),
    )
    assert found("what is known of the budgets", all_of(*EVENS, *hardly)).verdict == "in part"


def test_a_prior_that_harms_one_kind_of_budgets_helps_in_part() -> None:
    """The others gain so much that the mean is fine, and each is better than the opposite."""
    much, harmed = weighted("prior_15m", 66, 68, 68), weighted("prior_160m", 58, 68.7, 73.7)
    assert found("what is known of the budgets", all_of(*EVENS, much, FOR_45, harmed)).verdict == "in part"


def test_a_prior_does_not_help_if_the_opposite_is_as_good_for_one_kind_of_budgets() -> None:
    both = weighted("prior_15m", 62, 71, 76.3)
    assert found("what is known of the budgets", all_of(*EVENS, both, FOR_45, FOR_160)).verdict == "no"


def test_equal_weights_do_well_unless_others_are_much_better() -> None:
    """That weights made for the budgets are better, and that equal ones do well, can both be true."""
    better = weighted("prior_45m", 61.5, 71.5, 76.5)
    networks = all_of(*EVENS, FOR_15, better, FOR_160)
    assert found("what is known of the budgets", networks).holds
    assert found("the same weight for all exits", networks).holds
    much_better = weighted("prior_45m", 63.5, 73.5, 78.5)
    assert not found("the same weight for all exits", all_of(*EVENS, FOR_15, much_better, FOR_160)).holds


def test_a_prior_must_bring_more_than_chance_could() -> None:
    """A third of a point on average is nothing, after three trainings."""
    little = (
        weighted("prior_15m", 60.8, 69, 72),
        weighted("prior_45m", 60.2, 70.2, 75),
        weighted("prior_160m", 58.5, 70.2, 75.3),
    )
    assert not found("what is known of the budgets", all_of(*EVENS, *little)).holds


def test_budgets_of_a_prior_are_spent_on_what_is_computed() -> None:
    one = weighted("prior_15m", 60, 70, 75)
    dearer = replace(one, whole_costs=tuple(2 * cost for cost in one.whole_costs))
    assert expected_accuracy([dearer]) == expected_accuracy([one])
    assert expected_accuracy([replace(one, costs=one.whole_costs)]) != expected_accuracy([one])


def test_gains_of_a_prior_are_those_of_an_answer() -> None:
    """Two points at every exit are two points, though of budgets of 10 million on average most bring no answer."""
    better = weighted("prior_15m", 62, 72, 77)
    gains = gain_over_even_weights([*EVENS, better])
    assert [place.x for place in gains][:2] == [10, 15]
    assert [place.y for place in gains] == pytest.approx([2.0] * len(gains))
