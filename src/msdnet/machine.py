"""What this machine has, and what a result was measured on."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from msdnet.version import VERSION

__all__ = ["cores", "describe_machine"]


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_machine() -> dict[str, str | int]:
    """Hardware, versions, commit and date, for every file of results."""
    return {
        "hardware": _processor(),
        "python": platform.python_version(),
        "msdnet": VERSION,
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
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return "unknown"
    commit = _git(root, "rev-parse", "--short", "HEAD")
    changed = _git(root, "status", "--porcelain", "--", "src", "benchmarks")
    return (commit or "unknown") + ("+" if changed else "")


def _git(root: Path, *words: str) -> str:
    try:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""
