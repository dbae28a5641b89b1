"""Charts are well-formed, show what they are given, and take the colours they are told."""

import itertools
import re
import warnings
from xml.etree import ElementTree

import pytest

from msdnet.published import PUBLISHED, published_for
from msdnet.report.charts import NARROW, PAGE, PAPER, WIDE, Lines, Palette, Panel, Panels, Pictures, Series, Shares
from msdnet.report.png import to_png

LINES = Lines(
    "Accuracy <of> a & b",
    "millions",
    "%",
    [Series("a", [10, 20, 90], [60, 70, 75], 0, "step"), Series("b", [15.0], [65.0], 1), Series("c", [], [], 2)],
    log_x=True,
)
ROWS = [("budget 20 M", [0.5, 0.3, 0.2]), ("budget 40 M", [0.0, 0.01, 0.99])]
SHARES = Shares("Where", "budgets in multiply-adds", ROWS, "exit", ["1", "2", "3"])
PANELS = Panels("Sure?", "confidence", "right", [Panel(f"exit {k}", [0.1, 0.9], [0.2, 0.8]) for k in range(6)])
PICTURES = Pictures("Easy & hard", ["easy", "hard"], [("cat", [["a.png"] * 7, []]), ("a ship", [["b.png"], ["c.png"]])])
CHARTS = pytest.mark.parametrize(
    "chart", [LINES, SHARES, PANELS, PICTURES], ids=["lines", "shares", "panels", "pictures"]
)
Chart = Lines | Shares | Panels | Pictures


@CHARTS
@pytest.mark.parametrize("palette", [PAGE, PAPER], ids=["page", "paper"])
def test_charts_are_well_formed(chart: Chart, palette: Palette) -> None:
    svg = chart.svg(palette)
    ElementTree.fromstring(svg)
    assert ("var(--" in svg) == (palette is PAGE)
    assert "nan" not in svg


@CHARTS
def test_pngs_have_words_or_it_is_said_that_they_have_none(chart: Chart) -> None:
    pytest.importorskip("resvg_py", reason="needs resvg")
    svg = chart.svg(PAPER)
    with warnings.catch_warnings(record=True) as told:
        png, wordless = to_png(svg), to_png(re.sub(r"<text\b.*?</text>", "", svg, flags=re.DOTALL))
    assert "<text" in svg
    assert (png == wordless) == bool(told)


def test_epochs_are_counted_in_whole_numbers() -> None:
    svg = Lines("Training", "epoch", "%", [Series("a", [1, 2], [60, 70], 0)]).svg(PAPER)
    across = re.findall(r'text-anchor="middle"[^>]*>([\d.]+)</text>', svg)
    assert across == ["1", "2"]


def test_points_lie_where_their_values_are() -> None:
    svg = LINES.svg(PAPER)
    places = [tuple(map(float, found)) for found in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)]
    assert len(places) == 4
    first, second, third = places[:3]
    assert first[0] < second[0] < third[0]
    assert first[1] > second[1] > third[1], "up is more"
    # 10 to 20 takes log 2 of the way's log 9
    assert (second[0] - first[0]) / (third[0] - first[0]) == pytest.approx(0.3155, abs=1e-3)
    assert "Accuracy &lt;of&gt; a &amp; b" in svg


def test_large_numbers_have_no_exponents() -> None:
    svg = Lines("t", "x", "y", [Series("a", [8_400, 20_960], [60, 70])], log_x=True).svg(PAPER)
    assert "a: 70 at 20,960</title>" in svg
    assert ">20,000</text>" in svg


def test_one_value_and_equal_values_are_drawn() -> None:
    for series in (Series("one", [5.0], [3.0]), Series("flat", [1.0, 2.0], [3.0, 3.0]), Series("zero", [1, 2], [0, 0])):
        svg = Lines("t", "x", "y", [series]).svg(PAPER)
        places = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
        assert len(places) == len(series.x)
        assert all(0 < float(x) <= 640 and 0 < float(y) < 400 for x, y in places), "on the page"


def test_a_level_is_a_line_from_side_to_side_that_is_always_in_sight() -> None:
    below = Series("below", [1, 2], [-3.0, -1.0])
    svg = Lines("t", "x", "y", [below], level=0.0).svg(PAPER)
    (height,) = re.findall(rf'd="M56 ([\d.]+)H624" style="stroke:{PAPER.ink}"', svg)
    highest = min(float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)" r="3"', svg))
    assert 40 < float(height) < highest
    assert PAPER.ink + '"/>' not in Lines("t", "x", "y", [below]).svg(PAPER)


def test_lines_of_one_name_are_named_once_and_told_apart() -> None:
    each = [Series("each", [1, 2, 2 + k], [1, 2, 3], dashed=True, marks=False) for k in (1, 2, 3)]
    svg = Lines("t", "x", "y", [*each, Series("other", [1, 5], [1, 3], 1, marks=False)]).svg(PAPER)
    assert svg.count(">each</text>") == 1
    drawn = re.findall(r'style="fill:none;stroke:(\S+?);stroke-width:2(?:;stroke-dasharray:5 4)?([^"]*)"', svg)
    assert len({strength for colour, strength in drawn if colour == PAPER.series[0]}) == 3
    assert [strength for colour, strength in drawn if colour == PAPER.series[1]] == [""]
    assert len(re.findall('r="2.5"', svg)) == 6, "where each begins and ends"


