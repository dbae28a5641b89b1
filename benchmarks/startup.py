"""How long until the command line answers? Each time in a new process, from the start to the end of it.

    python -m benchmarks.startup [--runs N] [--record FILE]

The help, one image, and the demo, with the models of the package: medians of the runs, which take turns; one before
them is not counted, so that the files are in the system's memory.
On a machine that is busy with something else the times say nothing: then nothing is recorded.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image

from benchmarks.machine import make_parser, record
from msdnet import samples
from msdnet.machine import cores

LIMITS = {"help": 0.5, "classify": 1.5, "demo": 30}  # seconds, which this project promises itself
BUSY = 0.5  # processes that are running or waiting, for each core, beside our own


def seconds(arguments: Sequence[str]) -> float:
    """Of one process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "msdnet", *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def measure(runs: int) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as scratch:
        image, report = Path(scratch, "one.png"), Path(scratch, "demo.html")
        Image.fromarray(samples.cifar10().images[0]).save(image)
        commands = {"help": ["--help"], "classify": ["classify", str(image)], "demo": ["demo", "--out", str(report)]}
        found: dict[str, list[float]] = {name: [] for name in commands}
        for run in range(runs + 1):
            for name, arguments in commands.items():
                took = seconds(arguments)
                if run:
                    found[name].append(took)
    return found


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    load = os.getloadavg()[0] / cores()
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    found = measure(options.runs)
    medians = {name: statistics.median(values) for name, values in found.items()}
    for name, values in found.items():
        spread = f"from {min(values):.3f} to {max(values):.3f}"
        print(f"{name:9} {medians[name]:.3f} s, {spread}; at most {LIMITS[name]} s are wanted")
    if options.record is not None and load > BUSY:
        sys.exit(f"not recorded: the machine was busy before ({load:.2f} processes for each core)")
    ends = {name: [min(values), max(values)] for name, values in found.items()}
    measured = {"runs": options.runs, "median_s": medians, "least_and_most_s": ends, "load": load}
    record(options.record, torch.device("cpu"), benchmark="startup", **measured)


if __name__ == "__main__":
    main()
