"""How good are trained bundles on test images, at every exit and at the budgets that others have published?

    python -m benchmarks.accuracy BUNDLE... --data FOLDER [--dataset NAME] [--budgets 10M,15M] [--record FILE]

Budgets count whole layers, as published figures do; what is really computed stands beside it. Of several bundles the
best one for each budget is chosen on held-out images alone.
"""

from dataclasses import asdict
from pathlib import Path

import torch

import msdnet
from benchmarks.machine import make_parser, record
from msdnet.amounts import parse_budgets
from msdnet.evaluation import best_of, evaluate
from msdnet.files import open_labelled
from msdnet.policy import METHODS

PUBLISHED = "10M,15M,20M,25M,30M,40M,50M,60M,70M,80M"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("bundles", nargs="+")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--dataset")
    parser.add_argument("--budgets", default=PUBLISHED)
    options = parser.parse_args()
    models = [msdnet.load(bundle) for bundle in options.bundles]
    data = open_labelled(options.data, options.dataset, classes=models[0].classes)
    budgets = parse_budgets(options.budgets, first=0, full=max(model.costs[-1] for model in models))
    found, points = [], []
    for model in models:
        measured = evaluate(model, data)
        reached = measured.points(budgets, whole=True)
        points += reached
        found.append(measured.to_dict(reached) | {"seconds": measured.seconds, "provenance": model.manifest.provenance})
        print(f"{model.manifest.name}: {' '.join(f'{100 * a:.2f}' for a in measured.accuracy)}")
    best = {method: best_of([p for p in points if p.method == method]) for method in METHODS}
    for method, chosen in best.items():
        print(f"best on held-out images, thresholds by {method}:")
        for point in chosen:
            print(
                f"  {point.budget / 1e6:5.1f} M  {100 * point.accuracy:.2f}%  spent {point.cost / 1e6:.2f} +- "
                f"{point.cost_error / 1e6:.2f} M, computed {point.lazy_cost / 1e6:.2f} M  {point.model}"
            )
    record(
        options.record,
        torch.device("cpu"),
        benchmark="accuracy",
        data=data.name,
        images=len(data.labels),
        models=found,
        best={method: [asdict(point) for point in chosen] for method, chosen in best.items()},
    )


if __name__ == "__main__":
    main()
