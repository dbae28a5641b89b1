"""What this machine has, how a process uses its memory, and what a result was measured on."""

import ctypes
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from msdnet.version import VERSION

__all__ = ["cores", "describe_machine", "keep_freed_memory", "local_rank"]

# Where Linux tells of the processor, and of the board that it is on: for ARM the first often names neither.
_CPUINFO, _BOARD = Path("/proc/cpuinfo"), Path("/proc/device-tree/model")

# Of mallopt, in malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def keep_freed_memory() -> bool:
    """Have this process use memory again that it has freed, instead of giving it back; whether the system can do so.

    A training step frees and asks for the same hundreds of megabytes. Freed blocks of that size go back to Linux, and
    each page of new ones is cleared when it is first touched.
    For commands, whose process is their own: it lasts until the process ends.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    no_limit, none = -1, 0
    return bool(mallopt(_TRIM_THRESHOLD, no_limit) and mallopt(_MMAP_MAX, none))


def local_rank() -> int:
    """Which of the processes that torchrun started on this machine this is: the first where there are no others."""
    rank = os.environ.get("LOCAL_RANK", "0")
    if not rank.isdecimal():
        raise ValueError(f"LOCAL_RANK must be a number, as torchrun sets it; got {rank!r}")
    return int(rank)


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
    """What the system calls it; if nothing, its architecture."""
    told = dict(re.findall(r"^([^:\n]*\w)\s*:[ \t]*(.*\S)", _text(_CPUINFO), re.MULTILINE))
    names = (told.get("model name"), told.get("Model"), told.get("Hardware"), _text(_BOARD).strip("\0\n"))
    return next(filter(None, names), platform.processor() or platform.machine())


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


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
