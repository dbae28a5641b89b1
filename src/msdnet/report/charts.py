"""Charts as SVG, drawn by hand so that a small install can draw them: lines, shares, reliability, and pictures.

A chart is drawn in the colours of a palette: fixed ones for papers, or a page's own, which change with light and dark.
Letters are of one size whatever the width, so that a chart for a phone is another drawing, not a smaller one.
Knows numbers and names; nothing of models.
"""

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from msdnet.amounts import four_digits

__all__ = ["NARROW", "PAGE", "PAPER", "WIDE", "Lines", "Palette", "Panel", "Panels", "Pictures", "Series", "Shares"]


@dataclass(frozen=True)
class Palette:
    """Colours of a chart."""

    ink: str
    faint: str
    grid: str
    background: str
    series: tuple[str, ...]

    def ramp(self, part: float) -> str:
        """From the first colour, faint, to the same at full strength."""
        strength = 0.15 + 0.85 * part
        if self.background.startswith("var"):  # the browser knows the colours
            return f"color-mix(in srgb, {self.series[0]} {100 * strength:.0f}%, {self.background})"
        pairs = zip(_rgb(self.series[0]), _rgb(self.background), strict=True)
        return "#" + "".join(f"{round(strength * one + (1 - strength) * other):02x}" for one, other in pairs)


_SERIES = ("#1f6feb", "#d1452b", "#2a9d5c", "#8957c9", "#b7791f", "#0f8b8d", "#6e7781")
PAPER = Palette("#1f2328", "#656d76", "#d8dee4", "#ffffff", _SERIES)
PAGE = Palette("var(--ink)", "var(--faint)", "var(--grid)", "var(--card)", tuple(f"var(--s{k})" for k in range(7)))

WIDE, NARROW = 640, 350  # of a page, and of a phone
_HEIGHT = 400
_LEFT, _RIGHT, _BOTTOM = 56, 16, 46
_LINE = 16  # of words
_INSET = 8  # between a frame's sides and the first and last marks
SYSTEM_FONT = "system-ui, sans-serif"
_FONT = f'font-family="{SYSTEM_FONT}" font-size="12"'


