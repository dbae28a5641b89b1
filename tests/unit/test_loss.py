import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from msdnet import create_network
from msdnet.anytime import Exponential, Uniform
from msdnet.data import UNREADABLE
from msdnet.networks import MSDNet
from msdnet.training.loss import BalancedExits, boosted, exit_weights, is_readable, training_loss
from msdnet.training.recipe import Distillation, ExitWeights, Loss
from tests.helpers import SMALL_SYSTEMS, TINY


def test_is_the_papers_weighted_sum_of_cross_entropies() -> None:
    logits, labels = torch.randn(3, 5, 4), torch.randint(0, 4, (5,))
    weights = torch.tensor([0.5, 1.0, 1.5])
    expected = sum(w * functional.cross_entropy(x, labels) for w, x in zip(weights, logits, strict=True))
    assert float(training_loss(logits, labels, weights, Loss())) == pytest.approx(float(expected))


def test_smoothing_is_torchs_own() -> None:
    logits, labels = torch.randn(1, 6, 4), torch.tensor([0, 1, 2, 3, 0, 1])
    found = training_loss(logits, labels, torch.ones(1), Loss(label_smoothing=0.3))
    torch.testing.assert_close(found, functional.cross_entropy(logits[0], labels, label_smoothing=0.3))


def test_unreadable_images_count_nowhere() -> None:
    logits, labels = torch.randn(2, 4, 3), torch.tensor([0, UNREADABLE, 2, 1])
    readable = labels != UNREADABLE
    for loss in (Loss(), Loss(label_smoothing=0.1, distillation=Distillation(weight=1))):
        ones = torch.ones(2)
        assert float(training_loss(logits, labels, ones, loss)) == pytest.approx(
            float(training_loss(logits[:, readable], labels[readable], ones, loss))
        )
    assert float(training_loss(logits, torch.full((4,), UNREADABLE), torch.ones(2), Loss())) == 0


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_a_mixed_image_is_that_of_its_labels_mixed(smoothing: float) -> None:
    logits, first, second = torch.randn(2, 5, 4), torch.randint(0, 4, (5,)), torch.randint(0, 4, (5,))
    loss, share, ones = Loss(label_smoothing=smoothing, distillation=Distillation(weight=1)), 0.3, torch.ones(2)
    mixed = share * functional.one_hot(first, 4) + (1 - share) * functional.one_hot(second, 4)
    apart = [float(training_loss(logits, labels, ones, loss)) for labels in (first, second)]
    assert float(training_loss(logits, mixed, ones, loss)) == pytest.approx(share * apart[0] + (1 - share) * apart[1])


def test_an_image_without_a_share_of_any_class_counts_nowhere() -> None:
    logits, labels = torch.randn(2, 3, 4), torch.tensor([[0.5, 0.5, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]])
    readable = is_readable(labels)
    assert readable.tolist() == [True, False, True]
    assert is_readable(torch.tensor([0, UNREADABLE])).tolist() == [True, False]
    loss, ones = Loss(label_smoothing=0.1, distillation=Distillation(weight=1)), torch.ones(2)
    assert float(training_loss(logits, labels, ones, loss)) == pytest.approx(
        float(training_loss(logits[:, readable], labels[readable], ones, loss))
    )


