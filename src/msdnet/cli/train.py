"""`msdnet train`: start a training, or go on with one."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from msdnet.config import NetworkConfig

if TYPE_CHECKING:
    from msdnet.training import Summary

__all__ = ["train"]

RecipeName = Annotated[str | None, typer.Argument(help="paper, paper_imagenet, fast, or a .toml file of your own.")]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder of the data: CIFAR's binary files, or images by class. Default: MSDNET_DATA."),
]
Out = Annotated[Path | None, typer.Option(help="Folder for the run; it must not hold one yet.")]
Resume = Annotated[Path | None, typer.Option(help="Go on with the run in this folder.")]
DatasetName = Annotated[
    str | None, typer.Option(help="cifar10, cifar100 or folder. Default: what is found in --data, else cifar100.")
]
Network = Annotated[
    str | None,
    typer.Option(help="A preset or a config's .json file. Default: cifar_anytime, for larger images imagenet_4."),
]
Epochs = Annotated[int | None, typer.Option(help="Train longer or shorter; the schedule moves along.")]
BatchSize = Annotated[int | None, typer.Option(help="Other than the recipe's.")]
Seed = Annotated[int, typer.Option(help="Weights, order of images and augmentation follow from it.")]
Subset = Annotated[int | None, typer.Option(help="Train on so many images only, for a quick try.")]
ImageSize = Annotated[int, typer.Option(help="Side of a folder's images as the network sees them.")]
Workers = Annotated[int | None, typer.Option(help="Processes that decode a folder's images.")]
SkipUnreadable = Annotated[bool, typer.Option("--skip-unreadable", help="Warn of unreadable images and go on.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, ... Default: a GPU if there is one.")]
CheckpointSeconds = Annotated[float, typer.Option(help="Seconds between checkpoints.")]
Test = Annotated[bool, typer.Option("--test", help="At the end, look at the test images once.")]


def train(
    recipe: RecipeName = None,
    data: Data = None,
    out: Out = None,
    resume: Resume = None,
    dataset: DatasetName = None,
    network: Network = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    seed: Seed = 0,
    subset: Subset = None,
    image_size: ImageSize = 224,
    workers: Workers = None,
    skip_unreadable: SkipUnreadable = False,
    device: Device = None,
    checkpoint_seconds: CheckpointSeconds = 60,
    test: Test = False,
) -> None:
    """Train a network, or go on with a training that was stopped. Several GPUs: start it with torchrun.

    Example: msdnet train fast --data cifar/ --out runs/first
    """
    from msdnet import training
    from msdnet.data import DataConfig

    try:
        if resume is not None:
            if recipe is not None or out is not None:
                raise ValueError("--resume goes on as the run was started: give no recipe and no --out with it")
            summary = training.resume(
                resume, root=data, device=device, test=test, checkpoint_seconds=checkpoint_seconds
            )
        elif recipe is None or out is None:
            raise ValueError("a recipe and --out are needed: msdnet train fast --data FOLDER --out runs/first")
        else:
            chosen = training.load_recipe(recipe)
            chosen = chosen if batch_size is None else replace(chosen, batch_size=batch_size)
            config = DataConfig(
                dataset=dataset or DataConfig.dataset_at(data),
                root=None if data is None else str(data),
                subset=subset,
                crop_size=image_size,
                workers=workers,
                unreadable="skip" if skip_unreadable else "fatal",
            )
            summary = training.train(
                chosen if epochs is None else chosen.lasting(epochs),
                data=config,
                network=_named_network(network),
                out=out,
                seed=seed,
                device=device,
                test=test,
                checkpoint_seconds=checkpoint_seconds,
            )
    except training.Interrupted as stop:
        typer.echo(f"msdnet: {stop}", err=True)
        raise typer.Exit(128 + stop.signal_number) from None
    _print_summary(summary)


def _named_network(name: str | None) -> str | NetworkConfig | None:
    """A preset's name as it is, or the config in a JSON file."""
    if name is None or not name.endswith(".json"):
        return name
    return NetworkConfig.from_json(Path(name).read_text())


def _print_summary(summary: "Summary") -> None:
    """A table of the exits: what each costs and how often it is right."""
    from rich.console import Console
    from rich.table import Table

    table = Table("exit", "multiply-adds", "held-out", *(["test"] if summary.test_accuracy else []), box=None)
    for k, (cost, accuracy) in enumerate(zip(summary.costs, summary.held_out_accuracy, strict=True)):
        test = [f"{100 * summary.test_accuracy[k]:.2f}%"] if summary.test_accuracy else []
        table.add_row(str(k + 1), f"{cost / 1e6:,.1f} M", f"{100 * accuracy:.2f}%", *test)
    Console().print(table)
    typer.echo(
        f"{summary.epochs} epochs in {summary.seconds:,.0f} s, {summary.images_per_second:,.0f} images/s; "
        f"the network is in {Path(summary.folder) / 'model.safetensors'}"
    )
