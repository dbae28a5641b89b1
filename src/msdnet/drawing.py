"""Drawings of a network's grid and of what each stage computes, as SVG and as text.

Made from the grid alone, without torch and without a plotting library, so that a small install can draw too.
"""

import colorsys
from collections.abc import Iterator
from html import escape

from msdnet.plan import IMAGE, Cell, Grid

__all__ = ["draw_svg", "draw_text"]

_PITCH = 58  # between the centres of neighbouring cells
_LEFT, _TOP = 100, 76  # centre of the first cell
_NARROWEST = 540  # with room for a title
_LEGEND_ROW = 20
_INK, _FAINT = "#2b3137", "#8b949e"


def draw_text(grid: Grid, columns: int = 80) -> str:
    """The grid as text: a row for each scale, a column for each layer, each cell's stage as a number.

    Layers that do not fit into so many columns go on below.
    """
    layers = range(max(cell.layer for cell in grid.cells) + 1)
    per_band = max((columns - 9) // 3, 1)
    bands = [layers[start : start + per_band] for start in range(0, len(layers), per_band)]
    return "\n\n".join(_text_band(grid, band) for band in bands)


def _text_band(grid: Grid, layers: range) -> str:
    stage_of = _stage_of(grid)
    exits = {cell.layer: k for k, cell in enumerate(grid.exits)}
    rows: list[tuple[str, list[str]]] = [("layer", [str(layer) for layer in layers])]
    for scale in range(1, grid.config.scales + 1):
        stages = (stage_of.get(Cell(layer, scale)) for layer in layers)
        rows.append((f"scale {scale}", ["." if k is None else str(k + 1) for k in stages]))
    rows.append(("exit", [str(exits[layer] + 1) if layer in exits else "" for layer in layers]))
    return "\n".join(f"{name:>8} {''.join(f'{entry:>3}' for entry in entries)}".rstrip() for name, entries in rows)


def draw_svg(grid: Grid, title: str = "", last_layer: int | None = None) -> str:
    """The grid, or its first layers, as one SVG: cells coloured by the stage that computes them."""
    layers = 1 + min(max(cell.layer for cell in grid.cells), grid.config.depth if last_layer is None else last_layer)
    shown = [cell for cell in grid.cells if cell.layer < layers]
    width = max(_LEFT + layers * _PITCH, _NARROWEST)
    legend = _legend(grid, shown, width)
    height = _TOP + grid.config.scales * _PITCH + 44 + _LEGEND_ROW * (1 + max(row for row, *_ in legend))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="{_INK}" role="img" aria-label="{escape(title)}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _arrow_heads(),
        _text(_LEFT - _PITCH / 2, 22, title, anchor="start", extra='font-weight="600" font-size="15"'),
        *_axes(grid, layers),
        *_arrows(grid, shown),
        *_cells(grid, shown),
        *_exits(grid, shown),
        *_draw_legend(legend, _TOP + grid.config.scales * _PITCH + 46),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _stage_of(grid: Grid) -> dict[Cell, int]:
    return {cell: k for k, stage in enumerate(grid.lazy_stages) for cell in stage.computes}


def _centre(cell: Cell) -> tuple[float, float]:
    return _LEFT + cell.layer * _PITCH, _TOP + (cell.scale - 1) * _PITCH


def _half_side(cell: Cell) -> float:
    return max(19 * 0.85 ** (cell.scale - 1), 14)


def _colour(stage: int, stages: int) -> str:
    """From cool to warm over the stages, light enough for dark text."""
    place = stage / max(stages - 1, 1)
    hue, lightness, saturation = (215 - 195 * place) / 360, 0.84 - 0.12 * (stage % 2), 0.62 + 0.14 * place
    channels = colorsys.hls_to_rgb(hue, lightness, saturation)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in channels)


def _axes(grid: Grid, layers: int) -> Iterator[str]:
    yield _text(_LEFT - _PITCH / 2, _TOP - 26, "layer", anchor="end", extra=f'fill="{_FAINT}"')
    for layer in range(layers):
        x, _ = _centre(Cell(layer, 1))
        yield _text(x, _TOP - 26, "seed" if layer == 0 else str(layer), extra=f'fill="{_FAINT}" font-size="12"')
    for scale in range(1, grid.config.scales + 1):
        _, y = _centre(Cell(0, scale))
        yield _text(_LEFT - _PITCH / 2, y + 4, f"scale {scale}", anchor="end", extra=f'fill="{_FAINT}"')