def test_weights_are_uniform_given_or_derived_and_average_one() -> None:
    costs = (1.0, 2.0, 3.0)
    assert exit_weights(ExitWeights(), costs) == (1, 1, 1)
    assert exit_weights(ExitWeights(given=(1, 1, 2)), costs) == pytest.approx((0.75, 0.75, 1.5))
    assert exit_weights(ExitWeights(uniform=Uniform(low=0, high=5)), costs) == pytest.approx((0.75, 0.75, 1.5))
    falling = exit_weights(ExitWeights(first=4), costs)
    assert falling == pytest.approx((12 / 7, 6 / 7, 3 / 7))
    assert exit_weights(ExitWeights(first=4), costs[:1]) == (1,)
    exponential = exit_weights(ExitWeights(exponential=Exponential(mean=1)), costs)
    assert sum(exponential) == pytest.approx(3)
    assert exponential[0] / exponential[2] == pytest.approx((math.exp(-1) - math.exp(-2)) / math.exp(-3))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (ExitWeights(given=(1, 1)), "one weight for each of 3 exits"),
        (ExitWeights(given=(0, 0, 0)), "above 0 for some exit"),
        (ExitWeights(uniform=Uniform(low=0, high=0.5)), "above 0 for some exit"),
    ],
)
def test_refuses_weights(weights: ExitWeights, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        exit_weights(weights, (1.0, 2.0, 3.0))


def test_distillation_is_a_divergence_from_the_teacher() -> None:
    logits, labels, ones = torch.randn(4, 6, 3), torch.randint(0, 3, (6,)), torch.ones(4)
    plain = training_loss(logits, labels, ones, Loss())
    temperature = 2.0
    for teacher, rows in (("last", slice(3, 4)), ("later_half", slice(2, 4))):
        distillation = Distillation(weight=0.7, temperature=temperature, teacher=teacher)  # type: ignore[arg-type]
        target = (logits[rows] / temperature).softmax(dim=2).mean(dim=0)
        divergences = [
            functional.kl_div((x / temperature).log_softmax(dim=1), target, reduction="batchmean") for x in logits
        ]
        expected = plain + 0.7 * temperature**2 * sum(divergences)
        assert float(training_loss(logits, labels, ones, Loss(distillation=distillation))) == pytest.approx(
            float(expected)
        )


def test_a_teacher_is_not_taught_by_its_students() -> None:
    logits = torch.randn(2, 5, 3, requires_grad=True)
    only_divergence = Loss(distillation=Distillation(weight=1))
    labels, weights = torch.randint(0, 3, (5,)), torch.tensor([1.0, 0.0])
    torch.autograd.backward(training_loss(logits, labels, weights, only_divergence))
    assert logits.grad is not None
    assert float(logits.grad[0].abs().sum()) > 0
    assert float(logits.grad[1].abs().sum()) == 0


def gradients(network: MSDNet, images: torch.Tensor, balanced: bool) -> dict[str, torch.Tensor]:
    network.zero_grad()
    runner = BalancedExits(network) if balanced else network
    sum(logits.square().mean() for logits in runner(images)).backward()
    if isinstance(runner, BalancedExits):
        runner.restore_heads()
    return {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}


def test_balancing_averages_gradients_where_exits_share_layers_and_leaves_heads_alone() -> None:
    network = create_network(TINY).double().eval()
    images = torch.randn(4, 3, 12, 12, dtype=torch.float64)
    plain, balanced = (gradients(network, images, balanced) for balanced in (False, True))
    for name, gradient in plain.items():
        # Exits are at layers 1, 2 and 3: three share the seed layer and layer 1, two layer 2, one layer 3.
        shared_by = 1 if name.startswith("heads") else {"0": 3, "1": 3, "2": 2, "3": 1}[name[len("cells.layer")]]
        torch.testing.assert_close(balanced[name], gradient / shared_by)


@pytest.mark.parametrize("power", [0.0, 0.5, 2.0])
def test_a_boosted_exit_answers_with_the_average_so_far_and_teaches_itself_alone(power: float) -> None:
    config = replace(TINY, averaging=power)
    shares = config.exit_shares
    assert shares is not None
    logits = torch.randn(len(shares), 5, 3, requires_grad=True)
    answers = boosted(logits, shares)
    weights = torch.arange(1, len(shares) + 1).double() ** power
    for k in range(len(shares)):
        average = torch.einsum("k,knc->nc", weights[: k + 1], logits[: k + 1].double()) / weights[: k + 1].sum()
        torch.testing.assert_close(answers[k], average.float())
        (gradient,) = torch.autograd.grad(answers[k].sum(), logits, retain_graph=True)
        assert (
            [float(g.min()) for g in gradient]
            == [float(g.max()) for g in gradient]
            == [float(k == j) for j in range(len(shares))]
        )


def test_another_network_teaches_the_later_exits_and_they_the_others() -> None:
    logits, taught, labels = torch.randn(4, 6, 3), torch.randn(6, 3), torch.randint(0, 3, (6,))
    weights = torch.tensor([1.0, 2.0, 0.5, 0.5])
    plain = training_loss(logits, labels, weights, Loss())
    distillation = Distillation(weight=0.7, temperature=3.0, teacher="network")
    own = (logits[2:] / 3).softmax(dim=2).mean(dim=0)
    targets = [own, own, *[(taught / 3).softmax(dim=1)] * 2]
    divergences = [
        functional.kl_div((x / 3).log_softmax(dim=1), target, reduction="batchmean")
        for x, target in zip(logits, targets, strict=True)
    ]
    expected = plain + 0.7 * 9 * sum(w * d for w, d in zip(weights, divergences, strict=True))
    found = training_loss(logits, labels, weights, Loss(distillation=distillation), taught)
    assert float(found) == pytest.approx(float(expected))


@pytest.mark.parametrize("system", ["fractalnet", "ensemble"])
def test_exits_without_a_classifier_each_cannot_be_balanced(system: str) -> None:
    with pytest.raises(
        ValueError, match=rf"{system} has no classifier \(heads\) for each exit: nothing can be balanced"
    ):
        BalancedExits(create_network(SMALL_SYSTEMS[system]))
