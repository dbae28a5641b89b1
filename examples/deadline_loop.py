"""A camera that never waits: each frame gets the best answer that its deadline allows.

    python examples/deadline_loop.py bundles/first --frames 100 --milliseconds 8

Frames are made up here; put your camera in place of `frames`. Every so often another program takes the processor, and
the answers then come from an earlier exit, but they come.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import msdnet


def frames(count: int, side: int) -> Iterator[NDArray[np.uint8]]:
    """Stand-ins for pictures of a camera: (side, side, 3) bytes."""
    random = np.random.default_rng(0)
    for _ in range(count):
        yield random.integers(0, 256, (side, side, 3), dtype=np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a model of the package, or the folder of a bundle")
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--milliseconds", type=float, default=8.0)
    options = parser.parse_args()

    model = msdnet.load(options.model)
    model.profile([1], seconds=0.5)  # deadlines go by what stages take on this machine
    exits: Counter[int] = Counter()
    late = 0
    for frame in frames(options.frames, model.manifest.images.side):
        start = time.perf_counter()
        step = model.answer(frame, deadline_ms=options.milliseconds)
        late += time.perf_counter() - start > options.milliseconds / 1e3
        exits[step.exit] += 1
    reached = ", ".join(f"exit {exit}: {count}" for exit, count in sorted(exits.items()))
    print(f"{options.frames} frames, {late} late; answered by {reached}")


if __name__ == "__main__":
    main()