def test_what_is_drawn_as_dots_is_a_dot_in_the_legend() -> None:
    for kind, marks in (("dots", 1), ("line", 0)):
        svg = Lines("t", "x", "y", [Series("a", [1, 2], [1, 2], kind=kind)]).svg(PAPER)  # type: ignore[arg-type]
        assert len(re.findall(r'r="3.5"', svg)) == marks


def test_shares_fill_the_row() -> None:
    found = re.findall(r'width="([\d.]+)" height="20"', SHARES.svg(PAPER))
    left = float(re.findall(r'<rect x="([\d.]+)"', SHARES.svg(PAPER))[0])
    assert sum(map(float, found[:3])) == pytest.approx(640 - left - 16 - 3, abs=0.5)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_shares_stand_alone(width: int) -> None:
    """Without the words around them, as a file of its own."""
    svg = SHARES.svg(PAPER, width)
    words = re.findall(r"<text [^>]*>(.+?)</text>", svg)
    assert words[2:] == [*("budget 20 M", "50%", "30%", "20%"), *("budget 40 M", "99%"), *("exit", "1", "2", "3")]
    assert "<title>exit 3: 20.0%</title>" in svg
    assert words[0:2] == ["Where", "budgets in multiply-adds"]


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_logarithmic_axis_says_so_within_the_frame(width: int) -> None:
    name = "million multiply-adds per image (whole layers)"
    for log_x, told in ((False, name), (True, f"{name}, logarithmic")):
        svg = Lines("t", name, "%", LINES.series, log_x=log_x).svg(PAPER, width)
        middle = (56 + width - 16) / 2
        found = re.findall(rf'x="{middle:.1f}" y="([\d.]+)" text-anchor="middle" style="fill:{PAPER.ink}" >(.+?)<', svg)
        lines = [(float(y), line) for y, line in found]
        (height,) = re.findall(rf'viewBox="0 0 {width} (\d+)"', svg)
        assert " ".join(line for _, line in lines) == told
        assert all(y <= float(height) - 6 and 6 * len(line) < width - 56 for y, line in lines)


@CHARTS
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_charts_are_as_wide_as_they_should_be(chart: Chart, width: int) -> None:
    svg = chart.svg(PAPER, width)
    assert f'viewBox="0 0 {width} ' in svg
    assert 'font-size="12"' in svg, "letters are as large on a phone"
    places = re.findall(r'<(?:text|rect|circle|image) c?x="([\d.]+)"(?: c?y="[\d.]+")?(?: width="([\d.]+)")?', svg)
    assert all(0 <= float(x) <= float(x) + float(across or 0) <= width for x, across in places)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_pictures_of_a_column_stand_beside_each_other_and_not_in_the_next(width: int) -> None:
    svg = PICTURES.svg(PAPER, width)
    found = re.findall(r'<image x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" .*?href="(\w)\.png"', svg)
    first = [(float(x), float(side)) for x, _, side, name in found if name == "a"]
    assert all(x + side < after for (x, side), (after, _) in itertools.pairwise(first))
    (hard,) = (float(x) for x, _, _, name in found if name == "c")
    assert first[-1][0] + first[-1][1] < hard
    assert len({y for _, y, _, _ in found}) == 2, "a row for each class"
    assert svg.count(">none</text>") == 1


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_columns_name_keeps_to_its_column(width: int) -> None:
    names = ["a name that is long enough to run into the next", "and another that would run off the side of the page"]
    svg = Pictures("t", names, [("cat", [["a.png"], ["b.png"]])]).svg(PAPER, width)
    ElementTree.fromstring(svg)
    left, right = (float(x) for x in re.findall(r'<image x="([\d.]+)"', svg))
    lines = re.findall(rf'<text x="([\d.]+)" y="([\d.]+)" text-anchor="start" style="fill:{PAPER.faint}" >(.+?)<', svg)
    for name, start, end in zip(names, (left, right), (right, float(width)), strict=True):
        mine = [line for x, _, line in lines if float(x) == start]
        assert " ".join(mine) == name
        assert all(start + 6 * len(line) < end for line in mine)
    below = min(float(y) for y in re.findall(r'<image x="[\d.]+" y="([\d.]+)"', svg))
    assert all(float(y) < below for _, y, _ in lines)


def test_names_of_the_series_take_as_many_rows_as_a_phone_needs() -> None:
    names = ["thresholds for accuracy", "thresholds of the paper", "MSDNet, published"]
    chart = Lines("t", "x", "y", [Series(name, [1, 2], [1, 2], k) for k, name in enumerate(names)])
    for width, rows in ((WIDE, 1), (NARROW, 3)):
        svg = chart.svg(PAPER, width)
        assert len({re.findall(rf'y="([\d.]+)"[^>]*>{name}</text>', svg)[0] for name in names}) == rows


def test_a_long_title_fits() -> None:
    def size(title: str) -> float:
        svg = Lines(title, "x", "y", LINES.series).svg(PAPER, NARROW)
        return float(re.findall(r'font-weight="600" font-size="([\d.]+)"', svg)[0])

    assert size("short") == 14
    assert size(60 * "w") < 12


def test_published_curves_are_whole() -> None:
    for curve in PUBLISHED:
        assert len(curve.millions) == len(curve.percent)
        assert list(curve.millions) == sorted(curve.millions)
        assert curve.source
    assert {curve.name for curve in published_for("cifar100", "budgeted")} == {"MSDNet", "L2W-DEN", "BoostNet"}
    assert published_for("folder", "anytime") == []
