"""Where torch computes."""

import os

import torch

__all__ = ["local_rank", "pick_device"]


def pick_device(wanted: str | None = None) -> torch.device:
    """The device asked for, or this process's GPU, or the CPU. A GPU has its number, whatever others do later."""
    name = wanted or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device must be cpu, cuda or cuda:N, got {name!r}") from error
    if device.type != "cuda":
        return device
    here = torch.cuda.device_count()
    number = (_own_gpu() if here else 0) if device.index is None else device.index
    if number >= here:
        known = f"cpu, or one of {here} GPUs" if here else "cpu, there being no GPU"
        raise ValueError(f"device must be {known}, got {name!r}")
    return torch.device("cuda", number)


def local_rank() -> int:
    """Which of the processes that torchrun started on this machine this is: the first where there are no others."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def _own_gpu() -> int:
    return local_rank() if "LOCAL_RANK" in os.environ else torch.cuda.current_device()
