"""Amounts: budgets and times as people write them (20M, 1.5G, 30%, 3ms), and numbers as they are shown."""

import math
from typing import TypeAlias

__all__ = [
    "Amount",
    "counted",
    "exactly",
    "four_digits",
    "in_millions",
    "parse_budget",
    "parse_budgets",
    "parse_seconds",
]

Amount: TypeAlias = float | str
"""Multiply-adds or seconds: a number, or text with a unit."""

_FACTORS = {"k": 1e3, "M": 1e6, "G": 1e9}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def parse_budget(text: str, first: float, full: float) -> float:
    """Multiply-adds: `20M`, `1.5G`, `20000000`, or `30%` of the full network's.

    - first, full: what the first exit takes, which is the least that a budget must cover, and what the last takes

    >>> parse_budget("20M", first=8e6, full=80e6), parse_budget("25%", first=8e6, full=80e6)
    (20000000.0, 20000000.0)
    >>> parse_budget("5%", first=8e6, full=80e6)
    Traceback (most recent call last):
    ValueError: a budget must be at least 10% (8M): the first exit takes 8,000,000 multiply-adds; 5% is 4M
    >>> parse_budget("7", first=8e3, full=80e3)
    Traceback (most recent call last):
    ValueError: a budget must be at least 8k (10%): the first exit takes 8,000 multiply-adds; 7 has no unit: 7M or 7%?
    """
    number, factor, parts = text.strip(), 1.0, 1
    if number.endswith("%"):
        number, factor, parts = number[:-1], full, 100  # divided last, so that 100% is neither more nor less than all
    elif number[-1:] in _FACTORS:
        number, factor = number[:-1], _FACTORS[number[-1]]
    try:
        amount = float(number) * factor / parts
    except ValueError:
        amount = math.nan
    if not math.isfinite(amount):
        raise ValueError(f"a budget must be written like 20M, 1.5G or 30%, got {text!r}")
    if not amount > 0:
        raise ValueError(f"a budget must be above 0, got {text!r}")
    _check_covered(text, amount, first, full)
    return amount


def _check_covered(text: str, amount: float, first: float, full: float) -> None:
    """Tells what is possible in the unit that was given, with the other beside it."""
    in_per_cent = text.strip().endswith("%")
    if amount < first:
        least = _per_cent(first, full), _short(first)
        told = "{0} ({1})" if in_per_cent else "{1} ({0})"
        needs, got = f"the first exit takes {exactly(first)}", _got(text.strip(), amount)
        raise ValueError(f"a budget must be at least {told.format(*least)}: {needs}{got}")
    if in_per_cent and amount > full:
        raise ValueError(f"a budget must be at most 100% ({_short(full)}), which the last exit takes, got {text!r}")


def _got(text: str, amount: float) -> str:
    if text.endswith("%"):
        return f"; {text} is {amount / 1e6:.4g}M"
    if not text.replace(".", "", 1).isdigit():
        return f", got {text}"
    meant = f"{text}M or {text}%" if float(text) > 1 else f"{100 * float(text):.4g}%"
    return f"; {text} has no unit: {meant}?"


def _per_cent(amount: float, full: float) -> str:
    """To a tenth, rounded up, so that what is told can be typed."""
    return f"{math.ceil(1e3 * amount / full) / 10:g}%"


def _short(amount: float) -> str:
    """To four digits, rounded up as well: 8.714M."""
    unit, factor = next(((unit, factor) for unit, factor in reversed(_FACTORS.items()) if amount >= factor), ("", 1.0))
    step = 10.0 ** (math.floor(math.log10(amount / factor)) - 3)
    return f"{math.ceil(amount / factor / step - 1e-9) * step:.4g}{unit}"


def parse_budgets(text: str, first: float, full: float) -> list[float]:
    """Several, with commas between them, the least first. If none covers the first exit, they are refused.

    >>> parse_budgets("50%,1M,10M", first=8e6, full=80e6)
    [1000000.0, 10000000.0, 40000000.0]
    """
    parts = text.split(",")
    amounts = sorted({parse_budget(part, 0, full) for part in parts})
    if amounts[-1] < first:
        parse_budget(parts[0], first, full)  # says why not
    return amounts


def in_millions(amount: float) -> str:
    """To a tenth; of less than one, three digits, or else small networks would cost all the same.

    >>> in_millions(13_340_000), in_millions(1.3e9), in_millions(113_400), in_millions(0)
    ('13.3', '1,300.0', '0.113', '0.0')
    """
    number = amount / 1e6
    decimals = 2 - math.floor(math.log10(number)) if 0 < number < 1 else 1
    return f"{number:,.{decimals}f}"


def four_digits(number: float) -> str:
    """To four digits, or to a whole number where it has more, which then has commas and no exponent.

    >>> four_digits(9.8824), four_digits(37.7401), four_digits(8_400.4), four_digits(10_960.3), four_digits(1 / 6)
    ('9.882', '37.74', '8,400', '10,960', '0.1667')
    """
    return f"{number:,.4g}" if abs(number) < 9999.5 else f"{number:,.0f}"


def exactly(amount: float) -> str:
    """What no shorter number tells from one that is just too low.

    >>> exactly(13_243_560)
    '13,243,560 multiply-adds'
    """
    return f"{amount:,.15g} multiply-adds"


def counted(number: int, one: str, several: str | None = None) -> str:
    """So many of something, as people say it.

    >>> counted(1, "exit"), counted(2_000, "exit"), counted(2, "batch", "batches")
    ('1 exit', '2,000 exits', '2 batches')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def parse_seconds(text: str, *, may_be_0: bool = False) -> float:
    """`3ms`, `0.2s`, `500us`.

    >>> parse_seconds("3ms"), parse_seconds("0ms", may_be_0=True)
    (0.003, 0.0)
    """
    number = text.strip()
    unit = next((unit for unit in _SECONDS if number.endswith(unit)), "")
    try:
        seconds = float(number.removesuffix(unit)) * _SECONDS[unit]
    except (KeyError, ValueError):
        raise ValueError(f"a time must be written like 3ms, 0.2s or 500us, got {text!r}") from None
    if math.isinf(seconds):
        raise ValueError(f"a time must be finite, got {text!r}")
    if not (seconds > 0 or (may_be_0 and seconds == 0)):
        raise ValueError(f"a time must be {'at least' if may_be_0 else 'above'} 0, got {text!r}")
    return seconds
