"""A model's card: what it was trained on and how, how good it is at what cost, and what it is not for.

Written beside every bundle, from what its manifest and its held-out images say.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from msdnet.amounts import counted, in_millions
from msdnet.bundle import Manifest
from msdnet.naming import printable
from msdnet.policy import PolicyFamily, that_differ, usual_budgets

__all__ = ["write_card"]


def write_card(manifest: Manifest, held_out: Mapping[str, NDArray[Any]] | None) -> str:
    """In Markdown."""
    parts = (_about(manifest), _training(manifest), _exits(manifest), _budgets(manifest, held_out), _limits(manifest))
    return "\n\n".join(filter(None, map("\n".join, parts))) + "\n"


def _about(manifest: Manifest) -> Iterator[str]:
    side, classes = manifest.images.side, manifest.classes
    yield f"# {manifest.name}"
    yield ""
    yield (
        f"A network with {counted(manifest.exit_count, 'exit')} that tells {len(classes)} classes apart in images of "
        f"{side} x {side} pixels, for {in_millions(manifest.costs[0])} to {in_millions(manifest.costs[-1])} million "
        "multiply-adds."
    )
    yield ""
    yield f"Classes: {', '.join(map(_escaped, classes))}."


def _escaped(name: str) -> str:
    """On one line, and no tag of HTML, as which Markdown takes what stands in angles."""
    return printable(name).replace("<", "&lt;")


def _training(manifest: Manifest) -> Iterator[str]:
    told = manifest.provenance
    recipe, data = told.get("recipe", {}), told.get("data", {})
    if not {"name", "epochs", "batch_size"} <= recipe.keys():  # nothing is told, or of a training that is not ours
        return
    yield "## Training"
    yield ""
    chosen = "its held-out images are not in this bundle, so that no budget can be set"
    if manifest.held_out is not None:
        chosen = f"{counted(manifest.held_out.images, 'training image')} held out, on which alone anything was chosen"
    yield f"- Data: {_data(data)}; {chosen}"
    yield (
        f"- Recipe: {recipe['name']}, {counted(recipe['epochs'], 'epoch')} in batches of {recipe['batch_size']}, "
        f"seed {told.get('seed')}; all of it is in the manifest"
    )
    if "teacher" in told:
        yield f"- Teacher: a {told['teacher']['network']['kind'].replace('_', ' ')} trained on the same images"
    if "start" in told:
        yield f"- Started with the weights of {told['start']['name']}"
    exported = f"; exported by {told['exported_by']}" if "exported_by" in told else ""
    yield f"- Trained by msdnet {told.get('msdnet')}, torch {told.get('torch')}{exported}"


def _data(told: Mapping[str, Any]) -> str:
    """Where a folder is, and what it is called, is not told to others."""
    name = str(told.get("dataset") or told.get("name"))
    return "a folder of images for each class" if name == "folder" else name


def _exits(manifest: Manifest) -> Iterator[str]:
    columns = manifest.measured
    if not columns:
        return
    yield "## Exits"
    yield ""
    yield (
        "| exit | million multiply-adds | counting whole layers | "
        + " | ".join(f"accuracy in %, {found.images:,} {images} images" for images, found in columns.items())
        + " |"
    )
    yield "|---" * (3 + len(columns)) + "|"
    for exit, (cost, whole) in enumerate(zip(manifest.costs, manifest.whole_costs, strict=True)):
        right = [f"{100 * found.accuracy[exit]:.2f}" for found in columns.values()]
        yield f"| {exit + 1} | {cost / 1e6:.2f} | {whole / 1e6:.2f} | " + " | ".join(right) + " |"


def _budgets(manifest: Manifest, held_out: Mapping[str, NDArray[Any]] | None) -> Iterator[str]:
    if held_out is None or manifest.exit_count < 2:
        return
    family = PolicyFamily(held_out["largest"], held_out["correct"], manifest.costs)
    yield "## Budgets"
    yield ""
    yield "Accuracy at average budgets, on the held-out images that the thresholds are fitted to. Less than the budget"
    yield "is spent where more does not raise this accuracy; budgets at which nothing changes are left out."
    yield ""
    yield "| budget, million multiply-adds per image | spent | accuracy in % |"
    yield "|---|---|---|"
    for policy in that_differ(map(family.policy, usual_budgets(manifest.costs))):
        yield f"| {policy.budget_ / 1e6:g} | {in_millions(policy.cost_)} | {100 * policy.accuracy_:.1f} |"


def _limits(manifest: Manifest) -> Iterator[str]:
    side = manifest.images.side
    yield "## Limits"
    yield ""
    yield (
        f"- Every image gets one of the {len(manifest.classes)} classes, whatever it shows. On images unlike the "
        "training images, accuracy and confidences mean little, and average budgets are not kept unless they are hard "
        "or steady."
    )
    yield f"- Images are resized and cropped to {side} x {side} pixels: what cannot be seen at that size is not seen."
    yield "- Confidence decides who leaves early: inputs made to look unsure take longer, unless the budget is hard."