def _arrows(grid: Grid, shown: list[Cell]) -> Iterator[str]:
    for cell in shown:
        wiring = grid.cells[cell]
        for source, kind in ((wiring.regular, "regular"), (wiring.strided, "strided")):
            if source is not None and source != IMAGE:
                yield _arrow(source, cell, kind)


def _arrow(source: Cell, target: Cell, kind: str) -> str:
    """From the rim of one cell to the rim of another."""
    (x1, y1), (x2, y2) = _centre(source), _centre(target)
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    reach = 1 / max(abs(dx), abs(dy))  # how far a square's rim is from its centre in this direction
    start, end = _half_side(source) * reach, _half_side(target) * reach + 2
    return _line(x1 + dx * start, y1 + dy * start, x2 - dx * end, y2 - dy * end, kind)


def _cells(grid: Grid, shown: list[Cell]) -> Iterator[str]:
    stage_of, stages = _stage_of(grid), len(grid.exits)
    for cell in shown:
        wiring, (x, y), half = grid.cells[cell], _centre(cell), _half_side(cell)
        yield (
            f'<rect x="{x - half:.1f}" y="{y - half:.1f}" width="{2 * half:.1f}" height="{2 * half:.1f}" rx="4" '
            f'fill="{_colour(stage_of[cell], stages)}" stroke="{_INK}" stroke-width="1">'
            f"<title>layer {cell.layer}, scale {cell.scale}: {wiring.channels} channels, "
            f"stage {stage_of[cell] + 1}</title></rect>"
        )
        yield _text(x, y + 4, str(wiring.channels), extra='font-size="11"')
        if wiring.transition is not None:
            yield _transition_bar(x + half, y, half)


def _transition_bar(x: float, y: float, half: float) -> str:
    return f'<rect x="{x:.1f}" y="{y - half:.1f}" width="4" height="{2 * half:.1f}" fill="{_INK}"/>'


def _exits(grid: Grid, shown: list[Cell]) -> Iterator[str]:
    row = _TOP + grid.config.scales * _PITCH
    for k, cell in enumerate(grid.exits):
        if cell not in shown:
            continue
        (x, y), half = _centre(cell), _half_side(cell)
        yield f'<line x1="{x}" y1="{y + half:.1f}" x2="{x}" y2="{row - 15}" stroke="{_INK}"/>'
        yield f'<circle cx="{x}" cy="{row}" r="14" fill="{_colour(k, len(grid.exits))}" stroke="{_INK}"/>'
        yield _text(x, row + 5, str(k + 1), extra='font-weight="600"')
    yield _text(_LEFT - _PITCH / 2, row + 4, "exits", anchor="end", extra=f'fill="{_FAINT}"')


def _legend(grid: Grid, shown: list[Cell], width: float) -> list[tuple[int, float, str, str]]:
    """Row, place, sign and words of each entry, in as many rows as they take."""
    entries = [("regular", "regular convolution", 168), ("strided", "strided convolution", 168)]
    if any(grid.cells[cell].transition is not None for cell in shown):
        entries.append(("transition", "transition", 88))
    entries.append(("", "colour: stage; number: channels", 200))
    placed, row, x = [], 0, _LEFT - _PITCH / 2
    for sign, words, wide in entries:
        if x + wide > width:
            row, x = row + 1, _LEFT - _PITCH / 2
        placed.append((row, x, sign, words))
        x += wide
    return placed


def _draw_legend(legend: list[tuple[int, float, str, str]], top: float) -> Iterator[str]:
    for row, x, sign, words in legend:
        y = top + _LEGEND_ROW * row
        if sign == "transition":
            yield _transition_bar(x + 2, y - 4, 9)
        elif sign:
            yield _line(x, y - 4, x + 26, y - 4, sign)
        indent = {"": 0, "transition": 12}.get(sign, 34)
        yield _text(x + indent, y, words, anchor="start", extra='font-size="12"')


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{_line_colour(kind)}" stroke-width="1.3" marker-end="url(#{kind})"/>'
    )


def _line_colour(kind: str) -> str:
    return {"regular": _FAINT, "strided": "#c2571a"}[kind]


def _arrow_heads() -> str:
    heads = (
        f'<marker id="{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0.5 L8 4 L0 7.5 z" fill="{_line_colour(kind)}"/></marker>'
        for kind in ("regular", "strided")
    )
    return f"<defs>{''.join(heads)}</defs>"


def _text(x: float, y: float, text: str, anchor: str = "middle", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(text)}</text>'
