"""`msdnet train`: start a training, or go on with one."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msdnet.amounts import counted, in_millions
from msdnet.cli.inputs import cifar_of, read_network
from msdnet.cli.options import (
    BatchSize,
    Data,
    Device,
    Epochs,
    SkipUnreadable,
    Subset,
    Test,
    Workers,
    called,
    refuse_useless,
    typed,
)
from msdnet.cli.tables import print_table
from msdnet.errors import DamagedError, FileError
from msdnet.machine import keep_freed_memory

if TYPE_CHECKING:
    from msdnet.data import DataConfig, Unreadable
    from msdnet.training import Recipe, Summary

__all__ = ["train"]

RecipeName = Annotated[
    str | None,
    typer.Argument(
        metavar="RECIPE", help="paper, paper_imagenet, fast, best, teacher, taught, compare, or a .toml of your own."
    ),
]
Out = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Folder for the run; it must not hold one yet.")]
Resume = Annotated[Path | None, typer.Option(metavar="RUN", help="Resume the run in this folder.")]
DatasetName = Annotated[
    str | None,
    typer.Option(metavar="KIND", help="cifar10, cifar100 or folder. Default: what is found in --data, else cifar100."),
]
Network = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="One of `msdnet presets`, or a .json file with the config of your own network (MSDNetConfig.to_json "
        "writes one). Default: cifar_anytime, or imagenet_4 for images above 64 pixels.",
    ),
]
Teacher = Annotated[
    Path | None, typer.Option(metavar="RUN", help="A finished run to learn from, for recipes with a teacher.")
]
Start = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Start with its weights: one of `msdnet models`, or the folder of a bundle or of a finished run.",
    ),
]
Seed = Annotated[
    int, typer.Option(metavar="NUMBER", help="Seed of the weights, of the order of images and of the augmentation.")
]
HeldOut = Annotated[
    int | None,
    typer.Option(
        metavar="IMAGES",
        help="Training images to hold out. Default: 5,000 of CIFAR, 50,000 of over a million, else a tenth.",
    ),
]
ColourJitter = Annotated[
    float, typer.Option(metavar="SHARE", help="How much to vary the colours of a folder's training images, 0 to 1.")
]
ImageSize = Annotated[
    int | None,
    typer.Option(
        metavar="PIXELS", help="Side of a folder's images as the network sees them. Default: --start's, else 224."
    ),
]
CheckpointSeconds = Annotated[float, typer.Option(metavar="SECONDS", help="Seconds between checkpoints.")]
# What does not define a run, and may change when it goes on.
RESUMABLE = ("--data", "--teacher", "--workers", "--skip-unreadable", "--device", "--checkpoint-seconds", "--test")


def train(
    context: typer.Context,
    recipe: RecipeName = None,
    data: Data = None,
    out: Out = None,
    resume: Resume = None,
    dataset: DatasetName = None,
    network: Network = None,
    teacher: Teacher = None,
    start: Start = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    seed: Seed = 0,
    subset: Subset = None,
    held_out: HeldOut = None,
    image_size: ImageSize = None,
    colour_jitter: ColourJitter = 0.0,
    workers: Workers = None,
    skip_unreadable: SkipUnreadable = False,
    device: Device = None,
    checkpoint_seconds: CheckpointSeconds = 60,
    test: Test = False,
) -> None:
    """Train a network, or resume a run that was stopped. Several GPUs: start it with torchrun.

    Example: msdnet train fast --data cifar/ --out runs/first
    """
    from msdnet import training
    from msdnet.training.distributed import is_first  # torchrun starts several, and one is enough to tell
    from msdnet.training.start import find_start

    keep_freed_memory()
    unreadable: Unreadable | None = "skip" if skip_unreadable else None
    either_way: dict[str, Any] = {"teacher": teacher, "device": device, "test": test}
    either_way["checkpoint_seconds"] = checkpoint_seconds
    finished = resume is not None and training.is_finished(resume)
    with _told_how_to_go_on(context, Path(str(resume or out))):
        if resume is not None:
            fixed = (recipe, out, dataset, network, start, epochs, batch_size, subset, held_out)
            _check_alone(*fixed, seed or None, colour_jitter or None, image_size)
            if cifar := cifar_of(resume):
                refuse_useless(f"a run on {cifar}", {"--workers": workers, "--skip-unreadable": unreadable})
            summary = training.resume(resume, root=data, workers=workers, unreadable=unreadable, **either_way)
        elif recipe is None or out is None:
            raise ValueError("a recipe and --out are needed: msdnet train fast --data FOLDER --out runs/first")
        else:
            side = 224 if start is None else find_start(start).side
            of_folders: dict[str, Any] = {"image_size": image_size, "colour_jitter": colour_jitter, "workers": workers}
            config = _data(dataset, data, side, unreadable, subset=subset, held_out=held_out, **of_folders)
            chosen = _recipe(recipe, epochs, batch_size)
            own = None if network is None else read_network(network)
            summary = training.train(chosen, data=config, network=own, out=out, start=start, seed=seed, **either_way)
    if is_first():
        _print_summary(summary)
        _tell_what_next(called(context), Path(str(resume or out)), finished, summary)


@contextmanager
def _told_how_to_go_on(context: typer.Context, run: Path) -> Iterator[None]:
    """With a run that has begun, so that its folder is taken."""
    from msdnet.data import UnreadableImageError
    from msdnet.training import Interrupted
    from msdnet.training.distributed import is_first
    from msdnet.training.trainer import CHECKPOINT

    try:
        yield
    except Interrupted as stop:
        if is_first():
            typer.echo(f"msdnet: {stop.told(called(context))}", err=True)
        raise typer.Exit(128 + stop.signal_number) from None
    except UnreadableImageError as error:
        raise ValueError(f"{error.what}; go on without it: {_skipping(context, run)}") from error
    except DamagedError as error:
        if error.path != run / CHECKPOINT:
            raise
        raise FileError(error.path, f"{error.why}; without this file the run begins anew") from error


def _skipping(context: typer.Context, run: Path) -> str:
    """The command that goes on with a run without unreadable images; what was typed and may be again is in it."""
    words = [*called(context).split(), "train", "--resume", str(run), "--skip-unreadable"]
    for option, value in typed(context, besides=()).items():
        if option in RESUMABLE:
            words += [option] if value is True else [option, str(value)]
    return shlex.join(words)


def _check_alone(*options: object) -> None:
    if any(option is not None for option in options):
        raise ValueError(
            f"--resume goes on as the run was started, with no recipe and no options but {', '.join(RESUMABLE)}"
        )


def _recipe(name: str, epochs: int | None, batch_size: int | None) -> "Recipe":
    from msdnet.training import load_recipe

    return load_recipe(name).changed(epochs=epochs, batch_size=batch_size)


def _data(
    dataset: str | None,
    root: Path | None,
    usual_side: int,
    unreadable: "Unreadable | None",
    *,
    image_size: int | None,
    colour_jitter: float,
    workers: int | None,
    **shares: Any,
) -> "DataConfig":
    """What is named, or found in the folder. CIFAR's images are as they are, and need no processes to read them."""
    from msdnet.data import DataConfig
    from msdnet.files import CIFAR, dataset_at

    kind = dataset or dataset_at(root)
    if kind in CIFAR:
        where = kind if dataset or root else f"{kind}, which is taken where no --data is named"
        prepared = {"--image-size": image_size, "--colour-jitter": colour_jitter or None}
        refuse_useless(where, prepared | {"--workers": workers, "--skip-unreadable": unreadable})
    return DataConfig(
        dataset=kind,
        root=None if root is None else str(root),
        crop_size=usual_side if image_size is None else image_size,
        colour_jitter=colour_jitter,
        workers=workers,
        unreadable=unreadable or "fatal",
        **shares,
    )


