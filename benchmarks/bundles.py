"""Bundles to measure with. What a stage takes does not depend on what was learnt, so the networks are not trained."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from msdnet.bundle import Bundle, ImageSpec
from msdnet.data.base import Batch
from msdnet.export import export_network
from msdnet.networks import create_network

HELD_OUT = 500


def make_bundle(preset: str, folder: Path, *, side: int = 32) -> Bundle:
    """A network whose BN statistics and confidences vary as a trained network's do."""
    torch.manual_seed(0)
    network = create_network(preset).train()
    spec = ImageSpec(side=side, resize=side, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))
    with torch.no_grad():
        for _ in range(3):
            network(torch.randn(16, 3, side, side))
    images = (torch.from_numpy(make_images(HELD_OUT, side)).permute(0, 3, 1, 2) / 255 - 0.5) / 0.25
    held_out = [Batch(part, torch.zeros(len(part), dtype=torch.long)) for part in torch.split(images, 50)]
    classes = [str(number) for number in range(network.config.classes)]
    return export_network(network, folder, name=preset, classes=classes, images=spec, held_out=held_out)


def make_images(count: int, side: int = 32, seed: int = 0) -> NDArray[np.uint8]:
    """Noise of many contrasts, so that a network is not equally sure of all."""
    random = np.random.default_rng(seed)
    contrast = random.uniform(0.05, 0.5, (count, 1, 1, 1))
    pixels = 128 + 255 * contrast * random.standard_normal((count, side, side, 3))
    return np.clip(pixels, 0, 255).astype(np.uint8)