@dataclass(frozen=True)
class Series:
    """One line of a chart."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0
    kind: Literal["line", "step", "dots"] = "line"
    dashed: bool = False
    marks: bool = True


@dataclass(frozen=True)
class Lines:
    """Values against values. Lines of one name are named once, and told apart by their strength and their ends."""

    title: str
    x_name: str
    y_name: str
    series: Sequence[Series]
    log_x: bool = False
    """Which the axis then says of itself."""
    level: float | None = None
    """A height that all are to be compared with."""

    def svg(self, palette: Palette, width: int = WIDE) -> str:
        shown = [series for series in self.series if len(series.x)]
        legend = _Legend(list({series.name: series for series in shown}.items()), palette, width - _LEFT - _RIGHT)
        xs = [x for series in shown for x in series.x]
        ys = [y for series in shown for y in series.y] + ([] if self.level is None else [self.level])
        across = _lines_of(f"{self.x_name}, logarithmic" if self.log_x else self.x_name, width - _LEFT - _RIGHT)
        top = 40 + legend.height
        frame = _Frame(
            _Axis(min(xs), max(xs), _LEFT + _INSET, width - _RIGHT - _INSET, log=self.log_x, whole=_whole(xs)),
            _Axis(*_with_room(min(ys), max(ys)), _HEIGHT - _BOTTOM, top),
            palette,
        )
        parts = [*frame.draw(across, self.y_name), *legend.draw(_LEFT, 40)]
        if self.level is not None:
            parts.append(frame.across_at(self.level))
        alike, drawn = Counter(series.name for series in shown), Counter[str]()
        for series in shown:
            drawn[series.name] += 1
            parts += _line(series, frame, palette, drawn[series.name] / alike[series.name])
            parts += _ends(series, frame, palette) if alike[series.name] > 1 else []
        return _document(self.title, parts, palette, width, _HEIGHT + _LINE * (len(across) - 1))


@dataclass(frozen=True)
class Shares:
    """Rows of shares that sum to one, as bars."""

    title: str
    about: str
    """What the rows are."""
    rows: Sequence[tuple[str, Sequence[float]]]
    kind: str
    """What there is a share of each of."""
    names: Sequence[str]
    """Of these."""

    def svg(self, palette: Palette, width: int = WIDE) -> str:
        left, row_height, top = 16 + max(_wide(name) for name in (self.kind, *(row for row, _ in self.rows))), 26, 84
        parts = [_text(8, 38, self.about, palette.faint, "start")]
        across = width - left - _RIGHT
        for number, (name, shares) in enumerate(self.rows):
            y, x = top + number * row_height, float(left)
            parts.append(_text(left - 8, y + 15, name, palette.ink, "end"))
            for place, share in enumerate(shares):
                part, words = (place + 1) / len(shares), f"{share:.0%}"
                parts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{max(share * across - 1, 0):.1f}" height="{row_height - 6}" '
                    f'style="fill:{palette.ramp(part)}"><title>{escape(f"{self.kind} {self.names[place]}")}: '
                    f"{share:.1%}</title></rect>"
                )
                if share * across > 4 + _wide(words):
                    colour = palette.background if part > 0.5 else palette.ink
                    parts.append(_text(x + share * across / 2, y + 15, words, colour, "middle"))
                x += share * across
        parts += self._key(palette, left, across)
        return _document(self.title, parts, palette, width, top + len(self.rows) * row_height + 8)

    def _key(self, palette: Palette, left: float, across: float) -> Iterator[str]:
        step = across / len(self.names)
        yield _text(left - 8, 74, self.kind, palette.faint, "end")
        for place, name in enumerate(self.names):
            colour = palette.ramp((place + 1) / len(self.names))
            x = left + place * step
            yield f'<rect x="{x:.1f}" y="56" width="{step - 1:.1f}" height="5" style="fill:{colour}"/>'
            yield _text(left + (place + 0.5) * step, 74, name, palette.faint, "middle")


@dataclass(frozen=True)
class Panel:
    """A small chart among others: what was right against how sure it was, both from 0 to 1."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Panels:
    """Small charts side by side, each with the diagonal on which they would lie."""

    title: str
    x_name: str
    y_name: str
    panels: Sequence[Panel]

    def svg(self, palette: Palette, width: int = WIDE) -> str:
        side, gap, left, top = 112, 40, 24, 66
        across = (width - left) // (side + gap)
        parts = [_text(8, 38, f"{self.y_name}, against {self.x_name}", palette.faint, "start")]
        for number, panel in enumerate(self.panels):
            x0 = left + (number % across) * (side + gap)
            y0 = top + (number // across) * (side + gap)
            parts += _panel(panel, x0, y0, side, palette)
        rows = math.ceil(len(self.panels) / across)
        return _document(self.title, parts, palette, width, top + rows * (side + gap) - 10)


def _panel(panel: Panel, x0: float, y0: float, side: float, palette: Palette) -> Iterator[str]:
    def at(x: float, y: float) -> str:
        return f"{x0 + x * side:.1f},{y0 + (1 - y) * side:.1f}"

    yield f'<rect x="{x0}" y="{y0}" width="{side}" height="{side}" style="fill:none;stroke:{palette.grid}"/>'
    yield f'<polyline points="{at(0, 0)} {at(1, 1)}" style="fill:none;stroke:{palette.faint};stroke-dasharray:3 3"/>'
    points = " ".join(at(x, y) for x, y in zip(panel.x, panel.y, strict=True))
    yield f'<polyline points="{points}" style="fill:none;stroke:{palette.series[0]};stroke-width:2"/>'
    for x, y in zip(panel.x, panel.y, strict=True):
        cx, cy = at(x, y).split(",")
        yield f'<circle cx="{cx}" cy="{cy}" r="2.2" style="fill:{palette.series[0]}"/>'
    yield _text(x0, y0 - 6, panel.name, palette.ink, "start")
    yield _text(x0, y0 + side + 13, "0", palette.faint, "middle")
    yield _text(x0 + side, y0 + side + 13, "1", palette.faint, "middle")


@dataclass(frozen=True)
class Pictures:
    """Rows of pictures under the names of a few columns, each with several."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Sequence[str]]]]
    """The name of each, and for every column the pictures' addresses, which may hold the pictures themselves."""

    def svg(self, palette: Palette, width: int = WIDE) -> str:
        left, gap = 24 + max(_wide(name) for name, _ in self.rows), 16
        across = (width - left - _RIGHT - gap * (len(self.columns) - 1)) / len(self.columns)
        most = max(1, *(len(pictures) for _, columns in self.rows for pictures in columns))
        side = min(40.0, across / most)
        names = [_lines_of(name, across) for name in self.columns]
        top = 36 + _LINE * max(map(len, names))
        parts = []
        for column, lines in enumerate(names):
            x = left + column * (across + gap)
            parts += [_text(x, 42 + _LINE * k, line, palette.faint, "start") for k, line in enumerate(lines)]
            for row, (_, columns) in enumerate(self.rows):
                y = top + row * (side + 6)
                parts += [_picture(x + k * side, y, side - 2, uri) for k, uri in enumerate(columns[column])]
                parts += [] if columns[column] else [_text(x, y + side / 2 + 4, "none", palette.faint, "start")]
        for row, (name, _) in enumerate(self.rows):
            parts.append(_text(left - 8, top + row * (side + 6) + side / 2 + 4, name, palette.ink, "end"))
        return _document(self.title, parts, palette, width, top + len(self.rows) * (side + 6) + 6)


def _picture(x: float, y: float, side: float, uri: str) -> str:
    return (
        f'<image x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" href="{escape(uri, quote=True)}" '
        'preserveAspectRatio="xMidYMid slice" style="image-rendering:pixelated"/>'
    )


# --- axes


def _whole(values: Iterable[float]) -> bool:
    return all(float(value).is_integer() for value in values)


class _Axis:
    """From values to places on the page, and the values to be named."""

    def __init__(
        self, low: float, high: float, start: float, end: float, *, log: bool = False, whole: bool = False
    ) -> None:
        self._log, self._whole, self.start, self.end = log, whole, start, end
        self._low, self._high = (low, high) if high > low else (low * 0.9, high * 1.1 or 1.0)
        self.ticks = [tick for tick in self._candidates() if self._low <= tick <= self._high * (1 + 1e-9)]

    def place(self, value: float) -> float:
        low, high, value = (math.log(v) if self._log else v for v in (self._low, self._high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def _candidates(self) -> Iterable[float]:
        if self._log:
            powers = range(math.floor(math.log10(self._low)), math.ceil(math.log10(self._high)) + 1)
            ratio = self._high / self._low
            steps = (1, 2, 5) if ratio > 6 else (1, 1.5, 2, 3, 4, 5, 6, 8)
            return [step * 10.0**power for power in powers for step in steps]
        rough = (self._high - self._low) / 7
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
        step = max(step, 1.0) if self._whole else step  # of epochs, say, there are no halves
        first = math.ceil(self._low / step - 1e-9)
        return [step * k for k in range(first, math.floor(self._high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class _Frame:
    across: _Axis
    up: _Axis
    palette: Palette

    def draw(self, x_lines: Sequence[str], y_name: str) -> Iterator[str]:
        bottom, top = self.up.start, self.up.end
        left, right = self.across.start - _INSET, self.across.end + _INSET
        for tick in self.up.ticks:
            y = self.up.place(tick)
            yield f'<path d="M{left} {y:.1f}H{right}" style="stroke:{self.palette.grid}"/>'
            yield _text(left - 6, y + 4, f"{tick:,g}", self.palette.faint, "end")
        for tick in self.across.ticks:
            x = self.across.place(tick)
            yield f'<path d="M{x:.1f} {bottom}v4" style="stroke:{self.palette.faint}"/>'
            yield _text(x, bottom + 17, f"{tick:,g}", self.palette.faint, "middle")
        yield f'<path d="M{left} {bottom}H{right}" style="stroke:{self.palette.faint}"/>'
        for number, line in enumerate(x_lines):
            yield _text((left + right) / 2, bottom + 36 + _LINE * number, line, self.palette.ink, "middle")
        middle = (bottom + top) / 2
        turned = f'transform="rotate(-90 14 {middle:.1f})"'
        yield _text(14, middle, y_name, self.palette.ink, "middle", turned)

    def across_at(self, height: float) -> str:
        """A line from side to side."""
        y, left, right = self.up.place(height), self.across.start - _INSET, self.across.end + _INSET
        return f'<path d="M{left} {y:.1f}H{right}" style="stroke:{self.palette.ink}"/>'

    def at(self, x: float, y: float) -> tuple[float, float]:
        return self.across.place(x), self.up.place(y)


def _line(series: Series, frame: _Frame, palette: Palette, part: float) -> Iterator[str]:
    points = [frame.at(x, y) for x, y in zip(series.x, series.y, strict=True)]
    colour = palette.series[series.colour % len(palette.series)]
    style = ";stroke-dasharray:5 4" if series.dashed else ""
    style += f";stroke-opacity:{0.3 + 0.7 * part:.2f}" if part < 1 else ""
    if series.kind != "dots" and len(points) > 1:
        yield f'<path d="{_path(points, series.kind)}" style="fill:none;stroke:{colour};stroke-width:2{style}"/>'
    if series.marks or series.kind == "dots" or len(points) == 1:
        for (x, y), value, height in zip(points, series.x, series.y, strict=True):
            yield (
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" style="fill:{colour}">'
                f"<title>{escape(series.name)}: {four_digits(height)} at {four_digits(value)}</title></circle>"
            )


def _ends(series: Series, frame: _Frame, palette: Palette) -> Iterator[str]:
    colour = palette.series[series.colour % len(palette.series)]
    for end in (0, -1):
        x, y = frame.at(series.x[end], series.y[end])
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" style="fill:{palette.background};stroke:{colour}"/>'


def _path(points: Sequence[tuple[float, float]], kind: str) -> str:
    moves = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for x, y in points[1:]:
        moves.append(f"H{x:.1f}V{y:.1f}" if kind == "step" else f"L{x:.1f} {y:.1f}")
    return "".join(moves)


class _Legend:
    """Names of the series above the chart, in as many rows as they take."""

    _row = 18

    def __init__(self, entries: Sequence[tuple[str, Series]], palette: Palette, across: float) -> None:
        self._palette = palette
        self._placed: list[tuple[float, int, str, Series]] = []
        x, row = 0.0, 0
        for name, series in entries:
            width = 36 + _wide(name)
            if x and x + width > across:
                x, row = 0.0, row + 1
            self._placed.append((x, row, name, series))
            x += width
        self.height = self._row * (row + 1)

    def draw(self, left: float, top: float) -> Iterator[str]:
        for x, row, name, series in self._placed:
            colour = self._palette.series[series.colour % len(self._palette.series)]
            y = top + row * self._row
            dashes = ";stroke-dasharray:4 3" if series.dashed else ""
            if series.kind == "dots":
                yield f'<circle cx="{left + x + 9:.1f}" cy="{y - 4}" r="3.5" style="fill:{colour}"/>'
            else:
                yield f'<path d="M{left + x:.1f} {y - 4}h18" style="stroke:{colour};stroke-width:2.5{dashes}"/>'
            yield _text(left + x + 23, y, name, self._palette.ink, "start")


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


def _with_room(low: float, high: float) -> tuple[float, float]:
    room = (high - low or abs(high) or 1.0) * 0.06
    return low - room, high + room


def _text(x: float, y: float, words: str, colour: str, anchor: str, extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="fill:{colour}" {extra}>{escape(words)}</text>'


def _wide(words: str) -> float:
    """How wide a text is, at most: there is nobody to ask. Letters are about as wide as those of a wide font."""
    return sum(_wide_letter(letter) for letter in words)


def _wide_letter(letter: str) -> float:
    if letter in " ijlft.,:;'|!()[]-":
        return 4.2
    if letter in "mwMW%@":
        return 11.0
    return 8.6 if letter.isupper() else 7.3


def _lines_of(words: str, across: float) -> list[str]:
    """A text in as many lines as it needs."""
    return textwrap.wrap(words, max(1, int(across * len(words) / max(1.0, _wide(words)))))


def _document(title: str, parts: Sequence[str], palette: Palette, width: int, height: float = _HEIGHT) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" {_FONT} role="img" '
        f'aria-label="{escape(title, quote=True)}">'
    )
    back = f'<rect width="{width}" height="{height:g}" style="fill:{palette.background}"/>'
    size = min(14.0, 14 * (width - 16) / (1.3 * _wide(title)))  # bold, and larger than other letters, if it fits
    name = _text(8, 18, title, palette.ink, "start", f'font-weight="600" font-size="{size:.3g}"')
    return "\n".join([head, back, name, *parts, "</svg>"]) + "\n"
