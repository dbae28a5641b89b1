"""What a forked process makes anew. Locks are copied as they are, but not the threads that would release them."""

import os
import weakref
from typing import Protocol

__all__ = ["renew_after_fork"]


class _Renewed(Protocol):
    def after_fork(self) -> None: ...


_renewed = weakref.WeakSet[_Renewed]()


def renew_after_fork(thing: _Renewed) -> None:
    """Have its `after_fork` called in every child, as long as it is there."""
    _renewed.add(thing)


def _after_fork() -> None:
    for thing in list(_renewed):
        thing.after_fork()


if hasattr(os, "register_at_fork"):  # where there is no fork, there is none
    os.register_at_fork(after_in_child=_after_fork)
