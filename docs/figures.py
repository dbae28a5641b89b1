"""Draw the figures of the documentation: `make figures`."""

from pathlib import Path

from msdnet import NetworkConfig, preset_config
from msdnet.drawing import draw_svg
from msdnet.plan import Grid

FOLDER = Path(__file__).parent / "figures"


def drawings() -> dict[str, str]:
    """Every drawing by the name of its file."""
    anytime = Grid(preset_config("cifar_anytime"))
    reduced = Grid(NetworkConfig(exits=(3, 6, 9)))
    return {
        "layout.svg": draw_svg(anytime, "The first four layers of an MSDNet with three scales", last_layer=4),
        "reduction.svg": draw_svg(reduced, "Network reduction: three blocks, each with one scale fewer"),
        "plan.svg": draw_svg(anytime, "The CIFAR anytime network: which stage computes which cell"),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, drawing in drawings().items():
        (FOLDER / name).write_text(drawing)
