"""Where torch computes."""

import os
from functools import cache

import torch

from msdnet.checks import check_choice
from msdnet.machine import local_rank

__all__ = ["kernels_wanted", "pick_device", "side_stream", "training_precision"]


def pick_device(wanted: str | None = None) -> torch.device:
    """The device asked for, or this process's GPU, or the CPU. A GPU has its number, whatever others do later."""
    name = wanted or ("cuda" if torch.cuda.is_available() else "cpu")
    device = _known_device(name)
    if device.type != "cuda":
        return device
    here = torch.cuda.device_count()
    number = (_own_gpu() if here else 0) if device.index is None else device.index
    if number >= here:
        gpus = "".join(f" or cuda:{gpu}" for gpu in range(here)) or " (there is no GPU here)"
        raise ValueError(f"device must be cpu{gpus}, got {name!r}")
    return torch.device("cuda", number)


def training_precision(device: torch.device) -> torch.dtype:
    """What maps are kept in while a network learns; weights, losses and averages are float32 in any case.

    bfloat16 on GPUs and on processors that multiply it by themselves, float32 on others, which would have to make
    float32 of it first. `MSDNET_PRECISION` (float32 or bfloat16) decides otherwise.
    """
    wanted = os.environ.get("MSDNET_PRECISION")
    if wanted is not None:
        check_choice("MSDNET_PRECISION", wanted, ("float32", "bfloat16"))
        return torch.float32 if wanted == "float32" else torch.bfloat16
    multiplies_it = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)  # of torch's own, which may move it
    quick = device.type == "cuda" or (device.type == "cpu" and multiplies_it())
    return torch.bfloat16 if quick else torch.float32


def kernels_wanted() -> str | None:
    """Whose kernels are to train, by `MSDNET_KERNELS`: our own for BN on a GPU, torch's, or on a processor those that
    torch.compile makes. Unless it is set, our own where they can be had, and torch's elsewhere.
    """
    wanted = os.environ.get("MSDNET_KERNELS")
    if wanted is not None:
        check_choice("MSDNET_KERNELS", wanted, ("own", "torch", "compiled"))
    return wanted


@cache
def side_stream(device: torch.device, use: str) -> torch.cuda.Stream | None:  # noqa: ARG001  (what it is kept by)
    """A queue of a GPU's work beside others, always the same for the same use; none where there is no GPU.

    torch has 32 for each GPU, and gives them out in turn. Whoever makes a new one each time has by and by the same as
    another thread: what one of them runs then becomes part of the graph that the other captures.
    """
    return torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]


def _own_gpu() -> int:
    return local_rank() if "LOCAL_RANK" in os.environ else torch.cuda.current_device()


def _known_device(name: str) -> torch.device:
    """Torch has words for many more: for none at all (meta), and for chips that nothing here was ever run on."""
    known = ["cpu", "cuda", *(["mps"] if torch.backends.mps.is_available() else [])]
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = None
    if device is None or device.type not in known:
        raise ValueError(f"device must be {', '.join(known)} or cuda:N, got {name!r}")
    return device
