"""How good the models are, beside what others have published: tables and charts for figures.py.

benchmarks/accuracy.py writes the results that they are made from.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msdnet.evaluation import standard_error
from msdnet.models import find_bundle, model_names
from msdnet.networks import outline
from msdnet.published import Setting, published_for
from msdnet.report.charts import Lines, Series

ROOT = Path(__file__).resolve().parents[1]


def read_result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "results" / f"{name}.json").read_text())
    return found


def budgeted_chart() -> Lines:
    result = read_result("cifar100")
    ours = [
        replace(_curve("best of our three networks, by held-out images", result["best"]["paper"], 1), marks=False),
        _curve("cifar100-anytime", _points_of(result, "cifar100-anytime"), 0),
        _curve("its network, trained as in the paper", _baseline_points(), 2),
    ]
    return _beside_published("CIFAR-100: test accuracy within an average budget", "budgeted", ours)


def anytime_chart() -> Lines:
    millions = [cost / 1e6 for cost in _baseline()["whole_costs"]]
    ours = [
        Series("cifar100-anytime (mean of three seeds)", millions, _of_seeds().mean(axis=0), 0),
        Series("its network, trained as in the paper", millions, [100 * right for right in _baseline()["accuracy"]], 2),
    ]
    return _beside_published("CIFAR-100: test accuracy of the exits", "anytime", ours)


def _beside_published(title: str, setting: Setting, ours: list[Series]) -> Lines:
    """A method has the same colour in both settings."""
    published = (*published_for("cifar100", "budgeted"), *published_for("cifar100", "anytime"))
    colours = {name: colour for colour, name in enumerate(dict.fromkeys(curve.name for curve in published), start=3)}
    theirs = [
        Series(f"{curve.name}, published", curve.millions, curve.percent, colours[curve.name], dashed=True, marks=False)
        for curve in published_for("cifar100", setting)
    ]
    return Lines(title, "million multiply-adds per image (whole layers)", "test accuracy, %", [*ours, *theirs])


def _curve(name: str, points: Sequence[dict[str, Any]], colour: int) -> Series:
    return Series(name, [p["cost"] / 1e6 for p in points], [100 * p["accuracy"] for p in points], colour)


def gain() -> Iterator[str]:
    """What early exits are worth, in a sentence."""
    (model,) = (one for one in read_result("cifar100")["models"] if one["model"] == "cifar100-anytime")
    (point,) = (one for one in _points_of(read_result("cifar100"), "cifar100-anytime") if one["budget"] == 50e6)
    spent, right, whole = point["cost"] / model["whole_costs"][-1], point["accuracy"], model["accuracy"][-1]
    yield (
        f"\nWith {spent:.0%} of the full network's multiply-adds, the model `cifar100-anytime` of this package gets "
        f"{right:.1%} of CIFAR-100's test images right;\nthe full network gets {whole:.1%}.\n"
    )


def headline() -> Iterator[str]:
    """The budgets that a reader looks for first."""
    result, seeds = read_result("cifar100"), read_result("cifar100_seeds")
    millions = (15.0, 20.0, 30.0, 50.0, 80.0)
    yield _row(
        "CIFAR-100: test accuracy in %, at an average cost per image of", [f"{million:.0f} M" for million in millions]
    )
    yield "|---" * (len(millions) + 1) + "|"
    yield _row("**`cifar100-anytime`, in this package**", _at(millions, _points_of(result, "cifar100-anytime")))
    runs = [_at(millions, _points_of(seeds, model["model"]), digits=2) for model in seeds["models"]]
    by_budget = np.array(runs, dtype=float).T
    spread = [f"{one.mean():.1f} ± {one.std(ddof=1):.1f}" for one in by_budget]
    yield _row(f"mean of {len(runs)} such training runs ± standard deviation", spread)
    yield _row("its network, trained as in the paper (recipe `paper`)", _at(millions, _baseline_points()))
    yield from _published_rows("cifar100", "budgeted", millions)


def certainty() -> Iterator[str]:
    """What the headline's figures are, and how far they are known."""
    result, seeds, paper = (read_result(name) for name in ("cifar100", "cifar100_seeds", "cifar100_paper"))
    error = max(standard_error(point["accuracy"], result["images"]) for point in _points_of(result, "cifar100-anytime"))
    commits = ", ".join(f"`{one['commit']}`" for one in (result, seeds, paper))
    yield (
        f"\nCosts are millions of multiply-adds, counting whole layers, as published figures do. Ours were measured on "
        f"{result['images']:,} test images at commits\n{commits}; the standard error of an accuracy is at most "
        f"{100 * error:.1f} points.\n"
    )


def models_table() -> Iterator[str]:
    yield (
        "| model | classes | exits | parameters | multiply-adds in millions, first to last exit "
        "| test accuracy in %, first to last exit | size |"
    )
    yield "|---|---|---|---|---|---|---|"
    for name in model_names():
        bundle = find_bundle(name)
        manifest = bundle.manifest
        assert manifest.test is not None
        parameters = outline(manifest.network).parameter_count
        first, last = (f"{100 * manifest.test.accuracy[exit]:.1f}" for exit in (0, -1))
        data = manifest.provenance["data"]["dataset"].replace("cifar", "CIFAR-")
        yield (
            f"| `{name}` | {data}'s {len(manifest.classes)} | {manifest.exit_count} "
            f"| {parameters / 1e6:.2f} M | {manifest.costs[0] / 1e6:.1f} to {manifest.costs[-1] / 1e6:.1f} "
            f"| {first} to {last} | {bundle.size / 2**20:.1f} MiB |"
        )


