"""CIFAR-10 and CIFAR-100, held on the device and augmented there."""

from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from msdnet.data.arrays import ArrayData
from msdnet.data.base import Normalisation
from msdnet.data.download import fetch_cifar
from msdnet.files import CIFAR, Part, cifar_classes, find_cifar, read_cifar

__all__ = ["CifarData"]

PADDING = 4  # zeros on each side of a training image, before a random 32x32 crop


class CifarData(ArrayData):
    """One of the two CIFAR data sets, on a device.

    Read from `root` or from the folder that the environment variable MSDNET_DATA names (either may be the
    layout's own folder or the one that holds it); downloaded once where neither is given. `subset` trains
    on the first so many training images only, for a quick try.
    """

    def __init__(
        self,
        name: str = "cifar100",
        root: str | Path | None = None,
        *,
        device: torch.device | str = "cpu",
        held_out: int | None = None,
        held_out_seed: int = 0,
        subset: int | None = None,
    ) -> None:
        self.layout = CIFAR[name]
        self.folder = find_cifar(self.layout, root, fetch_cifar)
        super().__init__(
            *read_cifar(self.layout, self.folder, test=False),
            cifar_classes(self.layout, self.folder),
            held_out=self.layout.held_out if held_out is None else held_out,
            held_out_seed=held_out_seed,
            name=name,
            device=device,
            normalisation=Normalisation(self.layout.mean, self.layout.std),
            padding=PADDING,
            subset=subset,
        )

    def _part(self, part: Part) -> tuple[Tensor, Tensor]:
        return self._test if part == "test" else super()._part(part)

    @cached_property
    def _test(self) -> tuple[Tensor, Tensor]:
        """Read only when asked for: training never opens the test files."""
        images, labels = read_cifar(self.layout, self.folder, test=True)
        return torch.from_numpy(images), torch.from_numpy(labels).to(self.device)
