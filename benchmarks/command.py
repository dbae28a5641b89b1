"""How long does `msdnet train` take from the moment it is typed? Start-up, and the rate of the loop with all it does.

    python -m benchmarks.command [--recipe NAME] [--batch N] [--epochs N] [--record FILE]

Runs the command on random bytes in CIFAR's layout and reads its files: the loop's images/s (an epoch by the clock,
with display, checks and counting, without evaluation), and the seconds from the start of the process to the first
step; the first epoch's extra time, in which the graph is captured, counts among these.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.machine import make_parser, record
from benchmarks.throughput import write_random_cifar


def measure(recipe: str, batch: int, epochs: int, folder: Path) -> dict[str, float]:
    write_random_cifar(folder)
    sizes = ["--batch-size", str(batch), "--epochs", str(epochs)]
    command = [
        sys.executable,
        "-m",
        "msdnet",
        "train",
        recipe,
        "--data",
        str(folder),
        "--out",
        str(folder / "run"),
        *sizes,
    ]
    started = time.time()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    begun_training = (folder / "run" / "run.json").stat().st_mtime
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    usual = statistics.median(line["seconds"] for line in lines[1:])
    return {
        "wall_seconds": time.time() - started,
        "startup_seconds": begun_training - started + lines[0]["seconds"] - usual,
        "images_per_second": statistics.median(line["images_per_second"] for line in lines[1:]),
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--recipe", default="fast")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=6)
    options = parser.parse_args()

    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    with tempfile.TemporaryDirectory() as folder:
        result = measure(options.recipe, options.batch, options.epochs, Path(folder))
    print(", ".join(f"{name} {value:,.1f}" for name, value in result.items()))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    setting = {"recipe": options.recipe, "batch": options.batch, "epochs": options.epochs}
    record(options.record, device, benchmark="command", **setting, **result)


if __name__ == "__main__":
    main()
