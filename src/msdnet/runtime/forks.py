"""What a forked process makes anew. Locks are copied as they are, but not the threads that would release them."""

import os
from collections.abc import Callable
from weakref import WeakMethod

__all__ = ["call_after_fork"]

_methods: set[WeakMethod[Callable[[], None]]] = set()


def call_after_fork(method: Callable[[], None]) -> None:
    """Have a method called in every child, as long as what it belongs to is there."""
    _methods.add(WeakMethod(method, _methods.discard))


def _after_fork() -> None:
    for known in list(_methods):
        if (method := known()) is not None:
            method()


if hasattr(os, "register_at_fork"):  # where there is no fork, there is none
    os.register_at_fork(after_in_child=_after_fork)
