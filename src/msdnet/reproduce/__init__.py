"""The paper's experiments: `msdnet reproduce`.

An experiment compares systems, each a network that is trained or an ensemble of these. A `Workshop` trains and measures
what is missing, into one result file for each; figures are drawn from the files that are there.
"""

from msdnet.reproduce.catalogue import EXPERIMENTS, find_experiment
from msdnet.reproduce.claims import CLAIMS, Claim, Finding, judge
from msdnet.reproduce.drawing import draw, figure_table, measured_of
from msdnet.reproduce.experiment import Experiment
from msdnet.reproduce.measurement import Measurement, check_comparable, read_measurement
from msdnet.reproduce.plan import Planned, make_plan
from msdnet.reproduce.workshop import Failure, Workshop

__all__ = [
    "CLAIMS",
    "EXPERIMENTS",
    "Claim",
    "Experiment",
    "Failure",
    "Finding",
    "Measurement",
    "Planned",
    "Workshop",
    "check_comparable",
    "draw",
    "figure_table",
    "find_experiment",
    "judge",
    "make_plan",
    "measured_of",
    "read_measurement",
]
