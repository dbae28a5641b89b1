"""What several tests need: networks whose BN has seen data, how far apart logits are, small data, the command."""

import io
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from msdnet import MSDNetConfig
from msdnet.bundle import Bundle, ImageSpec
from msdnet.cli import main
from msdnet.data.base import Batch, Epoch, ImageData, Normalisation
from msdnet.export import export_network
from msdnet.files import Part
from msdnet.networks import StagedNetwork, create_network
from msdnet.systems import DenseNetConfig, EnsembleConfig, FractalNetConfig, ResNetConfig, WideResNetConfig

N = TypeVar("N", bound=StagedNetwork)


def settle(network: N, side: int = 32, batches: int = 3, rows: int = 8) -> N:
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


def close(logits: Tensor, reference: Tensor, scale: Tensor | None = None) -> bool:
    """At most 1e-5 apart, relative to the exit's largest absolute logit (that of `scale`, where rows were dropped)."""
    largest = (reference if scale is None else scale).abs().max()
    return bool((logits - reference).abs().max() <= 1e-5 * largest)


def in_a_child(act: Callable[[], object], seconds: float = 60) -> bool:
    """Whether a forked process comes to its end by this, and in time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and newer warn of every fork beside threads
        child = os.fork()
    if not child:
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (ended := os.waitpid(child, os.WNOHANG)) != (0, 0):
            return ended == (child, 0)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


class ColouredSquares(ImageData):
    """Three classes of small images, each with a colour of its own under noise: learnt in a few steps."""

    def __init__(self, train: int = 96, held_out: int = 24, side: int = 12) -> None:
        generator = torch.Generator().manual_seed(1)
        self.name = "squares"
        self.classes = ("red", "green", "blue")
        self.image_shape = (3, side, side)
        self.normalisation = Normalisation((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
        self.held_out_indices = tuple(range(held_out))
        self.held_out_seed = 0
        self._labels = torch.arange(train + 2 * held_out) % 3
        noise = torch.randn(len(self._labels), 3, side, side, generator=generator)
        self._images = noise + 1.5 * functional.one_hot(self._labels, 3)[:, :, None, None]
        self._parts: dict[Part, slice] = {
            "held_out": slice(0, held_out),
            "test": slice(held_out, 2 * held_out),
            "train": slice(2 * held_out, None),
        }

    def size(self, part: Part) -> int:
        return len(self._labels[self._parts[part]])

    def training_batches(self, epoch: Epoch) -> Iterator[Batch]:
        order, _ = epoch.order(self.size("train"))
        images, labels = self._images[self._parts["train"]], self._labels[self._parts["train"]]
        for rows in epoch.shares(order):
            yield Batch(images[rows], labels[rows])

    def batches(self, part: Part, batch_size: int) -> Iterator[Batch]:
        images, labels = self._images[self._parts[part]], self._labels[self._parts[part]]
        for start in range(0, len(images), batch_size):
            yield Batch(images[start : start + batch_size], labels[start : start + batch_size])


TINY = MSDNetConfig(
    exits=(1, 2, 3), scales=2, channel_factors=(1, 2), bottleneck_factors=(1, 2), head_width=8, growth=4
)

# The other systems, small: for images of 32 pixels and 5 classes.
SMALL_SYSTEMS = {
    "wide_resnet": WideResNetConfig(layers=10, widening=1, classes=5),
    "resnet": ResNetConfig(layers=8, classes=5),
    "resnet_mc": ResNetConfig(layers=14, exits=(1, 3, 4), head_width=8, classes=5),
    "stochastic": ResNetConfig(layers=14, survival=0.5, classes=5),
    "densenet_bc": DenseNetConfig(layers=16, growth=4, classes=5),
    "densenet_star": DenseNetConfig(layers=10, growth=4, doubling=True, classes=5),
    "densenet_mc": DenseNetConfig(layers=16, growth=3, exits=(1, 3, 4), head_width=8, classes=5),
    "fractalnet": FractalNetConfig(columns=3, widths=(4, 6), dropouts=(0.0, 0.1), classes=5),
    "ensemble": EnsembleConfig(members=(ResNetConfig(layers=8), DenseNetConfig(layers=10, growth=4)), classes=5),
}


def tiny_bundle(folder: Path, *, held_out: bool = True, seed: int = 0, config: MSDNetConfig = TINY) -> Bundle:
    """A network of three classes (and three exits), not trained, with its held-out confidences."""
    torch.manual_seed(seed)
    data = ColouredSquares(held_out=60)
    network = settle(create_network(config, classes=3), side=12)
    with torch.no_grad():  # answers that differ from image to image, as a trained network's do
        for head in network.heads:
            head[-1].weight.mul_(8)  # type: ignore[index]
    return export_network(
        network,
        folder,
        name="tiny",
        classes=data.classes,
        images=ImageSpec(side=12, resize=14, mean=(0.5, 0.4, 0.3), std=(0.2, 0.25, 0.3)),
        held_out=data.batches("held_out", 16) if held_out else None,
    )


def one_exit(folder: Path) -> Bundle:
    """A network like any other, which always answers at its end."""
    return tiny_bundle(folder, config=replace(TINY, exits=(3,)))


def run_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The `msdnet` command in this process: it need not wait for torch to be imported once more."""
    out, errors, shown = io.StringIO(), io.StringIO(), warnings.showwarning
    code: object = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(errors):
        patch.setattr(sys, "argv", ["msdnet", *arguments])
        try:
            main()
        except SystemExit as end:
            code = end.code
        finally:
            warnings.showwarning = shown
    return subprocess.CompletedProcess(["msdnet", *arguments], int(str(code or 0)), out.getvalue(), errors.getvalue())