def anytime_cifar100() -> Iterator[str]:
    ours = _of_seeds()
    rows = [
        _row(f"**mean of {len(ours)} seeds**", _percent(ours.mean(axis=0) / 100)),
        _row("their standard deviation", _percent(ours.std(axis=0, ddof=1) / 100)),
        _row("`cifar100-anytime`: the best of them on held-out images (mean of the exits)", _percent(ours[0] / 100)),
        _row("its network, trained as in the paper (recipe `paper`, one seed)", _percent(_baseline()["accuracy"])),
    ]
    return _by_exit("cifar100", read_result("cifar100_seeds")["models"][0]["whole_costs"], rows)


def anytime_cifar10() -> Iterator[str]:
    ours = next(model for model in read_result("cifar10")["models"] if model["model"] == "cifar10-anytime")
    return _by_exit("cifar10", ours["whole_costs"], [_row("**this package**", _percent(ours["accuracy"]))])


def _by_exit(dataset: str, costs: Sequence[float], rows: Sequence[str]) -> Iterator[str]:
    millions = [round(cost / 1e6, 2) for cost in costs]
    yield _row("exit", range(1, len(costs) + 1))
    yield "|---" * (len(costs) + 1) + "|"
    yield _row("million multiply-adds, whole layers", [f"{million:.1f}" for million in millions])
    yield from rows
    yield from _published_rows(dataset, "anytime", millions)


def budgeted_table(dataset: str) -> Iterator[str]:
    result = read_result(dataset)
    best = result["best"]
    chosen = best["paper"]
    millions = [point["budget"] / 1e6 for point in chosen]
    yield _row("million multiply-adds, whole layers", [f"{million:.0f}" for million in millions])
    yield "|---" * (len(millions) + 1) + "|"
    yield _row("**best of our networks (chosen on held-out images)**", _percent(point["accuracy"] for point in chosen))
    yield _row("its name", [point["model"].removeprefix(f"{dataset}-") for point in chosen])
    spent = [f"{point['cost'] / 1e6:.2f} ± {point['cost_error'] / 1e6:.2f}" for point in chosen]
    yield _row("average cost on the test images (± standard error)", spent)
    yield _row("of which computed (lazy evaluation)", [f"{point['lazy_cost'] / 1e6:.1f}" for point in chosen])
    ours = best["accuracy"]
    yield _row("best, with our thresholds instead of the paper's", _percent(point["accuracy"] for point in ours))
    yield _row("average cost with our thresholds", [f"{point['cost'] / 1e6:.1f}" for point in ours])
    for model in result["models"]:
        if model["model"] in model_names():
            yield _row(f"`{model['model']}` alone", _at(millions, _points_of(result, model["model"])))
    if dataset == "cifar100":
        yield _row("its network, trained as in the paper (recipe `paper`)", _at(millions, _baseline_points()))
    yield from _published_rows(dataset, "budgeted", millions)


def _published_rows(dataset: str, setting: Setting, millions: Sequence[float]) -> Iterator[str]:
    """The end of a table, at the same costs to one part in a hundred (ten classes cost a little less), and sources."""
    for curve in published_for(dataset, setting):
        known = list(zip(curve.millions, curve.percent, strict=True))
        at = [[percent for cost, percent in known if abs(cost - million) < million / 100] for million in millions]
        yield _row(f"{curve.name}, published", [percents[0] if percents else "" for percents in at])
    yield ""
    yield " ".join(f"{curve.name}: {curve.source}." for curve in published_for(dataset, setting))
    yield ""


def _baseline() -> dict[str, Any]:
    """CIFAR-100's anytime network, trained as in the paper."""
    (model,) = read_result("cifar100_paper")["models"]
    return dict(model)


def _baseline_points() -> list[dict[str, Any]]:
    return _points_of(read_result("cifar100_paper"), _baseline()["model"])


def _points_of(result: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """A model's budgets, by the paper's thresholds."""
    (model,) = (one for one in result["models"] if one["model"] == name)
    return [point for point in model["points"] if point["method"] == "paper"]


def _at(millions: Iterable[float], points: Sequence[dict[str, Any]], digits: int = 1) -> list[str]:
    """The accuracy at each budget, in per cent; nothing where a budget is below the first exit."""
    known = {point["budget"] / 1e6: point["accuracy"] for point in points}
    return ["".join(_percent([known[million]] if million in known else [], digits)) for million in millions]


def _of_seeds() -> NDArray[np.floating]:
    """% right (seeds, exits)."""
    return 100 * np.array([model["accuracy"] for model in read_result("cifar100_seeds")["models"]])


def _row(name: str, cells: Iterable[object]) -> str:
    return f"| {name} | " + " | ".join(map(str, cells)) + " |"


def _percent(shares: Iterable[float], digits: int = 1) -> list[str]:
    """Halves are rounded up, though 77.05 is a little less in binary."""
    return [f"{100 * share + 1e-9:.{digits}f}" for share in shares]
