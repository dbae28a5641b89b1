"""`msdnet reproduce gallery`: easy images beside hard ones, of a model that is there."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from msdnet.amounts import in_millions
from msdnet.cli.claims import claims_as_values, judged
from msdnet.cli.models import SAMPLES, open_images

if TYPE_CHECKING:
    from msdnet.reproduce import Gallery

__all__ = ["show_gallery"]


def _plan(model: str | None, as_json: bool) -> None:
    from msdnet.reproduce import GALLERY_MODEL

    if as_json:
        typer.echo(json.dumps({"networks": [], "seconds": 0.0, "ensembles": []}))
    else:
        typer.echo(f"Nothing to train: it takes the model {model or GALLERY_MODEL}, and labelled images.")


def show_gallery(
    model: str | None,
    data: Path | None,
    classes: Sequence[str],
    *,
    results: Path,
    figures: Path,
    plan: bool,
    draw: bool,
    as_json: bool,
) -> None:
    """Make it and draw it; or draw what was made before, from the same images."""
    import msdnet
    from msdnet.report import write_chart
    from msdnet.reproduce import GALLERY, GALLERY_MODEL, make_gallery, read_gallery

    if plan:
        _plan(model, as_json)
        return
    if draw and classes:
        raise ValueError("--draw shows the classes that were chosen before; without it, --class chooses others")
    loaded = msdnet.load(model or GALLERY_MODEL)
    name = GALLERY if loaded.manifest.name == GALLERY_MODEL else f"{GALLERY}_{loaded.manifest.name}"
    file = results / f"{name}.json"
    if draw and not file.exists():
        raise ValueError(f"{file}: nothing is measured yet that could be drawn")
    images = open_images([loaded], SAMPLES if data is None else str(data), None, "test")
    made = read_gallery(file) if draw else make_gallery(loaded, images, classes)
    if made.fingerprint != loaded.bundle.fingerprint:
        raise ValueError(
            f"{file}: made by another {made.model} than this; --model names the one that made it, and without --draw "
            "it is made anew"
        )
    written = write_chart(made.chart(images), figures / f"{name}.svg")
    if not draw:
        made.save(file)
    claims = judged(GALLERY, {})
    if as_json:
        files = [str(path) for path in written]
        typer.echo(json.dumps({"gallery": asdict(made), "claims": claims_as_values(claims), "files": files}))
        return
    _show(made)
    for claim, _ in claims:
        typer.echo(f"\nThe paper: {claim.says}. The figure is for the eye to judge.")
    typer.echo(f"\nwrote {', '.join(str(path) for path in (*written, *([] if draw else [file])))}")


def _show(made: "Gallery") -> None:
    typer.echo(
        f"{made.model} on {made.data}: {made.images:,} images, {in_millions(made.budget)} million multiply-adds per "
        "image"
    )
    for exit, (left, right) in enumerate(zip(made.left, made.right, strict=True), 1):
        typer.echo(f"  exit {exit:<3} {left:6,} left, {right:6,} of them with the right answer")
    for one in made.classes:
        typer.echo(
            f"  {one.name:<20} {one.left_rightly:,} of {one.images:,} left at the first exit and were right, "
            f"{one.needed_the_last:,} that it got wrong left at the last and were right"
        )
