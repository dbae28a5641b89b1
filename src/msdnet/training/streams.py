"""The scales of an MSDNet side by side on one GPU.

In a layer the cells of different scales do not depend on each other, and heads depend on nothing that comes
after them; but each is too small to fill a GPU. Here every scale has a CUDA stream of its own, and so have the
heads. Autograd runs the backward pass on the same streams. All networks of a process share them: a training that has
others beside it uses them only while it captures its graph, which it does alone.
"""

from collections.abc import Hashable

import torch
from torch import Tensor, nn

from msdnet.device import side_stream
from msdnet.networks import MSDNet
from msdnet.plan import IMAGE, Cell

__all__ = ["ScalesSideBySide"]


class ScalesSideBySide(nn.Module):
    """Computes what `network(images)` computes, to the last bit."""

    def __init__(self, network: MSDNet) -> None:
        super().__init__()
        self.network = network
        device = next(network.parameters()).device
        self._scales = [_stream(device, f"scale {scale}") for scale in range(1, network.config.scales + 1)]
        self._heads = _stream(device, "heads")

    def forward(self, images: Tensor) -> list[Tensor]:
        network, main = self.network, torch.cuda.current_stream()
        start = main.record_event()
        for stream in (*self._scales, self._heads):
            stream.wait_event(start)
        maps: dict[Hashable, Tensor] = {IMAGE: images}
        made: dict[Cell, torch.cuda.Event] = {IMAGE: start}
        for cell, wiring in network.grid.cells.items():
            stream = self._scales[cell.scale - 1]
            with torch.cuda.stream(stream):
                for source in wiring.reads:
                    stream.wait_event(made[source])
                maps[cell] = network.compute(cell, maps)
                made[cell] = stream.record_event()
        logits = []
        with torch.cuda.stream(self._heads):
            for head, cell in zip(network.heads, network.grid.exits, strict=True):
                self._heads.wait_event(made[cell])
                logits.append(head(maps[cell]))
        for stream in (*self._scales, self._heads):
            main.wait_stream(stream)
        # Kept until the next call: memory that one stream gave up must not be reused while another reads it.
        self._kept = maps
        return logits


def _stream(device: torch.device, use: str) -> torch.cuda.Stream:
    stream = side_stream(device, use)
    assert stream is not None, "scales are side by side on a GPU alone"
    return stream
