"""What does training gain by memory that is kept? Each way in processes of its own, in turn, on one thread.

    python -m benchmarks.freed_memory [--preset NAME ...] [--batch N] [--rounds N] [--record FILE]

Times are the processor's own for the process, so that other processes disturb them little; a ratio is the median over
rounds of two processes each.
"""

import json
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

import torch

from benchmarks.machine import make_parser, record
from benchmarks.processor import make_step
from msdnet.data.base import Batch
from msdnet.machine import keep_freed_memory

PRESETS = ["cifar_anytime_7", "resnet_20", "densenet_bc_28_12"]
WARM_UP, STEPS = 2, 5


def take_steps(preset: str, batch_size: int, *, keep: bool) -> dict[str, float]:
    """What a process of its own finds: seconds and page faults of a step, and the most memory it had."""
    if keep and not keep_freed_memory():
        raise SystemExit("this system has no glibc, which alone is asked to keep memory")
    torch.set_num_threads(1)
    step = make_step(preset, "bfloat16", 32)
    batch = Batch(
        torch.randn(batch_size, 3, 32, 32).to(memory_format=torch.channels_last),
        torch.randint(0, 100, (batch_size,)),
    )
    for _ in range(WARM_UP):
        step(batch, 0.01)
    faults, seconds = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, []
    for _ in range(STEPS):
        start = time.process_time()
        step(batch, 0.01)
        seconds.append(time.process_time() - start)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": statistics.median(seconds),
        "page_faults": (used.ru_minflt - faults) / STEPS,
        "peak_mib": used.ru_maxrss / 1024,
    }


def in_own_process(preset: str, batch_size: int, *, keep: bool) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.freed_memory", "--preset", preset, "--batch", str(batch_size)]
    command += ["--one-process", "keep" if keep else "free"]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def measure(preset: str, batch_size: int, rounds: int) -> dict[str, Any]:
    found: dict[bool, list[dict[str, float]]] = {True: [], False: []}
    for round_ in range(rounds):
        for keep in (True, False) if round_ % 2 else (False, True):
            found[keep].append(in_own_process(preset, batch_size, keep=keep))
    ratios = [free["seconds"] / kept["seconds"] for free, kept in zip(found[False], found[True], strict=True)]
    middle = {
        name: {key: statistics.median(one[key] for one in found[keep]) for key in found[keep][0]}
        for name, keep in (("kept", True), ("given_back", False))
    }
    return {
        "preset": preset,
        **middle,
        "given_back_over_kept": statistics.median(ratios),
        "given_back_over_kept_range": [min(ratios), max(ratios)],
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--preset", nargs="+", default=PRESETS)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one-process", choices=["keep", "free"], help="what the benchmark starts")
    options = parser.parse_args()
    if options.one_process:
        print(json.dumps(take_steps(options.preset[0], options.batch, keep=options.one_process == "keep")))
        return
    results = []
    for preset in options.preset:
        results.append(found := measure(preset, options.batch, options.rounds))
        faults, peaks = ([found[way][key] for way in ("given_back", "kept")] for key in ("page_faults", "peak_mib"))
        print(
            f"{preset}: {found['given_back_over_kept']:.2f} times as fast; page faults of a step {faults[0]:,.0f} and "
            f"{faults[1]:,.0f}, at most {peaks[0]:,.0f} and {peaks[1]:,.0f} MiB",
            flush=True,
        )
    setting = {"batch": options.batch, "rounds": options.rounds, "threads_of_each": 1}
    record(options.record, torch.device("cpu"), benchmark="freed_memory", **setting, results=results)


if __name__ == "__main__":
    main()
