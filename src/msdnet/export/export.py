"""Writing a bundle. It appears in its place when it is whole and ONNX Runtime agrees with PyTorch at every exit."""

import copy
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import safetensors.numpy
import torch
from numpy.typing import NDArray

from msdnet.bundle import (
    CARD,
    FORMAT,
    HELD_OUT,
    IMAGES,
    MANIFEST,
    STAGES,
    WEIGHTS,
    Bundle,
    ImageSpec,
    Manifest,
    Measured,
    stage_file,
)
from msdnet.card import write_card
from msdnet.data import Batch, ImageData, Unreadable
from msdnet.export.averaging import POWERS, AveragingChoice, averaged, choose_averaging
from msdnet.export.graphs import StoredWeights, stage_graphs, switched
from msdnet.files import class_names
from msdnet.networks import MSDNet, StagedNetwork, empty_network
from msdnet.policy import Judged, fit_temperatures, judge_logits
from msdnet.runtime import OnnxEngine
from msdnet.training import all_logits, load_run
from msdnet.version import VERSION
from msdnet.writing import check_free, new_folder

__all__ = ["ExportError", "export_network", "export_run"]

TOLERANCE = 1e-4  # of an exit's largest absolute logit
CHECKED_IMAGES = 8


class ExportError(ArithmeticError):
    """The exported graphs do not compute what the network computes."""


def export_run(
    run: str | Path,
    out: str | Path,
    *,
    name: str | None = None,
    data: ImageData | None = None,
    root: str | Path | None = None,
    held_out: bool = True,
    half: bool = False,
    calibrate: bool = False,
    test: bool = False,
    averaging: float | Literal["best"] | None = None,
    unreadable: Unreadable | None = None,
    device: str | None = None,
) -> Bundle:
    """Make a bundle of the network that a run has trained.

    - data: the run's, if it was started with data of its own; root: where they are now, if they have moved
    - held_out: whether to look at the held-out images, without which the bundle can keep no budget
    - half: store the weights in half precision
    - calibrate: fit a temperature for each exit on the held-out images, so that its confidences mean what they say
    - test: look at the test images, and write the accuracy of every exit down
    - averaging: have exits answer with the average of the exits so far (see `MSDNetConfig`); `best` compares some
      powers, and none, on the held-out images, and writes down what each brought
    - unreadable: an image that cannot be read ends it (`fatal`), or is warned of and left out (`skip`); by default as
      in training
    """
    if averaging == "best" and not held_out:
        raise ValueError("the best averaging is found on held-out images, and they are not to be looked at")
    check_free(Path(out))
    trained = load_run(run, data=data, root=root, unreadable=unreadable, device=device, open_data=held_out or test)
    facts, compared, seen = trained.facts, None, None
    _, side, width = facts["images"]["shape"]
    if side != width:
        raise ValueError(f"bundles are for square images, and the run's are {side} x {width}")
    if test and trained.data is not None and not trained.data.size("test"):
        raise ValueError(f"{trained.data.name}: has no test images to look at (test, --test)")
    looked_at = trained.data.batches("held_out", 250) if trained.data is not None and held_out else None
    if averaging == "best":
        assert looked_at is not None
        compared, seen = _compare(trained.network, looked_at, half)
        trained = trained._replace(network=_averaging(trained.network, compared.power))
    elif averaging is not None:
        trained = trained._replace(network=_averaging(trained.network, averaging))
    at_hand = data if trained.data is None else trained.data
    images = ImageSpec(side=side, resize=_resize(facts, at_hand), **facts["images"]["normalisation"])
    return export_network(
        trained.network,
        out,
        name=name,
        classes=facts["images"]["classes"],
        images=images,
        held_out=seen or looked_at,
        test=trained.data.batches("test", 250) if trained.data is not None and test else None,
        half=half,
        calibrate=calibrate,
        provenance=_provenance(facts) | ({} if compared is None else {"averaging": compared.to_dict()}),
    )


def _averaging(network: StagedNetwork, power: float | None) -> MSDNet:
    """The same network, whose exits answer with such an average."""
    made = _msdnet(empty_network(replace(_msdnet(network).config, averaging=power)))
    made.load_state_dict(network.state_dict())
    return made.to(next(network.parameters()).device).eval()


def _msdnet(network: StagedNetwork) -> MSDNet:
    if not isinstance(network, MSDNet):
        raise ValueError("averaging is for the exits of an MSDNet")
    return network


class _Seen(NamedTuple):
    """What a network, as it is stored, says of some images."""

    logits: NDArray[np.float32]
    labels: NDArray[np.int64]


def _compare(network: StagedNetwork, held_out: Iterable[Batch], half: bool) -> tuple[AveragingChoice, _Seen]:
    """The usual powers, and the one that it was trained with, if any; and what the exits say with the best of them."""
    alone = _averaging(network, None)
    powers = (*POWERS, _msdnet(network).config.averaging)
    seen = _Seen(*all_logits(_as_stored(alone, half), held_out))
    choice = choose_averaging(alone.config, *seen, powers)
    shares = replace(alone.config, averaging=choice.power).exit_shares
    return choice, seen._replace(logits=averaged(seen.logits, shares))


