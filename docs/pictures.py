"""Draw the pictures that explain the two settings: `make figures`.

What is measured comes from results/; what is made up to explain something says so in the picture. Plain SVG on a white
ground, narrow enough for a phone, and readable beside light and dark text.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from accuracy import read_result
from numpy.typing import NDArray

from msdnet.anytime import AnytimeCurve
from msdnet.policy import Policy

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 560
INK, FAINT, LINE, PALE = "#2b3137", "#57606a", "#8b949e", "#e6eaee"
ACCENT = "#c2571a"
EXITS = ("#a9c8f0", "#9fdbe0", "#a8dfb4", "#d3e29a", "#f3df8c", "#f6c98b", "#f3ab86")


def drawings() -> dict[str, str]:
    """Every picture by the path of its file."""
    pictures = {
        "exits": exits(),
        "anytime": anytime(_model("cifar100", "cifar100-anytime")),
        "sieve": sieve(_model("cifar10", "cifar10-small"), budget=20e6),
        "thresholds": thresholds(),
        "ordinary": ordinary(),
        "dense": dense(),
        "saved": saved(),
    }
    return {f"docs/figures/{name}.svg": picture for name, picture in pictures.items()}


def _model(result: str, name: str) -> dict[str, Any]:
    """What was measured of a model of the package, on test images."""
    (found,) = (model for model in read_result(result)["models"] if model["model"] == name)
    return dict(found)


# What an exit is


def exits() -> str:
    answers = (("dog", 41), ("cat", 58), ("cat", 86), ("cat", 97))
    parts = [_cat(14, 66)]
    for k, (name, sure) in enumerate(answers):
        x = 104 + 116 * k
        parts += [
            _arrow(x - 26, 96, x - 4, 96),
            _box(x, 66, 84, 60, EXITS[2 * k], f"stage {k + 1}"),
            _arrow(x + 42, 126, x + 42, 154),
            _circle(x + 42, 172, 16, EXITS[2 * k], str(k + 1)),
            _text(x + 42, 214, name, size=17, weight=600),
            _text(x + 42, 234, f"{sure}% sure", colour=FAINT),
        ]
    parts.append(_text(14, 177, "exits", "start", colour=FAINT))
    return _svg("One network, four exits (a sketch)", 254, parts)


# Anytime prediction


def anytime(record: dict[str, Any]) -> str:
    costs = [cost / 1e6 for cost in record["costs"]]
    curve = AnytimeCurve(tuple(costs), tuple(100 * accuracy for accuracy in record["accuracy"]))
    plot = _Plot(left=62, top=62, right=540, bottom=300, x_range=(0, 140), y_range=(60, 80))
    corners = [(costs[0], 60.0)]
    for cost, accuracy, until in zip(costs, curve.accuracies, [*costs[1:], 140.0], strict=True):
        corners += [(cost, accuracy), (until, accuracy)]
    moment = 42.0
    stands = float(curve.at(moment))
    exit = sum(cost <= moment for cost in costs)
    x, y = plot.at(moment, stands)
    first, _ = plot.at(costs[0], 60)
    return _svg(
        "Accuracy when time is up",
        356,
        [
            *plot.axes(range(0, 141, 20), range(60, 81, 5)),
            _rect(plot.left, plot.top, first - plot.left, plot.bottom - plot.top, PALE),
            _text((plot.left + first) / 2, 180, "no answer yet", colour=FAINT, turn=True),
            _path(plot.at(*corner) for corner in corners),
            *(_dot(*plot.at(cost, accuracy)) for cost, accuracy in zip(costs, curve.accuracies, strict=True)),
            _line(x, plot.bottom, x, y, ACCENT, dashes=True),
            _circle(x, y, 6, ACCENT, ""),
            _text(x + 12, 252, f"time is up here: exit {exit} answers,", "start", ACCENT, weight=600),
            _text(x + 12, 272, f"with {stands:.1f}% accuracy", "start", ACCENT, weight=600),
            _text(300, 344, "multiply-adds until time is up, in millions", colour=FAINT),
            _text(plot.left - 40, 48, f"test accuracy in %, {record['model']} (measured)", "start", FAINT),
        ],
    )


class _Plot:
    """A frame in which numbers have places."""

    def __init__(
        self,
        *,
        left: float,
        top: float,
        right: float,
        bottom: float,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
    ) -> None:
        self.left, self.top, self.right, self.bottom = left, top, right, bottom
        self._x_range, self._y_range = x_range, y_range

    def at(self, x: float, y: float) -> tuple[float, float]:
        (x_low, x_high), (y_low, y_high) = self._x_range, self._y_range
        return (
            self.left + (x - x_low) / (x_high - x_low) * (self.right - self.left),
            self.bottom - (y - y_low) / (y_high - y_low) * (self.bottom - self.top),
        )

    def axes(self, x_ticks: Iterable[float], y_ticks: Iterable[float]) -> Iterator[str]:
        for tick in y_ticks:
            _, y = self.at(0, tick)
            yield _line(self.left, y, self.right, y, PALE)
            yield _text(self.left - 8, y + 5, f"{tick:g}", "end", FAINT)
        for tick in x_ticks:
            x, _ = self.at(tick, 0)
            yield _text(x, self.bottom + 20, f"{tick:g}", colour=FAINT)
        yield _line(self.left, self.bottom, self.right, self.bottom, LINE)


# Budgeted batch classification


def sieve(model: dict[str, Any], budget: float) -> str:
    (point,) = (one for one in model["points"] if (one["method"], one["budget"]) == ("paper", budget))
    left: list[int] = point["left"]
    reached = [sum(left[k:]) for k in range(len(left))]
    top, full, pitch, width = 84, 170, 140, 84
    scale = full / reached[0]
    parts = [_text(18, 52, f"images that reach each stage ({model['model']}, {len(left)} exits)", "start", FAINT)]
    for k, (images, gone) in enumerate(zip(reached, left, strict=True)):
        x, height, leaving, colour = 18 + pitch * k, images * scale, gone * scale, EXITS[2 * k]
        stay = height - leaving
        parts += [
            _text(x + width / 2, top - 8, f"{images:,}", weight=600),
            _rect(x, top, width, stay, "#c9d1d9"),
            _rect(x + width, top, pitch - width, stay, PALE),
            _rect(x, top + stay, width, leaving, colour),
            _arrow(x + width / 2, top + height, x + width / 2, 268),
            _circle(x + width / 2, 286, 16, colour, str(k + 1)),
            _text(x + width / 2, 322, f"{gone:,}"),
        ]
    whole, spent = 100 * model["accuracy"][-1], point["lazy_cost"] / model["costs"][-1]
    parts += [
        _text(18, 346, "images that leave at each exit", "start", FAINT),
        _text(18, 374, f"accuracy {100 * point['accuracy']:.1f}%; if all go to the last exit {whole:.1f}%", "start"),
    ]
    title = f"{reached[0]:,} test images with {spent:.0%} of the multiply-adds"
    return _svg(title, 390, parts)


def thresholds() -> str:
    confidence, correct = _made_up(images=40, exits=3)
    policy = Policy(method="paper").fit(confidence, correct, [1.0, 2.0, 3.0], 1.75)
    leaves_at = policy.exit_indices(confidence)
    parts = [_text(18, 52, "each dot is an image; made-up confidences, thresholds fitted to them", "start", FAINT)]
    for exit in range(3):
        base, colour = 166 + 116 * exit, EXITS[3 * exit]
        here = leaves_at >= exit
        going, gone = int((leaves_at > exit).sum()), int((leaves_at == exit).sum())
        x = _sure(policy.thresholds_[exit]) if going else _sure(0)
        parts += [
            _circle(34, base - 24, 16, colour, str(exit + 1)),
            _line(80, base, 520, base, LINE),
            *_dots(confidence[here, exit], leaves_at[here] == exit, base, colour, x),
        ]
        if going:
            parts += [
                _line(x, base + 6, x, base - 74, ACCENT, dashes=True),
                _text(x + 8, base - 64, f"{gone} leave", "start", weight=600),
                _text(x - 8, base - 64, f"{going} go on", "end", FAINT),
            ]
        else:
            parts.append(_text(520, base - 64, f"no threshold: all {gone} leave", "end", weight=600))
    parts += [_text(_sure(sure), 418, f"{sure:.0%}", colour=FAINT) for sure in (0, 0.2, 0.4, 0.6, 0.8, 1)]
    parts.append(_text(300, 440, "how sure the exit is", colour=FAINT))
    return _svg("Who leaves where: a threshold at each exit (a sketch)", 454, parts)


def _made_up(images: int, exits: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Confidences that rise from exit to exit, faster for images that are easy."""
    chance = np.random.default_rng(4)
    ease = chance.normal(size=(images, 1))
    skill = np.array([0.1, 1.5, 2.9][:exits]) + chance.normal(size=(images, exits)) * 0.3
    confidence = 0.12 + 0.87 / (1 + np.exp(-1.4 * ease - skill))
    return confidence, chance.random((images, exits)) < confidence


