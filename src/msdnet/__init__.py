"""Image classification under a budget: one network with many exits.

Importing this package needs no torch; the functions that do need it import it when they are called.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from msdnet.config import MSDNetConfig, NetworkConfig, even, growing
from msdnet.extras import MissingExtraError, imported_later, needed_for, stand_in
from msdnet.presets import PRESETS, preset_config, register_preset
from msdnet.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from msdnet.classifier import MSDNetClassifier as MSDNetClassifier
    from msdnet.networks import MSDNet, StagedNetwork
    from msdnet.policy import Policy
    from msdnet.runtime import Model, Result
    from msdnet.torch_engine import Precision

__version__ = VERSION

# MSDNetClassifier is public too, but `from msdnet import *` would wait for scikit-learn.
__all__ = [
    "PRESETS",
    "MSDNetConfig",
    "Model",
    "NetworkConfig",
    "Policy",
    "Result",
    "create_network",
    "even",
    "growing",
    "load",
    "load_network",
    "preset_config",
    "register_network",
    "register_preset",
]


def load(
    bundle: str | Path,
    *,
    engine: Literal["onnx", "torch"] = "onnx",
    threads: int | None = None,
    device: str | None = None,
    precision: "Precision" = "float32",
) -> "Model":
    """A model to classify with: one of the package by its name, or the folder of a bundle.

    - engine: onnx (ONNX Runtime on the CPU, no torch needed) or torch (CPU or GPU)
    - threads: of onnx; by default, and at most, one for each core
    - device, precision: of torch; by default a GPU if there is one, in full precision
    """
    from msdnet.checks import check_choice, check_whole
    from msdnet.machine import cores
    from msdnet.models import find_bundle
    from msdnet.runtime import Model, OnnxEngine

    check_choice("engine", engine, ("onnx", "torch"))
    found = find_bundle(bundle)
    found.check()
    if engine == "onnx":
        if device is not None or precision != "float32":
            raise ValueError('device and precision are options of engine="torch"')
        if threads is not None and check_whole("threads", threads) > cores():  # they would wait for each other
            raise ValueError(f"threads must be at most {cores()}, the cores that this process may use, got {threads}")
        return Model(found, OnnxEngine(found, threads=threads))
    if threads is not None:
        raise ValueError('threads is an option of engine="onnx"; for torch there is torch.set_num_threads')
    with needed_for('engine="torch"'):
        from msdnet.torch_engine import TorchEngine
    return Model(found, TorchEngine(found, device=device, precision=precision))


def load_network(model: str | Path) -> "StagedNetwork":
    """A model's network in PyTorch, with its trained weights: one of the package, of a bundle, or of a finished run.

    It is in evaluation mode and on the CPU. Given images that are normalised as the model's are, it answers with the
    logits of every exit; it can be trained further, and exported again.

    >>> load_network("cifar10-small").exit_count
    4
    """
    with needed_for("load_network"):
        from msdnet.training.start import trained_network
    return trained_network(model)


@overload
def create_network(network: MSDNetConfig, **overrides: Any) -> "MSDNet": ...
@overload
def create_network(network: str | NetworkConfig, **overrides: Any) -> "StagedNetwork": ...
def create_network(network: str | NetworkConfig, **overrides: Any) -> "StagedNetwork":
    """A network with fresh weights, from a preset's name or a config; overrides replace fields of the config.

    >>> create_network("cifar_anytime", classes=10).exit_count
    11
    """
    with needed_for("create_network"):
        from msdnet import networks
    return networks.create_network(network, **overrides)


def register_network(config: type[NetworkConfig], build: "Callable[[Any], StagedNetwork]") -> None:
    """Say what builds the networks of a kind: the class of the network itself, or a function of a config.

    From then on configs of this kind can be given wherever a network can: to `create_network`, to `train`, to
    `MSDNetClassifier`. A bundle needs it only where PyTorch is to run it.
    """
    with needed_for("register_network"):
        from msdnet import networks
    networks.register_network(config, build)


_find_later = imported_later(
    __name__, {"classifier": ("MSDNetClassifier",), "policy": ("Policy",), "runtime": ("Model", "Result")}
)


def __getattr__(name: str) -> Any:
    try:
        with needed_for(name):
            return _find_later(name)
    except MissingExtraError as missing:  # help() and hasattr() look at names that nobody means to use
        return stand_in(name, missing)


def __dir__() -> list[str]:
    return [*__all__, "MSDNetClassifier", "__doc__", "__version__"]
