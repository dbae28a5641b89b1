"""Does memory grow with the number of images? 10,000 and 100,000 of them from a generator, each in its own process.

python -m benchmarks.memory [--preset NAME] [--record FILE]
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from benchmarks.bundles import make_bundle
from benchmarks.machine import make_parser, record

COUNTS = (10_000, 100_000)

# What the measured processes run: no torch in them, whose own memory would hide any growth. Each image differs.
CLASSIFY = """
import sys
from pathlib import Path
import numpy as np
import msdnet

bundle, count = sys.argv[1], int(sys.argv[2])
some = np.random.default_rng(0).integers(0, 256, (500, 32, 32, 3), dtype=np.uint8)
model = msdnet.load(bundle)
images = (np.roll(some[number % 500], number // 500, axis=0) for number in range(count))
result = model.classify(images, budget=model.costs[-1] / 4)
assert len(result) == count and "torch" not in sys.modules
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024)
"""


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", default="cifar_anytime_7")
    options = parser.parse_args()
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        bundle = make_bundle(options.preset, Path(folder) / "bundle")
        for count in COUNTS:
            command = [sys.executable, "-c", CLASSIFY, str(bundle.folder), str(count)]
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks[count] = float(ran.stdout)
            print(f"{count:7,} images: {peaks[count]:.0f} MiB at most")
    ratio = peaks[COUNTS[1]] / peaks[COUNTS[0]]
    print(f"ratio {ratio:.3f}")
    measured = {"mib": {str(count): peak for count, peak in peaks.items()}, "ratio": ratio}
    record(options.record, torch.device("cpu"), benchmark="memory", preset=options.preset, **measured)


if __name__ == "__main__":
    main()
