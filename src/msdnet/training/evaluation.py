"""What every exit says of the images of one part of a data set."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msdnet.data.base import UNREADABLE, Batch
from msdnet.networks import StagedNetwork

__all__ = ["all_logits", "evaluate"]


@torch.inference_mode()
def evaluate(network: StagedNetwork, batches: Iterable[Batch]) -> tuple[float, ...]:
    """The share of right answers at each exit, in evaluation mode and full precision; the mode is put back."""
    device = next(network.parameters()).device
    correct = torch.zeros(network.exit_count, dtype=torch.long, device=device)
    seen = torch.zeros((), dtype=torch.long, device=device)
    with _evaluating(network):
        for images, labels in batches:
            correct += (torch.stack(network(images)).argmax(dim=2) == labels).sum(dim=1)
            seen += (labels != UNREADABLE).sum()
    return tuple((correct / seen.clamp(min=1)).tolist())


@torch.inference_mode()
def all_logits(network: StagedNetwork, batches: Iterable[Batch]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The logits (images, exits, classes) of all readable images, as exact as a CPU's, and their labels."""
    device = next(network.parameters()).device
    logits, labels = [], []
    with _evaluating(network), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for images, truth in batches:
            readable = truth != UNREADABLE
            answers: Tensor = torch.stack(network(images[readable].to(device)), dim=1)
            logits.append(answers.float().cpu().numpy())
            labels.append(truth[readable].cpu().numpy())
    if not labels:
        raise ValueError("there must be images to judge a network by, got none")
    return np.concatenate(logits), np.concatenate(labels)


@contextmanager
def _evaluating(network: StagedNetwork) -> Iterator[None]:
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)
