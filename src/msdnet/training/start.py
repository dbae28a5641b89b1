"""Networks that were trained before, wherever they are."""

from pathlib import Path

from msdnet.bundle import is_run
from msdnet.models import find_bundle
from msdnet.networks import StagedNetwork
from msdnet.torch_engine import network_of
from msdnet.training.run import load_run

__all__ = ["trained_network"]


def trained_network(model: str | Path) -> StagedNetwork:
    """That of a model of the package, of a bundle or of a finished run: in evaluation mode, on the CPU."""
    if is_run(Path(model)):
        return load_run(model, device="cpu", open_data=False).network
    return network_of(find_bundle(model))
