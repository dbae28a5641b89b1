"""What somebody who keeps a model running should know: first calls, memory, and deadlines beside other processes.

    python -m benchmarks.service [--answers N] [--record FILE]

Each is measured in a process of its own, without torch. Other work on the machine counts here: its load is recorded.
"""

import json
import os
import subprocess
import sys

import torch

from benchmarks.machine import make_parser, record

MODELS = ("cifar10-small", "cifar10-anytime")
DEADLINE_MS = 5

FIRST_CALLS = """
import json, sys, time
import msdnet
from msdnet import samples
image = samples.cifar10().images[0]

def milliseconds(call):
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)

model = msdnet.load(sys.argv[1])
budget, seconds, deadline = (
    [milliseconds(call) for _ in range(9)]
    for call in (
        lambda: model.classify(image, budget="50%"),
        lambda: model.classify(image, seconds="50ms"),
        lambda: model.answer(image, deadline_ms=5),
    )
)
calls = {"budget": budget, "seconds": seconds, "deadline": deadline}
print(json.dumps({name: {"first": times[0], "then": sorted(times[1:])[4]} for name, times in calls.items()}))
"""

MEMORY = """
import json, sys
from pathlib import Path
import msdnet
from msdnet import samples
images = samples.cifar10().images

def mib():
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmRSS"].split()[0]) / 1024

model = msdnet.load(sys.argv[1])
loaded = mib()
model.classify(images[0])
one = mib()
model.classify(images)
print(json.dumps({"loaded": loaded, "one_image": one, "thousand_images": mib()}))
"""

DEADLINES = """
import json, subprocess, sys, time
import msdnet
from msdnet import samples
model, threads, busy, answers, deadline = sys.argv[1], *map(int, sys.argv[2:])
images = samples.cifar10().images
model = msdnet.load(model, threads=threads)
model.profile([1], seconds=1.0)
others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
try:
    time.sleep(0.3)
    late = exits = 0
    for number in range(answers):
        start = time.perf_counter()
        exits += model.answer(images[number % len(images)], deadline_ms=deadline).exit
        late += time.perf_counter() - start > deadline / 1e3
finally:
    for other in others:
        other.kill()
print(json.dumps({"late_share": late / answers, "mean_exit": exits / answers}))
"""


def measured(program: str, *arguments: object) -> dict[str, object]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    found = {**found, "load": round(os.getloadavg()[0], 1)}
    print(*arguments, found)
    return found


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--answers", type=int, default=2_000, help="by a deadline, in each setting")
    options = parser.parse_args()
    deadlines = [
        {
            "threads": threads,
            "busy_loops": busy,
            **measured(DEADLINES, MODELS[1], threads, busy, options.answers, DEADLINE_MS),
        }
        for busy in (0, 1)
        for threads in (1, 2)
    ]
    record(
        options.record,
        torch.device("cpu"),
        benchmark="service",
        deadline_ms=DEADLINE_MS,
        answers=options.answers,
        deadlines=deadlines,
        first_calls_ms={name: measured(FIRST_CALLS, name) for name in MODELS},
        memory_mib={name: measured(MEMORY, name) for name in MODELS},
    )


if __name__ == "__main__":
    main()
