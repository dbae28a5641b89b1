"""Does memory grow with the number of images? 10,000 and 100,000 of them from a generator, each in its own process.

python -m benchmarks.memory [--preset NAME] [--record FILE]
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.bundles import make_bundle, make_images
from benchmarks.machine import record

COUNTS = (10_000, 100_000)


def generated(count: int) -> Iterator[NDArray[np.uint8]]:
    """One image at a time; each differs from the others."""
    some = make_images(500)
    for number in range(count):
        yield np.roll(some[number % 500], number // 500, axis=0)


def classify(bundle: str, count: int) -> None:
    """Run by the processes that are measured: prints the peak of its resident memory, in MiB."""
    import msdnet

    model = msdnet.load(bundle)
    result = model.classify(generated(count), budget=model.costs[-1] / 4)
    assert len(result) == count
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="cifar_anytime_7")
    parser.add_argument("--record", type=Path, help="write the result to this JSON file")
    options = parser.parse_args()
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        bundle = make_bundle(options.preset, Path(folder) / "bundle")
        for count in COUNTS:
            code = f"from benchmarks.memory import classify; classify({str(bundle.folder)!r}, {count})"
            ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            peaks[count] = float(ran.stdout)
            print(f"{count:7,} images: {peaks[count]:.0f} MiB at most")
    ratio = peaks[COUNTS[1]] / peaks[COUNTS[0]]
    print(f"ratio {ratio:.3f}")
    measured = {"mib": {str(count): peak for count, peak in peaks.items()}, "ratio": ratio}
    record(options.record, torch.device("cpu"), benchmark="memory", preset=options.preset, **measured)


if __name__ == "__main__":
    main()
