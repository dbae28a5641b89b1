"""A bundle: a trained model on disk, as a folder that can be read without running anything from it.

    manifest.json           what the model is, and the checksums of everything below
    weights.safetensors     by the names of the network's parameters
    stage_01.onnx, ...      a graph for each stage, which takes its weights from the file above
    stages.onnx             the same behind one switch: to run them here
    held_out.safetensors    how sure each exit was of each held-out image, and whether it was right
    card.md                 the same for people; nothing depends on it

Pure Python: knows names, facts and checksums; what is in the other files, it does not look at.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from msdnet.checks import check_increasing, check_whole, keep_checked, numbers, whole_numbers
from msdnet.config import NetworkConfig, UnknownNetwork, described_network
from msdnet.errors import of_file
from msdnet.tables import from_mapping, make_tuples, table_from_json

__all__ = [
    "CARD",
    "FORMAT",
    "HELD_OUT",
    "IMAGES",
    "MANIFEST",
    "RUN",
    "STAGE",
    "STAGES",
    "STAGE_NAMES",
    "WEIGHTS",
    "Bundle",
    "ImageSpec",
    "Manifest",
    "Measured",
    "is_run",
    "stage_file",
]

FORMAT = 2
MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
STAGES = "stages.onnx"
HELD_OUT = "held_out.safetensors"
CARD = "card.md"

IMAGES = "images"
"""What the graphs call the images that the first stage takes, normalised."""
STAGE = "stage"
"""What the graph of all stages calls the number of the one to run, from 0 on."""
STAGE_NAMES = "stages"
"""Where its metadata have what each stage calls its inputs, by their places in the graph, and its outputs, in order."""

RUN = "run.json"
"""What a training run's folder has in place of a manifest."""


def stage_file(exit: int) -> str:
    """The file of the stage that ends at an exit, counted from 0."""
    return f"stage_{exit + 1:02}.onnx"


@dataclass(frozen=True, kw_only=True)
class ImageSpec:
    """What a network takes, and how any image is brought there. Data tell theirs: `ImageData.image_spec`."""

    side: int
    """Height and width."""
    resize: int
    """The shorter side of an image is resized to this; then the centre is cropped."""
    mean: tuple[float, ...]
    """Of the channels, for pixels between 0 and 1."""
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        check_whole("side", self.side)
        check_whole("resize", self.resize, at_least=self.side)
        keep_checked(self, numbers, "mean", low=0)
        keep_checked(self, numbers, "std", low=1e-9)
        if len(self.mean) != len(self.std) or len(self.mean) not in (1, 3):
            raise ValueError(f"mean and std must be of 1 or 3 channels each, got {len(self.mean)} and {len(self.std)}")

    @property
    def channels(self) -> int:
        return len(self.mean)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of an image's pixels: height, width, channels."""
        return self.side, self.side, self.channels


