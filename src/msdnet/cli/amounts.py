"""Budgets and times as people write them: 20M, 1.5G, 30%, 3ms."""

import math

__all__ = ["parse_budget", "parse_budgets", "parse_seconds"]

_FACTORS = {"k": 1e3, "M": 1e6, "G": 1e9}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def parse_budget(text: str, full: float) -> float:
    """Multiply-adds: `20M`, `1.5G`, `20000000`, or `30%` of the full network's.

    >>> parse_budget("20M", full=80e6), parse_budget("25%", full=80e6)
    (20000000.0, 20000000.0)
    """
    number, factor = text.strip(), 1.0
    if number.endswith("%"):
        number, factor = number[:-1], full / 100
    elif number[-1:] in _FACTORS:
        number, factor = number[:-1], _FACTORS[number[-1]]
    try:
        amount = float(number) * factor
    except ValueError:
        raise ValueError(f"a budget must be written like 20M, 1.5G or 30%, got {text!r}") from None
    if not (math.isfinite(amount) and amount > 0):
        raise ValueError(f"a budget must be above 0, got {text!r}")
    return amount


def parse_budgets(text: str, full: float) -> list[float]:
    """Several, with commas between them.

    >>> parse_budgets("10M,50%", full=80e6)
    [10000000.0, 40000000.0]
    """
    return [parse_budget(part, full) for part in text.split(",")]


def parse_seconds(text: str) -> float:
    """`3ms`, `0.2s`, `500us`.

    >>> parse_seconds("3ms")
    0.003
    """
    number = text.strip()
    unit = next((unit for unit in _SECONDS if number.endswith(unit)), "")
    try:
        seconds = float(number.removesuffix(unit)) * _SECONDS[unit]
    except (KeyError, ValueError):
        raise ValueError(f"a time must be written like 3ms, 0.2s or 500us, got {text!r}") from None
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"a time must be above 0, got {text!r}")
    return seconds