def _provenance(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What made the model, without the places where things were on the machine that did."""
    places = ("root", "folder", "workers")
    told = {key: value for key, value in facts.items() if key not in ("network", "images", "resize")}
    for key in told.keys() & {"data", "teacher", "start"}:
        told[key] = {name: value for name, value in told[key].items() if name not in places}
    return told | {key: facts["images"][key] for key in ("held_out", "held_out_seed", "held_out_sha256")}


def _resize(facts: Mapping[str, Any], data: ImageData | None) -> int:
    """To what the shorter side of an image is resized before its centre is cropped.

    As that of the images which the bundle is judged by, if they are at hand; else as the run tells it.
    """
    return int(facts["resize"]) if data is None else data.resized_to


def export_network(
    network: StagedNetwork,
    out: str | Path,
    *,
    classes: Sequence[str],
    images: ImageSpec,
    name: str | None = None,
    held_out: Iterable[Batch] | _Seen | None = None,
    test: Iterable[Batch] | None = None,
    half: bool = False,
    calibrate: bool = False,
    provenance: Mapping[str, Any] | None = None,
) -> Bundle:
    """Make a bundle of a network, however it was trained.

    - classes: their names; images: what the network takes. Of data, these are `data.classes` and `data.image_spec`
    - name: what the model is called; by default as the folder
    - held_out: labelled batches that it was not trained on, such as `data.batches("held_out", 250)`: without them the
      bundle can keep no budget; test: others, for the accuracy that it tells
    - half, calibrate: as for `export_run`
    - provenance: where the model is from, as plain JSON values; `data` and `recipe`, where told, are tables of fields
    """
    folder, names = Path(out), class_names(classes)
    check_free(folder)
    if calibrate and held_out is None:
        raise ValueError("temperatures are fitted on held-out images, and there are none")
    network = _as_stored(network, half)
    seen = held_out if held_out is None or isinstance(held_out, _Seen) else all_logits(network, held_out)
    temperatures = fit_temperatures(*seen) if calibrate and seen is not None else (1.0,) * network.exit_count
    judged = None if seen is None else judge_logits(*seen, temperatures=temperatures)
    tested = None if test is None else judge_logits(*all_logits(network, test), measures=())
    manifest = Manifest(
        format=FORMAT,
        name=name or folder.name,
        network=network.config,
        classes=names,
        images=images,
        costs=network.costs(images.side),
        whole_costs=network.costs(images.side, lazy=False),
        temperatures=temperatures,
        held_out=_measured(judged),
        test=_measured(tested),
        provenance={"exported_by": f"msdnet {VERSION}, torch {torch.__version__}", **(provenance or {})},
    )
    tensors = None if judged is None else _tensors(judged)
    with new_folder(folder) as scratch:
        bundle = _write(scratch, manifest, _contents(network, images.side, tensors, half))
        (scratch / CARD).write_text(write_card(manifest, tensors), encoding="utf-8")
        _check(network, bundle)
    return Bundle(folder)


def _as_stored(network: StagedNetwork, half: bool) -> StagedNetwork:
    """A copy with the weights that the bundle will hold."""
    stored = copy.deepcopy(network).eval().float()
    if half:
        stored = stored.half().float()
        if not all(bool(tensor.isfinite().all()) for tensor in stored.state_dict().values()):
            raise ExportError("some weights are too large for half precision; export in full precision")
    return stored


def _measured(judged: Judged | None) -> Measured | None:
    return None if judged is None else Measured(images=len(judged.correct), accuracy=judged.accuracy)


def _tensors(judged: Judged) -> dict[str, NDArray[Any]]:
    """What a bundle keeps of the held-out images."""
    sure = {str(measure): values for measure, values in judged.confidence.items()}
    return {"correct": judged.correct.astype(np.uint8), **sure}


def _contents(
    network: StagedNetwork, side: int, held_out: Mapping[str, NDArray[Any]] | None, half: bool
) -> dict[str, bytes]:
    """The bytes of every file but the manifest."""
    weights = {
        name: tensor.cpu().numpy().astype(np.float16 if half else np.float32)
        for name, tensor in network.state_dict().items()
        if tensor.is_floating_point()
    }
    contents = {WEIGHTS: safetensors.numpy.save(weights)}
    stages = stage_graphs(network, side, StoredWeights(WEIGHTS, contents[WEIGHTS]))
    contents |= {stage_file(exit): graph.SerializeToString() for exit, graph in enumerate(stages)}
    contents[STAGES] = switched(stages).SerializeToString()
    if held_out is not None:
        contents[HELD_OUT] = safetensors.numpy.save({name: np.ascontiguousarray(v) for name, v in held_out.items()})
    return contents


def _write(folder: Path, manifest: Manifest, contents: Mapping[str, bytes]) -> Bundle:
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    (folder / MANIFEST).write_text(replace(manifest, files=sums).to_json(), encoding="utf-8")
    return Bundle(folder)


@torch.inference_mode()
def _check(network: StagedNetwork, bundle: Bundle) -> None:
    """ONNX Runtime, stage by stage, against PyTorch, whole."""
    network = copy.deepcopy(network).cpu()
    engine, spec = OnnxEngine(bundle), bundle.manifest.images
    pixels = np.random.default_rng(0).integers(0, 256, (CHECKED_IMAGES, *spec.shape), dtype=np.uint8)
    state = engine.begin(pixels)
    for exit, expected in enumerate(network(torch.from_numpy(state.maps[IMAGES]))):
        logits, state = engine.logits(state)
        reference = expected.numpy()
        error = float(np.abs(logits - reference).max() / max(float(np.abs(reference).max()), 1e-12))
        if not error <= TOLERANCE:
            raise ExportError(f"exit {exit + 1}: ONNX Runtime and PyTorch differ by {error:.1e} of the largest logit")