def _print_summary(summary: "Summary") -> None:
    """A table of the exits: what each costs and how often it is right."""
    from rich.table import Table

    table = Table("exit", "multiply-adds", "held-out", *(["test"] if summary.test_accuracy else []), box=None)
    for k, (cost, accuracy) in enumerate(zip(summary.costs, summary.held_out_accuracy, strict=True)):
        test = [f"{100 * summary.test_accuracy[k]:.2f}%"] if summary.test_accuracy else []
        table.add_row(str(k + 1), f"{in_millions(cost)} M", f"{100 * accuracy:.2f}%", *test)
    print_table(table)


def _tell_what_next(command: str, folder: Path, finished: bool, summary: "Summary") -> None:
    """Of a run that has ended, or that was finished before."""
    quoted, bundle = (shlex.quote(str(path)) for path in (folder, Path("bundles", folder.resolve().name)))
    rate = f"{counted(summary.epochs, 'epoch')} in {summary.seconds:,.0f} s, {summary.images_per_second:,.0f} images/s"
    typer.echo(f"{rate}; the network is in {folder / 'model.safetensors'}")
    if finished:
        longer = "to train longer, start a new run with more --epochs"
        typer.echo(f"{folder} was finished already: nothing was left to train ({longer})")
        if summary.test_accuracy is None:
            typer.echo(f"to look at its test images, once all is chosen: {command} train --resume {quoted} --test")
    typer.echo(f"next, make a bundle to classify with: {command} export {quoted} --out {bundle}")
