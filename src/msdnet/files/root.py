"""Where the data are: where someone said, or where they were downloaded."""

import os
from pathlib import Path

__all__ = ["data_root", "downloads"]


def data_root(given: str | Path | None) -> Path | None:
    """The folder that was given, or else the one that the environment variable MSDNET_DATA names."""
    place = given or os.environ.get("MSDNET_DATA")
    return Path(place) if place else None  # an empty variable names nothing


def downloads() -> Path:
    """Where a training keeps what it downloads, and who downloads nothing finds it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "msdnet"
