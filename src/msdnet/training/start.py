"""Networks that were trained before, and starting from one rather than from weights drawn by chance."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msdnet.bundle import WEIGHTS, is_run
from msdnet.checks import check_same
from msdnet.config import NetworkConfig
from msdnet.models import find_bundle, is_model
from msdnet.networks import StagedNetwork, outline
from msdnet.torch_engine import network_of
from msdnet.training.record import load_run
from msdnet.training.trainer import MODEL

__all__ = ["Start", "find_start", "trained_network"]


def trained_network(model: str | Path) -> StagedNetwork:
    """That of a model of the package, of a bundle or of a finished run: in evaluation mode, on the CPU."""
    return find_start(model).network


class Start(NamedTuple):
    """A network whose weights another one starts with."""

    network: StagedNetwork
    classes: tuple[str, ...]
    side: int
    """Of its images, in pixels."""
    facts: Mapping[str, Any]
    """Which it is, as plain JSON values."""

    def check_known(self, facts: Mapping[str, Any]) -> None:
        """Refuse another one than those facts tell of."""
        what = f"{self.facts['folder']}: other weights than the run was started with"
        check_same(what, self.facts["weights"], facts["weights"], places=("now", "then"))

    def give(self, fresh: StagedNetwork, classes: Sequence[str]) -> None:
        """Put the weights into a network. Where classes differ, what depends on them stays as fresh as it is."""
        given, taken = self.network.state_dict(), fresh.state_dict()
        anew = set() if tuple(classes) == self.classes else _of_classes(fresh.config)
        if {name: t.shape for name, t in given.items() if name not in anew} != {
            name: t.shape for name, t in taken.items() if name not in anew
        }:
            other = _difference(self.network.config, fresh.config)
            raise ValueError(f"{self.facts['folder']}: its weights are those of another network: {other}")
        fresh.load_state_dict({name: t for name, t in given.items() if name not in anew}, strict=False)


def find_start(model: str | Path) -> Start:
    """A model of the package by its name, or the folder of a bundle or of a finished run."""
    if is_run(Path(model)) and not is_model(model):
        network, _, facts = load_run(model, device="cpu", open_data=False)
        classes, side, weights = facts["images"]["classes"], facts["images"]["shape"][-1], Path(model) / MODEL
    else:
        bundle = find_bundle(model)
        network, classes, weights = network_of(bundle), bundle.manifest.classes, bundle.folder / WEIGHTS
        side = bundle.manifest.images.side
    told = {
        "name": weights.resolve().parent.name,
        "folder": str(weights.resolve().parent),
        "weights": hashlib.sha256(weights.read_bytes()).hexdigest(),
    }
    return Start(network, tuple(classes), side, told)


def _of_classes(config: NetworkConfig) -> set[str]:
    """The tensors whose shapes depend on how many classes there are."""
    one, other = (outline(config, classes=config.classes + more).state_dict() for more in (0, 1))
    return {name for name, tensor in one.items() if tensor.shape != other[name].shape}


def _difference(theirs: NetworkConfig, ours: NetworkConfig) -> str:
    if theirs.kind != ours.kind:
        return f"a {theirs.kind}, not a {ours.kind}"
    one, other = theirs.to_dict(), ours.to_dict()
    differing = [name for name in one if name != "classes" and one[name] != other[name]]
    return "; ".join(f"{name}: {one[name]!r} there, {other[name]!r} here" for name in differing)
