"""Random valid configs, small enough to build and run in milliseconds; random held-out images of a few exits."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from msdnet import MSDNetConfig


@st.composite
def configs(draw: st.DrawFn, ablations: bool = True) -> MSDNetConfig:
    scales = draw(st.integers(1, 4))
    factors = st.lists(st.integers(1, 4), min_size=scales, max_size=scales)
    exits = sorted(draw(st.sets(st.integers(1, 9), min_size=1, max_size=4)))
    switches: dict[str, Any] = {
        "dense": draw(st.booleans()),
        "multi_scale": draw(st.booleans()),
        "intermediate_classifiers": draw(st.booleans()),
    }
    multi_scale = switches["multi_scale"] or not ablations
    return MSDNetConfig(
        exits=tuple(exits),
        layers=draw(st.none() | st.integers(exits[-1], exits[-1] + 4)),
        classes=draw(st.integers(1, 5)),
        input_channels=draw(st.sampled_from([1, 3])),
        scales=scales,
        seed_channels=draw(st.integers(1, 6)),
        growth=2 * draw(st.integers(1, 3)),
        channel_factors=tuple(draw(factors)),
        bottleneck_factors=tuple(draw(factors)),
        stem=draw(st.sampled_from(["cifar", "imagenet"])),
        head_width=draw(st.sampled_from([8, 13, "input"])),
        reduction=draw(st.sampled_from(["blocks", "tail", "none"])) if multi_scale else "blocks",
        transition_ratio=draw(st.sampled_from([0.34, 0.5, 1.0])),
        averaging=draw(st.sampled_from([None, 0.0, 0.5])),
        **(switches if ablations else {}),
    )


_Floats: TypeAlias = NDArray[np.float64]


class HeldOut(NamedTuple):
    """What a policy is fitted to; costs are whole numbers, so that sums of them are exact."""

    confidence: _Floats
    """(images, exits)"""
    correct: NDArray[np.bool_]
    costs: _Floats

    def budget(self, part: float) -> float:
        """So far between the first exit's cost and the last's."""
        first, last = self.costs[[0, -1]].tolist()
        return float(round(first + part * (last - first)))


@st.composite
def held_out(
    draw: st.DrawFn, ties: bool | None = None, most_images: int = 24, exits: tuple[int, int] = (1, 4)
) -> HeldOut:
    """Images of any confidences, right and wrong at any exit; equally sure ones among them, or not (None: either)."""
    images, count = draw(st.integers(1, most_images)), draw(st.integers(*exits))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ranks = generator.permuted(np.tile(np.arange(1, images + 1), (count, 1)), axis=1).T / (images + 1)
    if ties or (ties is None and draw(st.booleans())):
        ranks = np.ceil(ranks * draw(st.integers(1, 5))) / 5
    right = generator.random((images, count)) < draw(st.sampled_from([0.3, 0.5, 0.8]))
    if draw(st.booleans()):
        right |= generator.random((images, count)) < ranks  # being sure means something
    steps = draw(st.lists(st.integers(1, 50), min_size=count, max_size=count))
    return HeldOut(ranks, right, np.cumsum(steps).astype(np.float64))


parts = st.floats(0, 1) | st.sampled_from([0.0, 0.25, 0.5, 1.0])
