"""What others have published: accuracy in per cent at millions of multiply-adds, counting whole layers.

Most were read off figures, and several chose checkpoints on test images; each says where it is from.
"""

from dataclasses import dataclass
from typing import Literal

__all__ = ["PUBLISHED", "Published", "Setting", "published_for"]

Setting = Literal["anytime", "budgeted", "single"]


@dataclass(frozen=True)
class Published:
    """A curve."""

    name: str
    data: str
    setting: Setting
    millions: tuple[float, ...]
    percent: tuple[float, ...]
    source: str


# Of the 10-exit network, to each exit.
_TEN = (14.97, 25.26, 37.47, 51.67, 61.74, 73.59, 87.21, 99.48, 109.55, 121.09)
_BUDGETS = (10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0)

PUBLISHED = (
    Published(
        "MSDNet",
        "cifar100",
        "anytime",
        _TEN,
        (61.4, 64.6, 67.5, 69.4, 70.8, 72.1, 72.7, 73.9, 74.0, 74.1),
        "read off a figure of RANet (CVPR 2020)",
    ),
    Published(
        "MSDNet, in BoostNet's figure",
        "cifar100",
        "anytime",
        _TEN,
        (64.6, 67.9, 69.4, 71.5, 72.8, 74.0, 74.7, 75.4, 75.5, 76.0),
        "read off a figure of BoostNet (AAAI 2023); all 50,000 training images, chosen on test images",
    ),
    Published(
        "BoostNet",
        "cifar100",
        "anytime",
        _TEN,
        (65.3, 70.0, 72.3, 74.2, 75.2, 75.9, 75.9, 76.5, 76.5, 76.3),
        "AAAI 2023, on MSDNet; all 50,000 training images, chosen on test images",
    ),
    Published(
        "MSDNet",
        "cifar100",
        "budgeted",
        _BUDGETS,
        (65.6, 69.1, 71.2, 72.4, 73.1, 73.3, 73.8, 74.6, 74.8, 75.0),
        "read off a figure of L2W-DEN (ECCV 2022)",
    ),
    Published(
        "L2W-DEN",
        "cifar100",
        "budgeted",
        _BUDGETS,
        (66.6, 70.3, 72.3, 73.4, 74.0, 74.3, 75.1, 75.7, 76.0, 76.1),
        "ECCV 2022, on MSDNet",
    ),
    Published(
        "BoostNet",
        "cifar100",
        "budgeted",
        _BUDGETS[2:],
        (70.5, 73.2, 74.3, 75.2, 75.5, 75.8, 75.8, 75.8),
        "AAAI 2023, on MSDNet",
    ),
    Published(
        "MSDNet",
        "cifar10",
        "anytime",
        (_TEN[0], _TEN[1], *_TEN[3:]),
        (89.5, 90.8, 92.6, 93.0, 93.2, 93.55, 93.6, 93.7, 93.7),
        "read off a figure",
    ),
    Published(
        "MSDNet",
        "cifar10",
        "budgeted",
        _BUDGETS[:6],
        (91.9, 93.0, 93.2, 93.7, 93.9, 94.1),
        "read off a figure of L2W-DEN (ECCV 2022)",
    ),
    Published(
        "FractalNet-20",
        "cifar100",
        "single",
        (549.2, 845.3, 845.3),
        (75.68, 76.27, 76.70),
        "ICLR 2017: the deepest column alone, all columns with drop-path and dropout, and without; "
        "multiply-adds counted here",
    ),
    Published(
        "FractalNet-20",
        "cifar10",
        "single",
        (845.3,),
        (95.4,),
        "ICLR 2017, with drop-path and dropout; multiply-adds counted here",
    ),
    Published(
        "L2W-DEN",
        "cifar10",
        "budgeted",
        _BUDGETS[:6],
        (92.3, 93.5, 94.35, 94.7, 94.8, 94.8),
        "ECCV 2022, on MSDNet",
    ),
)


def published_for(data: str, setting: Setting) -> list[Published]:
    """The curves on a data set in one of the two settings, or the networks that are run as a whole (`single`)."""
    return [curve for curve in PUBLISHED if (curve.data, curve.setting) == (data, setting)]
