"""The version of the package, in the one place where it is written."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
