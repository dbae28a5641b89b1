"""Where the data are, if someone said so."""

import os
from pathlib import Path

__all__ = ["data_root"]


def data_root(given: str | Path | None) -> Path | None:
    """The folder that was given, or else the one that the environment variable MSDNET_DATA names."""
    place = given or os.environ.get("MSDNET_DATA")
    return Path(place) if place else None  # an empty variable names nothing