def _sure(confidence: float) -> float:
    return 80 + 440 * float(confidence)


def _dots(
    confidences: NDArray[np.float64], leaves: NDArray[np.bool_], base: float, colour: str, threshold: float
) -> Iterator[str]:
    """Stacked where they would cover each other, and none across the threshold."""
    stacks: dict[int, int] = {}
    for confidence, leave in sorted(zip(confidences.tolist(), leaves.tolist(), strict=True)):
        place = int((_sure(confidence) - threshold) // 13)
        level = stacks[place] = stacks.get(place, 0) + 1
        x = threshold + 13 * place + 6.5
        yield _circle(x, base + 6 - 13 * level, 5.5, colour if leave else "#ffffff", "")


# Why it takes a network of its own


def ordinary() -> str:
    sides, parts, x = (60, 60, 60, 40, 40, 40, 26, 26, 26), [], 18.0
    for layer, side in enumerate(sides):
        if layer:
            parts.append(_arrow(x - 16, 100, x - 3, 100))
        parts.append(_box(x, 100 - side / 2, side, side, PALE if side == 60 else ("#d5dce3", "#b9c4ce")[side == 26]))
        if layer in (1, 8):
            centre, colour = x + side / 2, (EXITS[0], EXITS[6])[layer == 8]
            parts += [
                _line(centre, 100 + side / 2, centre, 160, INK),
                _circle(centre, 174, 14, colour, "AB"[layer == 8]),
            ]
        x += side + 18
    parts += [
        _text(18, 52, "fine maps, many pixels", "start", FAINT),
        _text(542, 52, "coarse maps, few pixels", "end", FAINT),
        _text(18, 216, "A: an exit in the middle sees edges and", "start"),
        _text(18, 236, "textures, and hardly what they belong to", "start"),
        _text(18, 264, "B: the last classifier sees whole objects,", "start"),
        _text(18, 284, "since its maps were made coarse step by step", "start"),
    ]
    return _svg("An ordinary network (a sketch)", 302, parts)


def dense() -> str:
    parts: list[str] = []
    for name, label_y, y, connected in (("a plain chain", 58, 98, False), ("dense connections", 198, 282, True)):
        parts.append(_text(18, label_y, name, "start", weight=600))
        for layer in range(6):
            x = 18 + 90 * layer
            if layer:
                parts.append(_arrow(x - 34, y, x - 3, y))
            parts += [_arc(18 + 90 * k + 28, x + 28, y - 24) for k in range(layer - 1) if connected]
            parts.append(_box(x, y - 24, 56, 48, EXITS[5] if layer == 1 else PALE, str(layer + 1)))
        parts += [_line(136, y + 24, 136, y + 38, INK), _circle(136, y + 50, 12, EXITS[5], "")]
    parts += [
        _text(158, 144, "layer 2 serves its exit; what it drops", "start", ACCENT),
        _text(158, 163, "is lost to layers 3 to 6", "start", ACCENT),
        _text(158, 328, "later layers read layer 1, too, and all", "start", ACCENT),
        _text(158, 347, "others: an early exit costs them little", "start", ACCENT),
    ]
    return _svg("An early exit, and the layers after it (a sketch)", 364, parts)


# What it is worth


def saved() -> str:
    cpu, gpu, engines = read_result("batches_cpu"), read_result("batches_h200"), read_result("engines_cpu")
    cores = "two CPU cores" if cpu["threads"] == 2 else cpu["hardware"]
    groups = (
        (
            f"{cpu['images']:,} images within a budget of a third",
            (
                ("multiply-adds", 1 / cpu["multiply_adds_saved"]),
                (f"time, {cores}", 1 / cpu["time_saved"]),
                (f"time, {gpu['hardware'].removeprefix('NVIDIA ')} GPU", 1 / gpu["time_saved"]),
            ),
        ),
        ("one image, until the first answer", ((f"time, {cores}", engines["batch_1"]["first_over_whole"]),)),
    )
    parts, y = [_text(18, 48, "speed benchmark, 7 exits, 32 x 32 pixels", "start", FAINT)], 82.0
    for title, bars in groups:
        parts.append(_text(18, y, title, "start", weight=600))
        for label, share in bars:
            y += 34
            parts += [
                _text(18, y, label, "start"),
                _rect(210, y - 17, 280, 24, PALE),
                _rect(210, y - 17, 280 * share, 24, EXITS[2]),
                _text(216 + 280 * share, y, f"{share:.0%}", "start", weight=600),
            ]
        y += 44
    parts.append(_text(210, y - 8, "of what the whole network takes", "start", FAINT))
    return _svg("Cost compared with the whole network", y + 8, parts)


# Pieces


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}" '
        f'font-family="system-ui, sans-serif" font-size="15" fill="{INK}" role="img" aria-label="{escape(title)}">'
    )
    marker = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0.5 L8 4 L0 7.5 z" fill="{LINE}"/></marker></defs>'
    )
    ground = f'<rect width="{WIDTH}" height="{height:g}" rx="6" fill="#ffffff"/>'
    return "\n".join([head, marker, ground, _text(18, 27, title, "start", size=17, weight=600), *parts, "</svg>", ""])


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str = "middle",
    colour: str = INK,
    *,
    size: int = 15,
    weight: int = 400,
    turn: bool = False,
) -> str:
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}" '
        f'font-weight="{weight}"{turned}>{escape(text)}</text>'
    )


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def _box(x: float, y: float, width: float, height: float, colour: str, text: str = "") -> str:
    box = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" fill="{colour}" '
        f'stroke="{INK}"/>'
    )
    return box + (_text(x + width / 2, y + height / 2 + 5, text) if text else "")


