"""`msdnet reproduce gallery`: easy images beside hard ones, of a model that is there."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from msdnet.amounts import in_millions
from msdnet.cli.claims import claims_as_values, judged
from msdnet.cli.inputs import SAMPLES, open_images
from msdnet.places import check_folder_writable

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
    """Make it and draw it; or draw what was made before, from the same images. Another's is never replaced."""
    import msdnet
    from msdnet.report import write_chart
    from msdnet.reproduce import GALLERY, GALLERY_MODEL, gallery_name, make_gallery

    if plan:
        _plan(model, as_json)
        return
    loaded = msdnet.load(model or GALLERY_MODEL)
    images = open_images([loaded], SAMPLES if data is None else str(data), None, "test")
    if data is None and tuple(loaded.classes) != images.classes:
        raise ValueError(f"{loaded.manifest.name} knows other classes than {images.name}; --data names its own images")
    name = gallery_name(loaded, images, classes)
    file = results / f"{name}.json"
    before = _read(file) if file.exists() else None
    if draw and before is None:
        raise ValueError(f"{file}: nothing is there yet to be drawn; the same command without --draw makes it")
    if before is not None and (other := before.made_otherwise(loaded, images, classes)):
        way_out = "give the same (--model, --data)" if draw else "give another folder (--results), or delete it"
        raise ValueError(f"{file}: made {other}; {way_out}")
    check_folder_writable(figures)  # better told before every image is asked about
    made = before if draw and before is not None else make_gallery(loaded, images, classes)
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


def _read(file: Path) -> "Gallery":
    from msdnet.reproduce import read_gallery

    try:
        return read_gallery(file)
    except ValueError as error:
        raise ValueError(f"{error}; give another folder (--results), or delete it") from error


def _show(made: "Gallery") -> None:
    typer.echo(
        f"{made.model} on {made.data}: {made.images:,} images, {in_millions(made.budget)} million multiply-adds per "
        "image"
    )
    for exit, (left, right) in enumerate(zip(made.left, made.right, strict=True), 1):
        typer.echo(f"  exit {exit:<3} {left:6,} left, {right:6,} of them with the right answer")
    for one in made.classes:
        typer.echo(
            f"  {one.name:<20} {one.left_rightly:,} of {one.images:,} left at the first exit with the right answer, "
            f"{one.needed_the_last:,} left at the last with the right answer after a wrong one at the first"
        )
