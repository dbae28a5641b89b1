"""What a result was measured on: hardware, versions and commit, for every file under results/."""

import json
from pathlib import Path

import torch

from msdnet.machine import describe_machine


def record(path: Path | None, device: torch.device, /, **measured: object) -> None:
    """Write what was measured, and on what, to a JSON file, if one was asked for."""
    if path is not None:
        path.write_text(json.dumps({**measured, **describe(device)}, indent=2) + "\n")


def describe(device: torch.device) -> dict[str, str | int]:
    gpu = {"hardware": torch.cuda.get_device_name(device)} if device.type == "cuda" else {}
    return describe_machine() | gpu | {"threads": torch.get_num_threads(), "torch": torch.__version__}