def _circle(x: float, y: float, radius: float, colour: str, text: str) -> str:
    circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}" stroke="{INK}"/>'
    return circle + (_text(x, y + 5, text, weight=600) if text else "")


def _dot(x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{INK}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dashes: bool = False) -> str:
    dashed = ' stroke-width="2" stroke-dasharray="5 4"' if dashes else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashed}/>'


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{LINE}" stroke-width="1.5" '
        'marker-end="url(#head)"/>'
    )


def _arc(x1: float, x2: float, y: float) -> str:
    """From the upper rim of one box to that of another, the higher the further they are apart."""
    height = 12 + (x2 - x1) / 9
    return (
        f'<path d="M{x1:.1f} {y:.1f} C{x1:.1f} {y - height:.1f} {x2:.1f} {y - height:.1f} {x2:.1f} {y - 2:.1f}" '
        f'fill="none" stroke="{LINE}" stroke-width="1.2"/>'
    )


def _path(points: Iterable[tuple[float, float]]) -> str:
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{corners}" fill="none" stroke="{INK}" stroke-width="2"/>'


def _cat(x: float, y: float) -> str:
    """The face of one, in its frame."""
    ears = f"M{x + 14} {y + 30} l1 -22 l13 10 h4 l13 -10 l1 22 z"
    return "".join(
        [
            _box(x, y, 60, 60, "#ffffff"),
            f'<path d="{ears}" fill="{EXITS[5]}"/>',
            f'<ellipse cx="{x + 30}" cy="{y + 34}" rx="18" ry="17" fill="{EXITS[5]}"/>',
            *(f'<circle cx="{x + eye}" cy="{y + 31}" r="2.6" fill="{INK}"/>' for eye in (23, 37)),
            f'<path d="M{x + 27} {y + 38} h6 l-3 4 z" fill="{INK}"/>',
            *(
                f'<path d="M{x + 30 + side * 6} {y + 41 + fall} l{side * 15} {fall * 2 - 1}" stroke="{INK}"/>'
                for side in (-1, 1)
                for fall in (0, 2)
            ),
        ]
    )


if __name__ == "__main__":
    (ROOT / "docs/figures").mkdir(exist_ok=True)
    for path, drawing in drawings().items():
        (ROOT / path).write_text(drawing)
