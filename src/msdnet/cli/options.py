"""Options that several commands have, each written once: they are called, and mean, the same everywhere."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated

import typer

from msdnet.cli.names import complete_models

__all__ = [
    "DEFAULT_MODEL",
    "BatchSize",
    "Budgets",
    "Classes",
    "Data",
    "Dataset",
    "Device",
    "Epochs",
    "Json",
    "ModelArgument",
    "ModelOption",
    "ReportFile",
    "SkipUnreadable",
    "Subset",
    "Test",
    "Threads",
    "Workers",
    "called",
    "refuse_useless",
    "typed",
]

DEFAULT_MODEL = "cifar10-anytime"
_A_MODEL = "A model of the package (`msdnet models`), or a bundle's folder."

BatchSize = Annotated[
    int | None, typer.Option(metavar="IMAGES", help="Instead of the recipe's; the learning rate is scaled with it.")
]
Budgets = Annotated[
    str | None,
    typer.Option(
        metavar="AMOUNTS",
        help="Multiply-adds per image, on average: 10M,20M,30% (of the full network; of several, of the costliest).",
    ),
]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--class",
        metavar="NAME",
        help="A class to show easy and hard images of; may be given several times. Default: those with most hard ones.",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder of the data: CIFAR's binary files, or images by class. Default: MSDNET_DATA, or else a download.",
    ),
]
Dataset = Annotated[
    str | None, typer.Option(metavar="KIND", help="cifar10, cifar100 or folder. Default: what is found in --data.")
]
Device = Annotated[
    str | None, typer.Option(metavar="DEVICE", help="cpu, cuda, cuda:1, ... Default: a GPU if there is one.")
]
Epochs = Annotated[
    int | None, typer.Option(metavar="EPOCHS", help="Train longer or shorter; the schedule is stretched to fit.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help=_A_MODEL, autocompletion=complete_models)]
ModelOption = Annotated[str, typer.Option("--model", metavar="MODEL", help=_A_MODEL, autocompletion=complete_models)]
ReportFile = Annotated[Path, typer.Option(metavar="FILE", help="The HTML file to write.")]
SkipUnreadable = Annotated[
    bool, typer.Option("--skip-unreadable", help="Warn of unreadable images and go on without them.")
]
Subset = Annotated[int | None, typer.Option(metavar="IMAGES", help="Train on only this many images, for a quick try.")]
Test = Annotated[bool, typer.Option("--test", help="Evaluate once on the test images, too, and record the accuracies.")]
Threads = Annotated[int | None, typer.Option(metavar="N", help="Threads to compute with; default: one per core.")]
Workers = Annotated[int | None, typer.Option(metavar="PROCESSES", help="Processes that decode a folder's images.")]


def called(context: typer.Context) -> str:
    """The command as it was called, `msdnet` or `msdnet --import MODULE`: what it says to type next needs the same."""
    module = context.find_root().params.get("module")
    return f"msdnet --import {module}" if module else "msdnet"


def typed(context: typer.Context, *, besides: Collection[str]) -> dict[str, object]:
    """The options that were typed, whatever their values, but for some (by the names of their arguments)."""
    return {
        parameter.opts[0]: context.params[name]
        for parameter in context.command.params
        if (name := str(parameter.name)) not in besides and _was_typed(context, name)
    }


def _was_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_useless(where: str, options: Mapping[str, object]) -> None:
    """What is of no use is not passed over in silence: it was meant to change something."""
    for option, value in options.items():
        if value is not None and value is not False:
            raise ValueError(f"{option} is of no use for {where}")
