"""The paper's experiments: `msdnet reproduce`.

An experiment compares systems, each a network that is trained or an ensemble of these. What there is of them stands on
a `Shelf`: a result file and a run for each. A `Workshop` trains and measures what is missing; figures are drawn from
the files. The gallery trains nothing: it shows images that were easy or hard for a model that is there.
"""

from typing import TYPE_CHECKING

from msdnet.extras import imported_later
from msdnet.reproduce.catalogue import EXPERIMENTS, find_experiment
from msdnet.reproduce.experiment import Experiment
from msdnet.reproduce.gallery import (
    GALLERY,
    GALLERY_MODEL,
    GALLERY_TITLE,
    Gallery,
    gallery_name,
    make_gallery,
    read_gallery,
)
from msdnet.reproduce.measurement import Measurement, read_measurement

if TYPE_CHECKING:
    from msdnet.reproduce.claims import CLAIMS, Claim, Finding, judge, judge_all, why_not_judged
    from msdnet.reproduce.drawing import charts, draw, figure_table, measured_of
    from msdnet.reproduce.plan import Planned, ensembles_to_measure, make_plan
    from msdnet.reproduce.shelf import Shelf
    from msdnet.reproduce.workshop import Failure, Workshop

__all__ = [
    "CLAIMS",
    "EXPERIMENTS",
    "GALLERY",
    "GALLERY_MODEL",
    "GALLERY_TITLE",
    "Claim",
    "Experiment",
    "Failure",
    "Finding",
    "Gallery",
    "Measurement",
    "Planned",
    "Shelf",
    "Workshop",
    "charts",
    "draw",
    "ensembles_to_measure",
    "figure_table",
    "find_experiment",
    "gallery_name",
    "judge",
    "judge_all",
    "make_gallery",
    "make_plan",
    "measured_of",
    "read_gallery",
    "read_measurement",
    "why_not_judged",
]

# What needs torch: the list of experiments does not.
__getattr__ = imported_later(
    __name__,
    {
        "claims": ("CLAIMS", "Claim", "Finding", "judge", "judge_all", "why_not_judged"),
        "drawing": ("charts", "draw", "figure_table", "measured_of"),
        "plan": ("Planned", "ensembles_to_measure", "make_plan"),
        "shelf": ("Shelf",),
        "workshop": ("Failure", "Workshop"),
    },
)


def __dir__() -> list[str]:
    return __all__
