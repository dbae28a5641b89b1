"""Where the data are: where someone said, or where they were downloaded."""

import os
from pathlib import Path

__all__ = ["data_root", "download_folder"]


def data_root(given: str | Path | None) -> Path | None:
    """The folder that was given, or else the one that the environment variable MSDNET_DATA names."""
    place = given or os.environ.get("MSDNET_DATA")
    return Path(place) if place else None  # an empty variable names nothing


def download_folder() -> Path | None:
    """For what is downloaded: `~/.cache/msdnet`. There is none for who has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "msdnet"
    except RuntimeError:
        return None
