"""Is multiply-adds saved time saved? A budgeted batch of 10,000 images at the paper's exits, with a third of the work.

    python -m benchmarks.batches [--preset NAME] [--engine onnx|torch] [--device NAME] [--images N] [--record FILE]

The engine's own waste is its wall-clock over the sum, stage by stage, of rows times what a row takes in a full batch.
That is measured just before and just after, for as long together as the budgeted batch takes, and averaged: a busy
machine interrupts both alike. Each round measures all of it once; medians over rounds.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import msdnet
from benchmarks.bundles import make_bundle, make_images
from benchmarks.machine import make_parser, record
from msdnet.policy import Policy, confidence
from msdnet.runtime import Model, Result
from msdnet.runtime.profile import time_stages


def paper_policy(model: Model, images: Any, saving: float) -> Policy:
    """Fitted on the very images, so that the multiply-adds are what is asked for."""
    confidences = confidence(model.every_exit(images, batch=500))
    return Policy("paper").fit(confidences, np.ones_like(confidences, bool), model.costs, model.costs[-1] / saving)


def row_seconds(model: Model, images: Any, batch: int, seconds: float) -> list[float]:
    """What each stage takes for a row of a full batch: the mean over so many seconds."""
    runs: list[list[float]] = []
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        first = len(runs) * batch % max(1, len(images) - batch)
        runs.append(time_stages(model.engine, images[first : first + batch]))
    return [statistics.mean(times) / batch for times in zip(*runs, strict=True)]


def ideal_seconds(result: Result, of_a_row: list[float]) -> float:
    """What the stages alone would take, all in full batches."""
    leaving = np.array(result.exit_counts)
    rows = np.cumsum(leaving[::-1])[::-1]  # that reach each exit
    return float(rows @ np.array(of_a_row))


def measure(model: Model, images: Any, batch: int, rounds: int) -> dict[str, Any]:
    policy = paper_policy(model, images, saving=3.0)
    expected = model.classify(images, policy=policy, batch=batch).seconds  # graphs are captured, memory is found
    found: list[dict[str, float]] = []
    for _ in range(rounds):
        before = row_seconds(model, images, batch, expected / 2)
        early = model.classify(images, policy=policy, batch=batch)
        after = row_seconds(model, images, batch, expected / 2)
        full = model.classify(images, batch=batch)
        ideal = (ideal_seconds(early, before) + ideal_seconds(early, after)) / 2
        fewer = model.costs[-1] / early.cost
        found.append(
            {
                "seconds": early.seconds,
                "full_seconds": full.seconds,
                "ideal_seconds": ideal,
                "waste": early.seconds / ideal,
                "multiply_adds_saved": fewer,
                "time_saved": full.seconds / early.seconds,
                "time_over_multiply_adds": full.seconds / early.seconds / fewer,
                "full_images_per_second": len(images) / full.seconds,
            }
        )
    summary = {key: statistics.median(run[key] for run in found) for key in found[0]}
    return {**summary, "left_at_exits": early.exit_counts, "runs": found}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", default="cifar_anytime_7")
    parser.add_argument("--engine", choices=("onnx", "torch"), default="onnx")
    parser.add_argument("--device")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bundle = make_bundle(options.preset, Path(folder) / "bundle")
        of_torch = {"device": options.device, "precision": options.precision} if options.engine == "torch" else {}
        model = msdnet.load(bundle.folder, engine=options.engine, **of_torch)
    batch = options.batch or model.engine.best_batch
    result = measure(model, make_images(options.images), batch, options.rounds)
    print(f"{options.preset}, {options.images:,} images in batches of {batch} on {model.engine!r}")
    for key, value in result.items():
        print(
            f"  {key:26} {value:9.3f}" if isinstance(value, float) else f"  {key:26} {value}" if key != "runs" else ""
        )
    device = torch.device(options.device or "cpu")
    setting = {"preset": options.preset, "engine": repr(model.engine), "images": options.images, "batch": batch}
    record(options.record, device, benchmark="batches", **setting, **result)


if __name__ == "__main__":
    main()
