"""Several processes that train one network together, as torchrun starts them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import distributed

from msdnet.data.base import Shard

__all__ = ["largest_of_all", "pick_device", "processes", "wait_for_all"]


def pick_device(wanted: str | None = None) -> torch.device:
    """The device asked for, or this process's GPU, or the CPU."""
    if wanted is not None:
        return torch.device(wanted)
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


@contextmanager
def processes(device: torch.device) -> Iterator[Shard]:
    """The share of this process: all of it, unless torchrun started several."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Shard()
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Shard(distributed.get_rank(), world)
    finally:
        distributed.destroy_process_group()


def wait_for_all() -> None:
    if distributed.is_initialized():
        distributed.barrier()


def largest_of_all(number: int) -> int:
    """The largest of the processes' numbers."""
    on_gpu = distributed.get_backend() == "nccl"
    value = torch.tensor(number, device="cuda" if on_gpu else "cpu")
    distributed.all_reduce(value, distributed.ReduceOp.MAX)
    return int(value)
