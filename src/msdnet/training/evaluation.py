"""What every exit says of the images of one part of a data set."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msdnet.data.base import UNREADABLE, Batch, ImageData
from msdnet.files import Part
from msdnet.networks import StagedNetwork

__all__ = ["accuracies_on", "all_logits", "exit_accuracies"]

_SMALL_IMAGE, _EVALUATION_BATCH = 64 * 64, 500


@torch.inference_mode()
def exit_accuracies(network: StagedNetwork, batches: Iterable[Batch], what: str = "images") -> tuple[float, ...]:
    """The share of right answers at each exit, in evaluation mode, which is put back, and in float32.

    On a GPU convolutions may round it to TF32, torch's default: what is measured for good is measured by `all_logits`.

    `what` names the images, for the error where none of them can be read or none is there.
    """
    device = next(network.parameters()).device
    correct = torch.zeros(network.exit_count, dtype=torch.long, device=device)
    seen = torch.zeros((), dtype=torch.long, device=device)
    with _evaluating(network):
        for images, labels in batches:
            correct += (torch.stack(network(images)).argmax(dim=2) == labels).sum(dim=1)
            seen += (labels != UNREADABLE).sum()
    _check_any(int(seen), what)
    return tuple((correct / seen).tolist())


def accuracies_on(network: StagedNetwork, data: ImageData, part: Part, batch_size: int) -> tuple[float, ...]:
    """The same of a part of the data, as many images at a time as surely fit.

    No gradients are kept, so these are more than the `batch_size` of the training.
    """
    _, height, width = data.image_shape
    rows = _EVALUATION_BATCH if height * width <= _SMALL_IMAGE else 2 * batch_size
    return exit_accuracies(network, data.batches(part, rows), f"{part} images of {data.name}")


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
    _check_any(sum(map(len, labels)))
    return np.concatenate(logits), np.concatenate(labels)


def _check_any(readable: int, what: str = "images") -> None:
    if not readable:
        raise ValueError(f"there must be {what} that can be read to judge a network by, got none")


@contextmanager
def _evaluating(network: StagedNetwork) -> Iterator[None]:
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)
