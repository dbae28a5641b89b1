"""Random valid configs, small enough to build and run in milliseconds."""

from typing import Any

from hypothesis import strategies as st

from msdnet import NetworkConfig


@st.composite
def configs(draw: st.DrawFn, ablations: bool = True) -> NetworkConfig:
    scales = draw(st.integers(1, 4))
    factors = st.lists(st.integers(1, 4), min_size=scales, max_size=scales)
    exits = sorted(draw(st.sets(st.integers(1, 9), min_size=1, max_size=4)))
    switches: dict[str, Any] = {
        "dense": draw(st.booleans()),
        "multi_scale": draw(st.booleans()),
        "intermediate_classifiers": draw(st.booleans()),
    }
    multi_scale = switches["multi_scale"] or not ablations
    return NetworkConfig(
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
        **(switches if ablations else {}),
    )
