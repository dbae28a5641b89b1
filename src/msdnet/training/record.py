"""What the folder of a run says of it, and the network that it has brought.

Reads only: `msdnet.training.run` writes what is read here.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from msdnet.bundle import RUN
from msdnet.checks import check_same
from msdnet.config import NetworkConfig
from msdnet.data import DataConfig, ImageData, Unreadable, open_data
from msdnet.device import pick_device
from msdnet.errors import DamagedError, FileError, of_file
from msdnet.files import in_words
from msdnet.networks import StagedNetwork, empty_network
from msdnet.tables import from_mapping, read_as, read_table
from msdnet.training.checkpoint import check_same_run, load_facts, load_tensors
from msdnet.training.recipe import Recipe
from msdnet.training.trainer import CHECKPOINT, MODEL, SUMMARY, Summary

__all__ = [
    "TrainedRun",
    "check_network",
    "check_same_images",
    "defined_by",
    "describe_data",
    "is_finished",
    "load_run",
    "plain_json",
    "read_run",
    "read_summary",
    "reopen",
]


def is_finished(out: str | Path) -> bool:
    """Whether the run in a folder has nothing left to train."""
    return (Path(out) / SUMMARY).exists()


def read_summary(folder: Path) -> Summary:
    """What the finished run in a folder has brought."""
    return read_as(Summary, folder / SUMMARY)


def read_run(folder: Path) -> dict[str, Any]:
    """All that defines the run in a folder."""
    path = folder / RUN
    if not path.is_file():
        raise FileNotFoundError(f"{folder}: no training run here (no {RUN})")
    try:
        facts = read_table(path)
    except FileError as error:
        raise FileError(path, f"{error.why}; {_way_out(folder)}") from error
    missing = {"network", "recipe", "seed", "data", "images", "precision", "resize"} - facts.keys()
    if missing:
        raise FileError(path, f"not that of a run: no {', '.join(sorted(missing))} in it")
    return facts


def defined_by(facts: Mapping[str, Any], folder: Path) -> tuple[NetworkConfig, Recipe]:
    """The network and the recipe that the facts of the run in a folder tell of."""
    network = NetworkConfig.from_dict(facts["network"])  # of a kind that is not known here, the file is whole
    with of_file(folder / RUN):
        return network, from_mapping(Recipe, facts["recipe"], "recipe")


def _way_out(folder: Path) -> str:
    """Of a run whose own file is damaged."""
    if (folder / CHECKPOINT).exists() or (folder / MODEL).exists():
        return (
            f"nothing can go on here without it: put back a copy of it, or start anew with another --out than {folder}"
        )
    return f"nothing was trained here yet: remove {folder / RUN}, and start anew"


def check_network(folder: Path) -> None:
    """Refuse a finished run whose network is gone, or whose file is cut off."""
    path, again = folder / MODEL, f"with {SUMMARY} removed, --resume {folder} makes it again"
    if not path.is_file():
        raise FileNotFoundError(f"{folder}: the run is finished, but its {MODEL} is gone; {again}")
    try:
        load_facts(path)
    except DamagedError as error:
        raise DamagedError(path, f"{error.why}; {again}") from error


class TrainedRun(NamedTuple):
    """What a run has brought."""

    network: StagedNetwork
    """In evaluation mode."""
    data: ImageData | None
    facts: Mapping[str, Any]
    """All that defines the run."""


def load_run(
    out: str | Path,
    *,
    data: ImageData | None = None,
    root: str | Path | None = None,
    unreadable: Unreadable | None = None,
    device: str | None = None,
    open_data: bool = True,
) -> TrainedRun:
    """The network that a run has trained, and the data it was trained on; `data`, `root`, `unreadable` as for `resume`.

    A process may call it by itself, whatever others do.
    """
    folder = Path(out)
    facts = read_run(folder)
    if is_finished(folder):
        check_network(folder)
    elif not (folder / MODEL).is_file():
        raise FileNotFoundError(f"{folder}: the run has no network yet; finish it by --resume {folder}")
    torch_device = pick_device(device)
    weights, known = load_tensors(folder / MODEL)
    check_same_run(folder / MODEL, known, facts)
    network = empty_network(NetworkConfig.from_dict(facts["network"]))
    network.load_state_dict(weights)
    images = (data or reopen(facts, root, None, unreadable, torch_device)) if open_data else None
    if images is not None:
        check_same_images(f"{folder}: trained on other data", images, facts)
    return TrainedRun(network.to(torch_device).eval(), images, facts)


def reopen(
    facts: Mapping[str, Any],
    root: str | Path | None,
    workers: int | None,
    unreadable: Unreadable | None,
    device: torch.device,
) -> ImageData:
    if "dataset" not in facts["data"]:
        raise ValueError(
            f"the run was started with data of its own, {facts['data']['name']!r}: only Python can give them again, by "
            "resume(..., data=...) or export_run(..., data=...); msdnet export --no-held-out does without them"
        )
    changes = {"root": None if root is None else str(root), "workers": workers, "unreadable": unreadable}
    values = facts["data"] | {name: value for name, value in changes.items() if value is not None}
    try:
        return open_data(from_mapping(DataConfig, values, f"{RUN}'s data"), device)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error} (if the data have moved, --data says where they are now)") from error


def describe_data(data: ImageData) -> dict[str, Any]:
    """What a network trained on the data depends on, as plain JSON values."""
    facts = {
        "classes": data.classes,
        "shape": data.image_shape,
        "normalisation": dataclasses.asdict(data.normalisation),
        "training": data.size("train"),
        "held_out": len(data.held_out_indices),
        "held_out_seed": data.held_out_seed,
        "held_out_sha256": data.held_out_fingerprint,
    }
    return plain_json(facts)


def check_same_images(what: str, data: ImageData, facts: Mapping[str, Any]) -> None:
    """Refuse other data than those of a run."""
    here, there = in_words(describe_data(data)), in_words(facts["images"])
    check_same(what, here, there, places=("in the data", "in the run"))


def plain_json(values: dict[str, Any]) -> dict[str, Any]:
    """The values as they come back from a file."""
    return dict(json.loads(json.dumps(values)))
