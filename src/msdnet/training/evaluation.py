"""Accuracy of every exit on one part of a data set."""

from collections.abc import Iterable

import torch

from msdnet.data.base import UNREADABLE, Batch
from msdnet.networks import StagedNetwork

__all__ = ["evaluate"]


@torch.inference_mode()
def evaluate(network: StagedNetwork, batches: Iterable[Batch]) -> tuple[float, ...]:
    """The share of right answers at each exit, in evaluation mode and full precision; the mode is put back."""
    was_training = network.training
    network.eval()
    device = next(network.parameters()).device
    correct = torch.zeros(network.exit_count, dtype=torch.long, device=device)
    seen = torch.zeros((), dtype=torch.long, device=device)
    for images, labels in batches:
        correct += (torch.stack(network(images)).argmax(dim=2) == labels).sum(dim=1)
        seen += (labels != UNREADABLE).sum()
    network.train(was_training)
    return tuple((correct / seen.clamp(min=1)).tolist())