@dataclass(frozen=True, kw_only=True)
class Measured:
    """How well the exits did on some images."""

    images: int
    accuracy: tuple[float, ...]

    def __post_init__(self) -> None:
        check_whole("images", self.images)
        keep_checked(self, numbers, "accuracy", low=0)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All there is to know of a model but its weights."""

    format: int
    name: str
    network: NetworkConfig
    """An `UnknownNetwork` where its kind is not known here: none of the other files needs it."""
    classes: tuple[str, ...]
    images: ImageSpec
    costs: tuple[int, ...]
    """Multiply-adds to reach each exit, stage by stage."""
    whole_costs: tuple[int, ...]
    """The same if all layers up to an exit are computed, as published costs are counted."""
    temperatures: tuple[float, ...]
    """By which the logits of each exit are divided before they become probabilities."""
    held_out: Measured | None = None
    """Nothing where no held-out images were at hand: then no budget can be kept."""
    test: Measured | None = None
    """On images that nothing was chosen on; nothing where they were not looked at."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Where the model is from: `data` and `recipe`, which are tables of fields, seed, versions, whatever is known."""
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each file."""

    def __post_init__(self) -> None:
        if check_whole("format", self.format) < FORMAT:
            raise ValueError(f"format {self.format} is of an older msdnet than this reads ({FORMAT}); export it again")
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name must be a text, got {self.name!r}")
        if not isinstance(self.network, NetworkConfig) or not isinstance(self.images, ImageSpec):
            raise TypeError("network and images must be tables of fields")
        if not isinstance(self.files, Mapping) or not all(isinstance(value, str) for value in self.files.values()):
            raise TypeError("files must be a table of checksums by file name")
        self._check_provenance()
        if not isinstance(self.classes, list | tuple):
            raise TypeError(f"classes must be a list of names, got {self.classes!r}")
        make_tuples(self, "classes")
        if len(self.classes) != self.network.classes or not all(isinstance(name, str) for name in self.classes):
            raise ValueError(f"classes must be {self.network.classes} names, got {len(self.classes)}")
        if self.images.channels != self.network.input_channels:
            raise ValueError(f"images have {self.images.channels} channels, the network {self.network.input_channels}")
        for costs in ("costs", "whole_costs"):
            keep_checked(self, whole_numbers, costs)
            self._check_for_each_exit(costs, getattr(self, costs))
            check_increasing(costs, getattr(self, costs))
        keep_checked(self, numbers, "temperatures", low=1e-6)
        self._check_for_each_exit("temperatures", self.temperatures)
        for part in ("held_out", "test"):
            measured = getattr(self, part)
            if measured is not None:
                self._check_for_each_exit(f"{part}: accuracy", measured.accuracy)
        missing = [name for name in self.file_names if name not in self.files]
        if self.files and missing:
            raise ValueError(f"files must have a checksum of {missing[0]}")

    @property
    def exit_count(self) -> int:
        return len(self.costs if isinstance(self.network, UnknownNetwork) else self.network.exit_layers)

    @property
    def measured(self) -> dict[str, Measured]:
        """What was measured, by the images that it was measured on."""
        known = {"held-out": self.held_out, "test": self.test}
        return {images: found for images, found in known.items() if found is not None}

    @property
    def file_names(self) -> list[str]:
        """Everything that belongs to the bundle beside the manifest."""
        stages = [stage_file(exit) for exit in range(self.exit_count)]
        return [WEIGHTS, *stages, STAGES, *([] if self.held_out is None else [HELD_OUT])]

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "network": self.network.to_dict()}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        values = table_from_json(text, "manifest", FORMAT)
        if isinstance(values.get("network"), Mapping):
            values["network"] = described_network(values["network"])
        return from_mapping(cls, values, "manifest")

    def _check_provenance(self) -> None:
        """What is in it is free, but for the tables that others look things up in."""
        if not isinstance(self.provenance, Mapping):
            raise TypeError(f"provenance must be a table of fields, got {self.provenance!r}")
        for name in ("data", "recipe"):
            if not isinstance(self.provenance.get(name, {}), Mapping):
                raise TypeError(f"provenance: {name} must be a table of fields, got {self.provenance[name]!r}")

    def _check_for_each_exit(self, name: str, values: tuple[float, ...]) -> None:
        if len(values) != self.exit_count:
            raise ValueError(f"{name} must have a number for each of {self.exit_count} exits, got {len(values)}")


class Bundle:
    """The files of a bundle, each compared with its checksum when it is read."""

    def __init__(self, folder: str | Path) -> None:
        # Found again whatever becomes of the working directory, or of a link to the folder.
        self.folder = Path(os.path.realpath(folder))
        path = self.folder / MANIFEST
        if not path.is_file():
            hint = "; a training run is there: msdnet export makes a bundle of it" if is_run(self.folder) else ""
            raise FileNotFoundError(f"{folder}: no bundle is there (a folder with a {MANIFEST}){hint}")
        with of_file(path):
            self.manifest = Manifest.from_json(_text(path))

    def __repr__(self) -> str:
        return f"<msdnet.bundle.Bundle {self.manifest.name!r} in {str(self.folder)!r}>"

    def check(self) -> None:
        """Make sure that every file is there and as it was written."""
        for name in self.manifest.file_names:
            self.read(name)

    def read(self, name: str) -> bytes:
        """The bytes of one of its files, which are those that were written."""
        path = self.folder / name
        if not path.is_file():
            raise FileNotFoundError(f"{path}: missing from the bundle")
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != self.manifest.files.get(name):
            raise ValueError(f"{path}: damaged or altered (its checksum is not the manifest's); get the bundle again")
        return content

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum((self.folder / name).stat().st_size for name in (MANIFEST, *self.manifest.file_names))

    @cached_property
    def fingerprint(self) -> str:
        """By which policies and results know a model again; it stays the same with every version of this package.

        It covers all that thresholds are fitted to: the files (weights, graphs, held-out confidences), costs and
        temperatures. Of models that differ in nothing but names, provenance, the names of their classes or how images
        are resized and normalised, it is the same.
        """
        manifest = self.manifest
        told = json.dumps([dict(manifest.files), manifest.costs, manifest.temperatures], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("damaged (it is no text); get the bundle again") from error


def is_run(folder: Path) -> bool:
    """Whether it is a training run's, of which a bundle can be made."""
    return (folder / RUN).is_file()
