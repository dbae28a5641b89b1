"""Claims are judged by what was measured: one that holds, one that does not, and what is not measured yet."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from msdnet import models
from msdnet.bundle import MANIFEST, Measured
from msdnet.networks import outline
from msdnet.reproduce import CLAIMS, EXPERIMENTS, Claim, Finding, Measurement, find_experiment, judge, judge_all
from msdnet.reproduce.claims.claim import NOT_YET, SECTIONS, Results, sum_up
from msdnet.reproduce.claims.readings import Gains, Tradeoff, against_each, span
from msdnet.reproduce.claims.systems import best_of_msdnets, within_budgets
from msdnet.reproduce.figure import Place
from msdnet.reproduce.subjects import Subject
from tests.helpers import TINY, tiny_bundle
from tests.unit.test_reproduce import measured, point

MILLION = 1_000_000
IMAGENET: dict[str, Any] = {"classes": [f"n{k:08}" for k in range(1000)], "training": 1_231_167, "held_out": 50_000}


def claim(words: str) -> Claim:
    (found,) = (one for one in CLAIMS if words in one.says)
    return found


def found(words: str, networks: dict[str, Measurement]) -> Finding:
    finding = judge(claim(words), networks)
    assert finding is not None
    return finding


def network(name: str, *exits: tuple[float, float], budgets: tuple[tuple[float, float], ...] = ()) -> Measurement:
    """Exits, and budgets, as millions of multiply-adds and accuracies in per cent."""
    points: tuple[Any, ...] = tuple(point(name, cost * 1e6, right / 100, right / 100) for cost, right in budgets)
    costs, accuracies = zip(*exits, strict=True)
    return measured(name, tuple(round(cost * MILLION) for cost in costs), tuple(a / 100 for a in accuracies), points)


def all_of(*networks: Measurement) -> dict[str, Measurement]:
    return {one.name: one for one in networks}


MSDNET = network("cifar_anytime", (15, 60), (50, 70), (100, 74))


def batch_networks(*budgets: tuple[float, float]) -> list[Measurement]:
    """One of five is good; all of them can spend 300 million."""
    nothing = ((10.0, 1.0),)
    others = [network(f"cifar_batch_{exits}", (9, 1), (300, 1), budgets=nothing) for exits in range(5, 9)]
    return [network("cifar_batch_4", (10, 50), (300, 80), budgets=budgets), *others]


# What can be judged


def test_nothing_is_said_of_what_is_not_measured() -> None:
    assert all(judge(one, all_of(MSDNET)) is None for one in CLAIMS if one.experiment)


def test_a_mistake_is_not_taken_for_something_that_is_not_measured() -> None:
    def mistaken(_: object) -> Finding:
        findings: dict[str, Finding] = {}
        return findings["ResNet"]

    with pytest.raises(KeyError, match="ResNet"):
        judge(Claim("something", "1", mistaken), {})


def test_every_claim_is_judged_or_says_why_not() -> None:
    assert [one.says for one in CLAIMS if not one.find and one.otherwise == NOT_YET] == []
    assert len({one.says for one in CLAIMS}) == len(CLAIMS)
    sections = [SECTIONS.index(one.section) for one in CLAIMS]
    assert sections == sorted(sections), "in the order of the paper"
    assert {one.experiment for one in CLAIMS if one.experiment} == {*EXPERIMENTS, "gallery"}


def made_up(subject: Subject) -> Measurement:
    """The deeper an exit, the better."""
    layers = subject.network.exit_layers
    costs = [20.0 * (k + 1) for k in range(len(layers))] if len(layers) > 1 else [90.0]
    exits = ((cost, 50 + 20 * layer / layers[-1]) for cost, layer in zip(costs, layers, strict=True))
    made = network(subject.name, *exits, budgets=((20, 60), (50, 65), (120, 70)))
    return replace(made, network=subject.network.to_dict(), images=IMAGENET)


@pytest.mark.parametrize("one", [one for one in CLAIMS if one.find and one.experiment], ids=lambda one: one.says)
def test_every_claim_can_be_judged_by_the_systems_of_its_experiment(one: Claim) -> None:
    """With numbers made up: all that a claim takes is something that its experiment measures."""
    assert one.experiment is not None
    finding = judge(one, all_of(*map(made_up, find_experiment(one.experiment).subjects)))
    assert finding is not None
    assert isinstance(finding.holds, bool)
    assert re.search(r"\d", finding.measured)
    assert not re.search(r"nan|inf\b", finding.measured)


# Claims that sum up others

TRUE, FALSE, IN_PART = Finding("", True), Finding("", False), Finding("", False, in_part=True)


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([TRUE, TRUE], "yes"),
        ([TRUE, None], None),
        ([None, None], None),
        ([None, IN_PART], None),
        ([None, FALSE], "no"),
        ([TRUE, FALSE], "no"),
        ([IN_PART, FALSE], "no"),
        ([TRUE, IN_PART], "in part"),
    ],
)
def test_a_sum_is_true_if_all_are_and_false_if_one_is(parts: list[Finding | None], verdict: str | None) -> None:
    finding = sum_up({Claim(f"part {number}", "1"): part for number, part in enumerate(parts)})
    assert (finding and finding.verdict) == verdict


def test_the_abstract_is_judged_by_its_parts() -> None:
    """One is found false: MSDNet has 70 per cent at 90 million, and ResNet-MC has more."""
    others = network("resnet_mc", (90, 80)), network("densenet_mc", (40, 55))
    judged = judge_all({"anytime-cifar100": all_of(MSDNET, *others)})
    assert list(judged) == list(CLAIMS)
    assert judged[claim("on three data sets")] == Finding(
        "sums up 7 claims: 0 true, 0 true in part, 1 false (anytime: MSDNet is substantially above ResNet-MC and "
        "DenseNet-MC at any budget), 6 open",
        False,
    )
    assert judge_all({})[claim("on three data sets")] is None


# What is counted


@pytest.mark.parametrize(
    ("words", "measured", "verdict"),
    [
        ("network reduction", "134.1 instead of 199.5 million", "yes"),
        ("lazy evaluation", "13.3 instead of 15.0 million multiply-adds to its first exit, fewer at 7 of 11", "yes"),
        (
            "more filters to high-resolution maps",
            "DenseNet-100: 69% of the multiply-adds at full size, 0.80 M parameters",
            "in part",
        ),
        (
            "each of the three MSDNets",
            "`imagenet_4` from 337 to 1,356, `imagenet_6` from 511 to 2,735, `imagenet_7` from 612",
            "yes",
        ),
        ("would add 3170 years", "3,169 years", "yes"),
    ],
)
def test_costs_are_counted_without_any_training(words: str, measured: str, verdict: str) -> None:
    finding = found(words, {})
    assert measured in finding.measured
    assert finding.verdict == verdict


def test_what_networks_with_classifiers_cost_is_as_counted() -> None:
    costs = [f"{outline(name).costs(32)[-1] / 1e8:.2f}e8" for name in ("resnet_mc", "densenet_mc")]
    assert claim("both take about 1.3e8").otherwise.startswith("here {} and {}, ".format(*costs))


SMALL = "less than 1 million parameters"


@pytest.mark.parametrize(("width", "right", "holds"), [(1, 0.935, True), (1, 0.925, False), (40, 0.935, False)])
def test_the_small_model_is_judged_by_its_manifest(
    width: int, right: float, holds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tiny_bundle(tmp_path / "cifar10-small", config=replace(TINY, growth=width * TINY.growth))
    monkeypatch.setattr(models, "_here", lambda: tmp_path)
    assert judge(claim(SMALL), {}) is None, "not tested"
    tested = replace(bundle.manifest, test=Measured(images=10, accuracy=(0.5, 0.6, right)))
    (bundle.folder / MANIFEST).write_text(tested.to_json())
    finding = found(SMALL, {})
    assert finding.holds is holds
    assert f"M parameters, {100 * (1 - right):.2f}% of the test images wrong" in finding.measured


def test_without_the_small_model_nothing_is_said_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_here", lambda: tmp_path)
    assert judge(claim(SMALL), {}) is None
    assert claim(SMALL).otherwise == NOT_YET


# What is read off measurements


def test_whoever_has_more_to_spend_has_the_last_place() -> None:
    """Of budgets, the largest chose a network that spends less than another did before."""
    chosen = Tradeoff([Place(10, 60), Place(90, 72), Place(80, 74)], full=100)
    assert chosen.gains([Place(5, 0), Place(10, 50), Place(95, 70), Place(120, 70)]) == Gains([10, 4], [4])
    assert chosen.at(85) == pytest.approx(72.97, abs=0.05)
    assert chosen.at(9) == 0, "there is no answer yet"


def test_what_costs_as_much_as_can_be_spent_is_within_its_costs() -> None:
    assert Tradeoff([Place(10, 60), Place(100, 74)], full=100).gains([Place(100, 70)]) == Gains([4], [])


def test_a_system_that_was_trained_in_another_way_is_not_enough_by_itself() -> None:
    """Defeated by it alone a claim holds in part, but not if there was nothing else to meet."""
    ours = Tradeoff([Place(10, 60)], full=10)
    published, trained = {"published": [Place(10, 70)]}, {"trained": [Place(10, 50)]}
    for rivals, verdict in ((published, "no"), (published | trained, "in part"), (trained, "yes")):
        finding = against_each(ours, rivals, lambda _, gains: gains.above(0), aside="published")
        assert finding.verdict == verdict


def test_what_msdnets_can_spend_is_what_whole_layers_of_the_costliest_take() -> None:
    networks = Results(all_of(*batch_networks((10, 60))))
    networks["cifar_batch_6"] = network("cifar_batch_6", (10, 1), (500, 1), budgets=((10, 1),))
    assert best_of_msdnets(networks).full == 500
    assert within_budgets(networks["cifar_batch_6"]).full == 500


def test_in_steps_the_newest_answer_stands() -> None:
    exits = Tradeoff([Place(10, 60), Place(20, 80)], full=20, steps=True)
    assert [exits.at(millions) for millions in (9, 10, 19, 20, 99)] == [0, 60, 60, 80, 80]


def test_nothing_to_compare_is_said_and_breaks_nothing() -> None:
    assert span([]) == "none"
    assert Gains([], []).against("ResNets") == "none of ResNets within its costs"
