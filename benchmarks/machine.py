"""What a result was measured on: hardware, versions and commit, for every file under results/."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import torch

import msdnet

ROOT = Path(__file__).parents[1]


def record(path: Path | None, device: torch.device, /, **measured: object) -> None:
    """Write what was measured, and on what, to a JSON file, if one was asked for."""
    if path is not None:
        path.write_text(json.dumps({**measured, **describe(device)}, indent=2) + "\n")


def describe(device: torch.device) -> dict[str, str | int]:
    return {
        "hardware": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "msdnet": msdnet.__version__,
        "commit": _commit(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _commit() -> str:
    """The commit that was measured, with a + if files differ from it; MSDNET_COMMIT names it where git is not."""
    if "MSDNET_COMMIT" in os.environ:
        return os.environ["MSDNET_COMMIT"]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", "src", "benchmarks"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return (commit.stdout.strip() or "unknown") + ("+" if changed.stdout.strip() else "")
