"""What a result was measured on is named, whatever the system tells of it."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from msdnet import machine

INTEL = "processor\t: 0\nmodel\t\t: 207\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu\n"
ARM = "processor\t: 0\nBogoMIPS\t: 108.00\nCPU part\t: 0xd08\n"
OLD_ARM = f"{ARM}\nHardware\t: BCM2835\nRevision\t: c03111\nSerial\t\t:\n"


@pytest.mark.parametrize(
    ("cpuinfo", "board", "name"),
    [
        (INTEL, "", "Intel(R) Xeon(R)"),
        (f"{OLD_ARM}Model\t\t: Raspberry Pi 4 Model B Rev 1.1\n", "", "Raspberry Pi 4 Model B Rev 1.1"),
        (OLD_ARM, "", "BCM2835"),
        (ARM, "NVIDIA Jetson Orin\0", "NVIDIA Jetson Orin"),
        (ARM, "", "aarch64"),
        ("", "", "aarch64"),
    ],
    ids=["x86", "model", "hardware", "board", "nothing", "no cpuinfo"],
)
def test_the_hardware_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpuinfo: str, board: str, name: str
) -> None:
    for place, text in (("_CPUINFO", cpuinfo), ("_BOARD", board)):
        monkeypatch.setattr(machine, place, tmp_path / place)
        if text:
            (tmp_path / place).write_text(text)
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert machine.describe_machine()["hardware"] == name


FREED_AND_ASKED_FOR = """
import resource, sys
import numpy as np
from msdnet.machine import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if "keep" in sys.argv:
    assert keep_freed_memory()
blocks = [np.ones(2**22) for _ in range(4)]  # 32 MiB each
del blocks
before = faults()
blocks = [np.ones(2**22) for _ in range(4)]
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other systems keep memory as they like")
def test_freed_memory_is_used_again() -> None:
    """Pages that a process has not given back are not cleared again: there is no fault for each of them."""

    def faults(*words: str) -> int:
        command = [sys.executable, "-c", FREED_AND_ASKED_FOR, *words]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert faults("keep") < 0.1 * faults()


def test_other_systems_keep_memory_as_they_like(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not machine.keep_freed_memory()
