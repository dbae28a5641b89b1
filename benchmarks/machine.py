"""What every benchmark has: its options, and a file under results/ that tells hardware, versions and commit, too."""

import argparse
import json
from pathlib import Path

import torch

from msdnet.machine import describe_machine


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """A benchmark's docstring is its help, and --record keeps what it measured."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="write what was measured to this JSON file")
    return parser


def record(path: Path | None, device: torch.device, /, **measured: object) -> None:
    """Write what was measured, and on what, to a JSON file, if one was asked for."""
    if path is not None:
        path.write_text(json.dumps({**measured, **describe(device)}, indent=2) + "\n")


def describe(device: torch.device) -> dict[str, str | int]:
    gpu = {"hardware": torch.cuda.get_device_name(device)} if device.type == "cuda" else {}
    return describe_machine() | gpu | {"threads": torch.get_num_threads(), "torch": torch.__version__}
