"""What several tests need: networks whose BN has seen data, and a measure of how far apart logits are."""

from collections.abc import Iterator

import torch
from torch import Tensor

from msdnet.networks import MSDNet, StagedNetwork


def settle(network: MSDNet, side: int = 32, batches: int = 3, rows: int = 8) -> MSDNet:
    """Set the BN statistics by a few training-mode batches, then switch to evaluation mode."""
    network.train()
    with torch.no_grad():
        for _ in range(batches):
            network(torch.randn(rows, network.config.input_channels, side, side) * 1.5 + 0.3)
    return network.eval()


@torch.inference_mode()
def run_stages(network: StagedNetwork, images: Tensor) -> Iterator[Tensor]:
    state = network.begin(images)
    for _ in range(network.exit_count):
        logits, state = network.advance(state)
        yield logits


def distance(logits: Tensor, reference: Tensor) -> float:
    """The largest difference, relative to the exit's largest absolute logit."""
    return float((logits - reference).abs().max() / reference.abs().max())
