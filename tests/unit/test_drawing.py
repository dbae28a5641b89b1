import xml.etree.ElementTree as ET

from msdnet import MSDNetConfig, preset_config
from msdnet.drawing import draw_svg, draw_text
from msdnet.plan import Grid


def test_text_shows_the_stage_of_every_cell() -> None:
    drawing = draw_text(Grid(MSDNetConfig(exits=(2, 4), layers=6)))
    assert drawing == (
        "   layer   0  1  2  3  4\n"
        " scale 1   1  2  2  .  .\n"
        " scale 2   1  1  2  2  .\n"
        " scale 3   1  1  1  2  2\n"
        "    exit         1     2"
    )


def test_text_goes_on_below_where_a_terminal_is_narrow() -> None:
    bands = draw_text(Grid(MSDNetConfig(exits=(2, 4), layers=6)), columns=18).split("\n\n")
    assert [band.splitlines()[0] for band in bands] == ["   layer   0  1  2", "   layer   3  4"]
    assert max(len(line) for band in bands for line in band.splitlines()) <= 18


def test_svg_is_well_formed_and_has_an_arrow_for_each_convolution() -> None:
    grid = Grid(preset_config("cifar_anytime"))
    drawing = draw_svg(grid, title="<a & b>")
    lines = list(ET.fromstring(drawing).iter("{http://www.w3.org/2000/svg}line"))
    arrows = [line for line in lines if "marker-end" in line.attrib]
    units = sum(len(wiring.reads) for wiring in grid.cells.values()) - 1  # the stem reads the image, drawn nowhere
    assert len(arrows) == units + 2  # two more in the legend
    assert "&lt;a &amp; b&gt;" in drawing
