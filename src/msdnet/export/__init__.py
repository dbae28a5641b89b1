"""From a trained network to a bundle: graphs, weights, held-out confidences and a manifest, checked as a whole.

from msdnet.export import export_run

export_run("runs/first", out="bundles/first")  # or export_network, of a network that was trained in another way
"""

from msdnet.bundle import ImageSpec
from msdnet.export.export import ExportError, export_network, export_run
from msdnet.export.graphs import StoredWeights, stage_graphs, switched, whole_graph

__all__ = [
    "ExportError",
    "ImageSpec",
    "StoredWeights",
    "export_network",
    "export_run",
    "stage_graphs",
    "switched",
    "whole_graph",
]
