"""Charts are well-formed, show what they are given, and take the colours they are told."""

import re
from xml.etree import ElementTree

import pytest

from msdnet.published import PUBLISHED, published_for
from msdnet.report.charts import PAGE, PAPER, Lines, Palette, Panel, Panels, Series, Shares

LINES = Lines(
    "Accuracy <of> a & b",
    "millions",
    "%",
    [Series("a", [10, 20, 90], [60, 70, 75], 0, "step"), Series("b", [15.0], [65.0], 1), Series("c", [], [], 2)],
    log_x=True,
)
SHARES = Shares("Where", [("20 M", [0.5, 0.3, 0.2]), ("40 M", [0.0, 0.0, 1.0])], ["1", "2", "3"])
PANELS = Panels("Sure?", "confidence", "right", [Panel(f"exit {k}", [0.1, 0.9], [0.2, 0.8]) for k in range(6)])


@pytest.mark.parametrize("chart", [LINES, SHARES, PANELS], ids=["lines", "shares", "panels"])
@pytest.mark.parametrize("palette", [PAGE, PAPER], ids=["page", "paper"])
def test_charts_are_well_formed(chart: Lines | Shares | Panels, palette: Palette) -> None:
    svg = chart.svg(palette)
    ElementTree.fromstring(svg)
    assert ("var(--" in svg) == (palette is PAGE)
    assert "nan" not in svg


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


def test_one_value_and_equal_values_are_drawn() -> None:
    for series in (Series("one", [5.0], [3.0]), Series("flat", [1.0, 2.0], [3.0, 3.0]), Series("zero", [1, 2], [0, 0])):
        svg = Lines("t", "x", "y", [series]).svg(PAPER)
        places = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
        assert len(places) == len(series.x)
        assert all(0 < float(x) <= 640 and 0 < float(y) < 400 for x, y in places), "on the page"


def test_shares_fill_the_row() -> None:
    found = re.findall(r'width="([\d.]+)" height="20"', SHARES.svg(PAPER))
    assert sum(map(float, found[:3])) == pytest.approx(640 - 92 - 16 - 3, abs=0.5)


def test_published_curves_are_whole() -> None:
    for curve in PUBLISHED:
        assert len(curve.millions) == len(curve.percent)
        assert list(curve.millions) == sorted(curve.millions)
        assert curve.source
    assert {curve.name for curve in published_for("cifar100", "budgeted")} == {"MSDNet", "L2W-DEN", "BoostNet"}
    assert published_for("folder", "anytime") == []
