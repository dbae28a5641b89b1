"""Labelled images from CIFAR, from a folder or from memory, in three parts that never mix."""

from dataclasses import dataclass, replace
from typing import get_args

import torch

from msdnet.checks import check_choice, check_number, check_whole, keep_checked
from msdnet.data.arrays import ArrayData
from msdnet.data.base import UNREADABLE, Batch, Epoch, ImageData, Normalisation, Shard, UnreadableImageError
from msdnet.data.cifar import CifarData
from msdnet.files import CIFAR, FOLDER, Part, data_root
from msdnet.pixels import Unreadable

__all__ = [
    "UNREADABLE",
    "ArrayData",
    "Batch",
    "DataConfig",
    "Epoch",
    "ImageData",
    "Normalisation",
    "Part",
    "Shard",
    "Unreadable",
    "UnreadableImageError",
    "open_data",
]


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Which data, and how they are divided and prepared: all that is needed to open them again."""

    dataset: str = "cifar100"
    """cifar10, cifar100 or folder (one's own images, or ImageNet)."""
    root: str | None = None
    """Where the data are; nothing stands for MSDNET_DATA, or else, for CIFAR, a download."""
    held_out: int | None = None
    """Training images to hold out; by default the paper's 5,000 of CIFAR and 50,000 of ImageNet, else a tenth."""
    held_out_seed: int = 0
    subset: int | None = None
    """Train on so many images only, for a quick try: the first of CIFAR, which is mixed, or a draw from a folder."""
    crop_size: int = 224
    """Side of the images of a folder that the network sees."""
    resize: int | None = None
    """Shorter side to which a folder's test images are resized before their centre is cropped; by default 8/7 of it."""
    colour_jitter: float = 0.0
    """Strength of the random changes of brightness, contrast and saturation of a folder's training images."""
    workers: int | None = None
    """Processes that decode a folder's images; by default as many as there are cores, up to 8."""
    unreadable: Unreadable = "fatal"
    """What an unreadable image in a folder means: the end, or a warning."""

    def __post_init__(self) -> None:
        check_choice("dataset", self.dataset, [*CIFAR, FOLDER])
        check_choice("unreadable", self.unreadable, get_args(Unreadable))
        given = [name for name in ("held_out", "subset", "resize") if getattr(self, name) is not None]
        keep_checked(self, check_whole, *given, "crop_size")
        if self.workers is not None:
            keep_checked(self, check_whole, "workers", at_least=0)
        keep_checked(self, check_whole, "held_out_seed", at_least=0)
        keep_checked(self, check_number, "colour_jitter", low=0, high=1)
        if self.dataset == FOLDER and data_root(self.root) is None:
            raise ValueError("no folder of images is named: --data (in Python, root) or MSDNET_DATA must name it")

    def found(self) -> "DataConfig":
        """The same with the place of the data written out, so that it holds in any folder and environment."""
        place = data_root(self.root)
        return self if place is None else replace(self, root=str(place.resolve()))


def open_data(config: DataConfig, device: torch.device | str = "cpu") -> ImageData:
    """The data that a config describes, with batches on the given device."""
    if config.dataset in CIFAR:
        return CifarData(
            config.dataset,
            config.root,
            device=device,
            held_out=config.held_out,
            held_out_seed=config.held_out_seed,
            subset=config.subset,
        )
    from msdnet.data.folder import FolderData  # here, since it alone needs torchvision

    root = config.found().root
    assert root is not None
    return FolderData(
        root,
        device=device,
        crop_size=config.crop_size,
        resize=config.resize,
        colour_jitter=config.colour_jitter,
        workers=config.workers,
        held_out=config.held_out,
        held_out_seed=config.held_out_seed,
        subset=config.subset,
        unreadable=config.unreadable,
    )
