"""What several commands make of what was typed: labelled images, budgets, a network, a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from msdnet.amounts import exactly, four_digits
from msdnet.cli.options import refuse_useless
from msdnet.config import NetworkConfig
from msdnet.errors import of_file

if TYPE_CHECKING:
    from msdnet.files import Labelled
    from msdnet.runtime import Model

__all__ = ["SAMPLES", "cifar_of", "open_images", "read_network", "refuse_for_pixels", "that_reach"]

SAMPLES = "samples"


def open_images(models: "Sequence[Model]", data: str | None, dataset: str | None, part: str) -> "Labelled":
    """A part of the labelled images that were named, or on which the first of the models was trained."""
    from msdnet import samples
    from msdnet.checks import check_choice
    from msdnet.evaluation import trained_on
    from msdnet.files import open_labelled

    check_choice("--part", part, ("test", "held_out"))
    if data == SAMPLES and not Path(SAMPLES).exists():
        if part != "test":
            raise ValueError("the samples are test images: --part goes with other data")
        if dataset not in (None, "cifar10"):
            raise ValueError(f"the samples are of cifar10: --dataset {dataset} goes with other data")
        return samples.cifar10()
    provenance = models[0].manifest.provenance
    # How images were held out, as it was asked for; of data that were opened by others, as it came out.
    known: dict[str, Any] = {**provenance, **provenance.get("data", {})}
    dataset = dataset or (known.get("dataset") if data is None else None)
    split = {key: known[key] for key in ("held_out", "held_out_seed") if known.get(key) is not None}
    try:
        images = open_labelled(
            data,
            dataset,
            part=part,  # type: ignore[arg-type]
            classes=models[0].classes,
            trained_on=[one for model in models for one in trained_on(model)],
            **split,
        )
    except FileNotFoundError as error:
        known_here = data is None and models[0].classes == samples.cifar10().classes
        hint = f"; --data {SAMPLES} takes 1,000 images of the package" if known_here else ""
        raise FileNotFoundError(f"{error}{hint}") from error
    for model in models:
        if part == "held_out" and model.manifest.provenance.get("held_out_sha256") != images.held_out:
            raise ValueError(f"{model.manifest.name}: other images were held out; it may have been trained on these")
    return images


def refuse_for_pixels(images: "Labelled", options: Mapping[str, object]) -> None:
    """CIFAR's images, and the samples, are pixels already: what tells how files are read is of no use for them."""
    if not isinstance(images.images, list):
        refuse_useless(images.name, options)


def cifar_of(run: Path) -> str | None:
    """Which CIFAR a run is trained on, if it is one: its images are no files to be decoded."""
    from msdnet.files import CIFAR
    from msdnet.training.record import read_run

    dataset = read_run(run)["data"].get("dataset")  # data of somebody's own have none
    return dataset if dataset in CIFAR else None


def that_reach(name: str, budgets: Sequence[float], least: float) -> list[float]:
    """The budgets that a model can keep; the others are reported."""
    too_low = [f"{four_digits(budget / 1e6)} M" for budget in budgets if budget < least]
    if too_low:
        told = f"{name} has no figures for {', '.join(too_low)}"
        typer.echo(f"msdnet: {told}: its first exit takes {exactly(least)}", err=True)
    return [budget for budget in budgets if budget >= least]


def read_network(name: str) -> str | NetworkConfig:
    """A preset's name as it is, or the config in a JSON file."""
    if not name.endswith(".json"):
        return name
    with of_file(Path(name)):
        return NetworkConfig.from_json(Path(name).read_text(encoding="utf-8"))
