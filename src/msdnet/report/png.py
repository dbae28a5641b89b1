"""Charts as PNG, where resvg is installed."""

import warnings
from functools import cache

from msdnet.report.charts import SYSTEM_FONT

__all__ = ["to_png"]

# Most systems have one of them; resvg knows no system-ui, and sans-serif only where there is Arial.
_FONTS = "DejaVu Sans, Liberation Sans, Noto Sans, Arial, Helvetica, Segoe UI"
_WORD = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text y="9" font-family="{}">{}</text></svg>'


def to_png(svg: str) -> bytes | None:
    """The picture three times as large, for print and for screens with small pixels."""
    try:
        from resvg_py import svg_to_bytes
    except ModuleNotFoundError:
        return None
    if not _can_write():
        warnings.warn(f"PNGs are without words, for want of a font: install one of {_FONTS}", stacklevel=2)
    return bytes(svg_to_bytes(svg_string=svg.replace(SYSTEM_FONT, f"{_FONTS}, {SYSTEM_FONT}"), zoom=3))


@cache
def _can_write() -> bool:
    from resvg_py import svg_to_bytes

    word, nothing = (svg_to_bytes(svg_string=_WORD.format(_FONTS, text)) for text in ("W", ""))
    return bytes(word) != bytes(nothing)
