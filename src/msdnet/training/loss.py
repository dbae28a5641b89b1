"""What is minimised: the sum over exits of w_k times cross-entropy, and what may be added to it."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from msdnet.anytime import answer_probabilities
from msdnet.data.base import UNREADABLE
from msdnet.networks import StagedNetwork
from msdnet.training.recipe import Distillation, ExitWeights, Loss

__all__ = ["BalancedExits", "boosted", "exit_weights", "is_readable", "training_loss"]


def exit_weights(weights: ExitWeights, costs: Sequence[float]) -> tuple[float, ...]:
    """One weight for each exit, 1 on average.

    Those derived from budgets are the chance that a budget ends between an exit and the next one.
    """
    exits = len(costs)
    if weights.given is not None:
        if len(weights.given) != exits:
            raise ValueError(f"exit_weights.given must have one weight for each of {exits} exits, got {weights.given}")
        raw = weights.given
    elif weights.first is not None:
        raw = tuple(weights.first ** (1 - k / max(exits - 1, 1)) for k in range(exits))
    elif weights.budgets is not None:
        raw = answer_probabilities(costs, weights.budgets)
    else:
        raw = (1.0,) * exits
    if sum(raw) <= 0:
        raise ValueError(f"exit_weights must be above 0 for some exit, got {raw} for costs {tuple(costs)}")
    return tuple(weight * exits / sum(raw) for weight in raw)


def training_loss(logits: Tensor, labels: Tensor, weights: Tensor, loss: Loss, taught: Tensor | None = None) -> Tensor:
    """The loss of a batch from logits (exits, N, classes), labels and weights (exits).

    Labels are (N) or, where images were mixed, (N, classes): each class's share of the image.
    `taught` are the logits (N, classes) of the network that teaches, where one does.
    """
    exits, rows, _ = logits.shape
    logits = logits.float()
    readable = is_readable(labels)
    entropies = functional.cross_entropy(
        logits.flatten(0, 1),
        labels.repeat(exits, *[1] * (labels.ndim - 1)),
        ignore_index=UNREADABLE,
        label_smoothing=loss.label_smoothing,
        reduction="none",
    ).view(exits, rows)
    if loss.distillation.weight:
        entropies = entropies + loss.distillation.weight * _distillation(logits, taught, loss.distillation)
    return (weights @ (entropies * readable)).sum() / readable.sum().clamp(min=1)


def boosted(logits: Tensor, shares: Sequence[float]) -> Tensor:
    """What the exits answer (exits, N, classes): averages of the logits so far, where exit k's own have the share s_k.

    An exit learns from its answer as if that were its own logits, and teaches the exits before it nothing: the average
    would give it s_k of its gradient, less and less from exit to exit.
    """
    answers = [logits[0]]
    for own, share in zip(logits[1:], shares[1:], strict=True):
        average = share * own + (1 - share) * answers[-1]
        answers.append(average.detach() + own - own.detach())
    return torch.stack(answers)


def is_readable(labels: Tensor) -> Tensor:
    """Which images (N) have a label: an unreadable one has UNREADABLE, or no share of any class."""
    return labels != UNREADABLE if labels.ndim == 1 else labels.any(dim=1)


def _distillation(logits: Tensor, taught: Tensor | None, distillation: Distillation) -> Tensor:
    """Divergence (exits, N) of each exit from its teacher, both softened; scaled to keep gradients comparable."""
    temperature = distillation.temperature
    log_students = functional.log_softmax(logits / temperature, dim=2)
    first = len(logits) - 1 if distillation.teacher == "last" else len(logits) // 2
    teachers = log_students.detach()[first:]
    log_teacher = teachers.logsumexp(dim=0) - math.log(len(teachers))
    if distillation.teacher == "network":
        assert taught is not None
        log_network = functional.log_softmax(taught.float() / temperature, dim=1)
        log_teacher = torch.stack([log_teacher] * first + [log_network] * len(teachers))
    return temperature**2 * (log_teacher.exp() * (log_teacher - log_students)).sum(dim=2)


class BalancedExits(nn.Module):
    """A network whose gradients are averaged, instead of added, where they meet at an exit.

    Of K exits, exit k and the K - k later ones share the layers before it: each counts 1 / (K - k + 1) there, so
    that those layers see gradients of the same size wherever they are in the network.
    """

    def __init__(self, network: StagedNetwork) -> None:
        super().__init__()
        if len(getattr(network, "heads", ())) != network.exit_count:  # one for all, or out of sight, as in an ensemble
            raise ValueError(
                f"a {network.config.kind} has no classifier (heads) for each exit: nothing can be balanced"
            )
        self.network = network

    def forward(self, images: Tensor) -> list[Tensor]:
        logits, state = [], self.network.begin(images, lazy=False)
        for exits_left in range(self.network.exit_count, 0, -1):
            answer, state = self.network.advance(state)
            logits.append(_ScaleGradient.apply(answer, 1 / exits_left))
            later = (exits_left - 1) / exits_left
            state = replace(state, maps={name: _ScaleGradient.apply(x, later) for name, x in state.maps.items()})
        return logits

    @torch.no_grad()
    def restore_heads(self) -> None:
        """After the backward pass, give each head its full gradient back: no other exit shares it."""
        for k, head in enumerate(self.network.heads):
            gradients = [parameter.grad for parameter in head.parameters() if parameter.grad is not None]
            torch._foreach_mul_(gradients, float(self.network.exit_count - k))


class _ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, tensor: Tensor, scale: float) -> Tensor:
        ctx.scale = scale  # type: ignore[attr-defined]
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * ctx.scale, None  # type: ignore[attr-defined]
