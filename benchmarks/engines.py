"""Does a network cut into stages cost more than in one piece? And how much faster is ONNX Runtime than PyTorch?

    python -m benchmarks.engines [--preset NAME] [--rounds N] [--record FILE]

In each round every way is timed by the median of many runs; ratios are medians over rounds. Since PyTorch's threads
disturb what runs just after it, it has rounds of its own; the others take turns in many more, whose quartiles are told.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.bundles import make_bundle, make_images
from benchmarks.machine import make_parser, record
from msdnet.bundle import WEIGHTS, Bundle
from msdnet.export import StoredWeights, whole_graph
from msdnet.machine import cores
from msdnet.runtime import OnnxEngine
from msdnet.runtime.onnx_engine import make_session
from msdnet.torch_engine import network_of

RUNS = {1: 60, 64: 5}


def ways(bundle: Bundle, images: NDArray[np.uint8]) -> dict[str, Callable[[], Any]]:
    """The same network in three ways, from normalised pixels to the logits of all exits, and to the first alone."""
    network, side = network_of(bundle), bundle.manifest.images.side
    engine = OnnxEngine(bundle)
    graph = whole_graph(network, side, StoredWeights(WEIGHTS, bundle.read(WEIGHTS)))
    path = bundle.folder / "whole.onnx"
    path.write_bytes(graph.SerializeToString())
    one_graph = make_session(path, cores())
    start = engine.begin(images)
    pixels = start.maps["images"]

    def stages(count: int) -> None:
        state = start
        for _ in range(count):
            _, state = engine.logits(state)

    @torch.inference_mode()
    def eager() -> None:
        network(torch.from_numpy(pixels))

    return {
        "whole": lambda: one_graph.run(None, {"images": pixels}),
        "stages": lambda: stages(engine.exit_count),
        "first": lambda: stages(1),
        "eager": eager,
    }


def milliseconds(run: Callable[[], Any], times: int) -> float:
    run()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return 1e3 * statistics.median(taken)


def measure(bundle: Bundle, batch: int, rounds: int) -> dict[str, Any]:
    compared = ways(bundle, make_images(batch))
    found: dict[str, list[float]] = {name: [] for name in compared}
    for names, times in ((("whole", "stages", "first"), 4 * rounds), (("eager",), rounds)):
        for _ in range(times):
            for name in names:
                found[name].append(milliseconds(compared[name], RUNS[batch]))
    pairs = zip(found["stages"], found["whole"], strict=True)
    low, _, high = statistics.quantiles((a / b for a, b in pairs), n=4)

    def ratio(one: str, other: str) -> float:
        return statistics.median(a / b for a, b in zip(found[one], found[other], strict=False))

    return {
        **{f"{name}_ms": statistics.median(values) for name, values in found.items()},
        "stages_over_whole": ratio("stages", "whole"),
        "stages_over_whole_quartiles": [low, high],
        "first_over_whole": ratio("first", "whole"),
        "eager_over_stages": ratio("eager", "stages"),
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", default="cifar_anytime_7")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bundle = make_bundle(options.preset, Path(folder) / "bundle")
        results = {f"batch_{batch}": measure(bundle, batch, options.rounds) for batch in RUNS}
    for name, result in results.items():
        print(f"{options.preset}, {name.replace('_', ' ')}, medians of {options.rounds} rounds")
        for key, value in result.items():
            print(f"  {key:28}", " ".join(f"{one:8.3f}" for one in (value if isinstance(value, list) else [value])))
    record(options.record, torch.device("cpu"), benchmark="engines", preset=options.preset, **results)


if __name__ == "__main__":
    main()
