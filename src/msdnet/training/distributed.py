"""Several processes that train one network together, as torchrun starts them."""

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
from torch import distributed

from msdnet.data.base import Shard
from msdnet.machine import local_rank

__all__ = [
    "first_on_machine_first",
    "from_first",
    "is_first",
    "join_processes",
    "largest_of_all",
    "several_processes",
    "wait_for_all",
]

T = TypeVar("T")


def join_processes(device: torch.device) -> Shard:
    """The share of this process, which is to use the device: all of it, unless torchrun started several.

    Those join once, for all that they will do: one that parts and joins again may find another's old address.
    """
    if device.type == "cuda":
        torch.cuda.set_device(device)  # graphs and streams belong to the current one
    if not several_processes():
        return Shard()
    if not distributed.is_initialized():
        # The first may look at a million images while the others wait.
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(hours=1))
        atexit.register(_part)
    return Shard(distributed.get_rank(), distributed.get_world_size())


def _part() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()


def several_processes() -> bool:
    """Whether torchrun started more than this one."""
    count = os.environ.get("WORLD_SIZE", "1")
    if not count.isdecimal():
        raise ValueError(f"WORLD_SIZE must be a number, as torchrun sets it; got {count!r}")
    return int(count) > 1


def is_first() -> bool:
    """Whether this is the only process, or the one of several that tells what they do."""
    return not several_processes() or os.environ.get("RANK", "0") == "0"


@contextmanager
def first_on_machine_first() -> Iterator[None]:
    """Let one process of each machine do something before the others: a download, say."""
    if local_rank() > 0:
        wait_for_all()
    yield
    if local_rank() == 0:
        wait_for_all()


def wait_for_all() -> None:
    if distributed.is_initialized():
        distributed.barrier()


def largest_of_all(number: int) -> int:
    """The largest of the processes' numbers."""
    on_gpu = distributed.get_backend() == "nccl"
    value = torch.tensor(number, device="cuda" if on_gpu else "cpu")
    distributed.all_reduce(value, distributed.ReduceOp.MAX)
    return int(value)


def from_first(value: T) -> T:
    """The first process's value, for all of them."""
    if not distributed.is_initialized():
        return value
    shared = [value]
    distributed.broadcast_object_list(shared, src=0)
    return shared[0]
