"""What a report shows, as sections with charts and tables: from a model, and from images where there are some."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msdnet.amounts import four_digits, in_millions
from msdnet.errors import of_file
from msdnet.evaluation import BINS, Evaluation, reliability, standard_error, where_left
from msdnet.files import Labelled
from msdnet.policy import METHODS, Method, that_differ, usual_budgets
from msdnet.published import Setting, published_for
from msdnet.report.charts import Lines, Panel, Panels, Pictures, Series, Shares
from msdnet.report.gallery import easy_and_hard, even_budget, gallery
from msdnet.runtime import Model

__all__ = ["COMPUTED", "WHOLE_LAYERS", "Chart", "Section", "sections"]

Chart = Lines | Shares | Panels | Pictures
Floats = NDArray[np.floating]

# What a cost counts stands at every axis: the two may differ by a tenth at the first exit.
COMPUTED = "million multiply-adds per image (lazy)"
WHOLE_LAYERS = "million multiply-adds per image (whole layers)"

_BUDGETS = 16
_TITLES: Mapping[Setting, str] = {
    "anytime": "Anytime: all leave at the same exit",
    "budgeted": "Budgeted: easy images leave early",
}
_CLASS_COLUMNS = ("class", "multiply-adds (lazy)", "mean exit", "% right", "of full cost")
_METHOD_NAMES: Mapping[Method, str] = {"accuracy": "our thresholds (the default)", "paper": "the paper's thresholds"}


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    name: str
    text: str
    charts: Sequence[tuple[str, Chart]] = ()
    """By the names of their files."""
    html: str = ""
    notes: Sequence[str] = ()


def sections(
    evaluation: Evaluation, data: Labelled | None = None, run: Path | None = None, wanted: Sequence[int] = ()
) -> Iterator[Section]:
    """All that is to be said of a model.

    - data: the images that it was evaluated on, where they can be shown
    - run: the folder of its training
    - wanted: classes to be shown in the gallery; without any, some that tell most
    """
    yield _accuracy(evaluation)
    yield _time(evaluation)
    yield _leaving(evaluation)
    yield _reliability(evaluation)
    if data is not None:
        yield _classes(evaluation, data)
        yield _gallery(evaluation, data, wanted)
    if run is not None:
        yield _training(run)
    yield _provenance(evaluation.model)


def _accuracy(evaluation: Evaluation) -> Section:
    """Costs are what is computed; but beside published curves, which count whole layers, they are counted so too."""
    manifest = evaluation.model.manifest
    dataset = str(manifest.provenance.get("data", {}).get("dataset", ""))
    published = {setting: published_for(dataset, setting) for setting in _TITLES}
    compared = any(published.values())
    costs, x_name = (manifest.whole_costs, WHOLE_LAYERS) if compared else (manifest.costs, COMPUTED)
    ours: Mapping[Setting, list[Series]] = {
        "anytime": [Series("this model", _millions(costs), _percent(evaluation.accuracy), 0, "step")],
        "budgeted": [_budgeted(evaluation, method, costs, 1 + k, 1e6) for k, method in enumerate(METHODS)],
    }
    charts: list[tuple[str, Chart]] = []
    notes = []
    for setting, curves in ours.items():
        for k, curve in enumerate(published[setting], 3):
            name = f"{curve.name} (published)"
            curves.append(Series(name, curve.millions, curve.percent, k, dashed=True, marks=False))
            notes.append(f"{curve.name}, {setting}: {curve.source}")
        charts.append((setting, Lines(_TITLES[setting], x_name, "% right", curves, log_x=True)))
    counted = (
        "The charts count whole layers up to an exit, for this model as for the published curves; what is computed, "
        "lazily, is less: it is in the table, and budgets are counted by it."
        if compared
        else "Costs are what is computed, lazily, as budgets are counted. Published figures count whole layers instead."
    )
    error = 100 * standard_error(evaluation.accuracy[-1], evaluation.images)
    known = f"The standard error of an accuracy is about {error:.1f} points. " if error else ""
    text = f"On {evaluation.images:,} images: {evaluation.data}. {known}{counted}"
    return Section("Accuracy against multiply-adds", text, charts, _exits_table(evaluation), notes)


def _budgeted(evaluation: Evaluation, method: Method, costs: Sequence[float], colour: int, unit: float) -> Series:
    """Accuracy at budgets over the whole range, at what they really cost."""
    spent, right = [], []
    for budget in np.geomspace(1.02 * costs[0], costs[-1], _BUDGETS):
        policy = evaluation.model.policy(float(budget), method=method, costs=costs)
        exits = policy.exit_indices(evaluation.confidence)
        spent.append(float(np.array(costs)[exits].mean()) / unit)
        right.append(100 * float(where_left(evaluation.correct, exits).mean()))
    order = np.argsort(spent)
    return Series(_METHOD_NAMES[method], [spent[k] for k in order], [right[k] for k in order], colour, marks=False)


def _exits_table(evaluation: Evaluation) -> str:
    manifest = evaluation.model.manifest
    rows = zip(manifest.costs, manifest.whole_costs, evaluation.accuracy, strict=True)
    return _table(
        ["exit", "multiply-adds (lazy)", "whole layers", "% right"],
        [
            [str(k), f"{cost / 1e6:.2f} M", f"{whole / 1e6:.2f} M", f"{100 * right:.2f}"]
            for k, (cost, whole, right) in enumerate(rows, 1)
        ],
    )


def _time(evaluation: Evaluation) -> Section:
    batch = evaluation.model.engine.best_batch
    profile = evaluation.model.profile([1, batch], seconds=1.0)
    alone, together = profile.at(1).costs, profile.at(batch).costs
    curves = [
        Series("one image at a time, anytime", _milliseconds(alone), _percent(evaluation.accuracy), 0, "step"),
        *(_budgeted(evaluation, method, together, 1 + k, 1e-3) for k, method in enumerate(METHODS)),
    ]
    chart = Lines("Accuracy against time", "milliseconds per image", "% right", curves, log_x=True)
    text = (
        f"The same on this machine ({evaluation.model.engine}): one image alone; and budgets that many images share, "
        f"in batches of {batch}."
    )
    return Section("Accuracy against time", text, [("time", chart)])


def _leaving(evaluation: Evaluation) -> Section:
    costs = evaluation.model.costs
    budgets = usual_budgets(costs)
    rows: list[tuple[str, list[float]]] = []
    for policy in that_differ(map(evaluation.model.policy, budgets)):
        exits = policy.exit_indices(evaluation.confidence)
        shares = np.bincount(exits, minlength=len(costs)) / len(exits)
        rows.append((f"budget {four_digits(policy.budget_ / 1e6)} M", shares.tolist()))
    names = [str(exit) for exit in range(1, len(costs) + 1)]
    chart = Shares("Where images leave", "budgets in multiply-adds per image (lazy)", rows, "exit", names)
    text = "Share of the images that leave at each exit, in %, for budgets in multiply-adds (lazy) per image."
    if len(rows) < len(budgets):
        text += (
            " Budgets at which nothing changes are left out: what gains nothing on the held-out images is not spent."
        )
    return Section("Where images leave", text, [("leaving", chart)])


def _reliability(evaluation: Evaluation) -> Section:
    panels, errors = [], []
    sure = evaluation.confidence if evaluation.largest is None else evaluation.largest
    for exit, answers in enumerate(zip(sure.T, evaluation.correct.T, strict=True), 1):
        x, y, error = reliability(*answers)
        panels.append(Panel(f"exit {exit}: off by {100 * error:.1f}", x.tolist(), y.tolist()))
        errors.append(error)
    chart = Panels("Do the exits know how sure they may be?", "confidence", "share that is right", panels)
    text = (
        "On the diagonal, of the images that an exit is 80% sure of, 80% are right. Above it an exit is too modest, "
        f"below it too sure. On average over the exits they are off by {100 * float(np.mean(errors)):.1f} points "
        f"(expected calibration error, {BINS} bins)."
    )
    return Section("Reliability of the confidences", text, [("reliability", chart)])


def _classes(evaluation: Evaluation, data: Labelled) -> Section:
    """Which classes are hard: at the budget half-way, how often right, and what they take."""
    costs = evaluation.model.costs
    budget = math.sqrt(costs[0] * costs[-1])  # which takes whole numbers of any size
    exits = evaluation.exit_indices(budget)
    right, spent = where_left(evaluation.correct, exits), np.array(costs)[exits]
    found = []
    for label, name in enumerate(data.classes):
        mine = data.labels == label
        if mine.any():
            found.append((float(spent[mine].mean()), name, float(right[mine].mean()), float(exits[mine].mean()) + 1))
    found.sort()
    rows = [
        [escape(name), f"{in_millions(cost)} M", f"{exit:.1f}", f"{100 * accuracy:.0f}", _bar(cost / costs[-1])]
        for cost, name, accuracy, exit in found
    ]
    table = _table(_CLASS_COLUMNS, rows)
    if len(rows) > 20:
        ends = _table(_CLASS_COLUMNS, rows[:8] + rows[-8:])
        table = f"{ends}<details><summary>All {len(rows)} classes</summary>{table}</details>"
    text = (
        f"Classes from easy to hard, by what the network spends on them: {in_millions(spent.mean())} million "
        f"multiply-adds per image on average, of a budget of {in_millions(budget)} million."
    )
    return Section("Which classes are hard", text, html=table)


def _gallery(evaluation: Evaluation, data: Labelled, wanted: Sequence[int]) -> Section:
    budget = even_budget(evaluation.model.costs)
    text = (
        "Images that left at the first exit, with the right answer; and images of which the first exit was wrong but "
        "not sure, and which left at the last, with the right answer. They leave by the paper's thresholds for "
        f"{four_digits(budget / 1e6)} million multiply-adds per image, with which about as many leave at each exit. "
        "Which images are shown was drawn at random."
    )
    found = easy_and_hard(evaluation, evaluation.exit_indices(budget, method="paper"))
    return Section("Easy and hard images", text, html=gallery(found, data, wanted))


def _training(run: Path) -> Section:
    path = run / "metrics.jsonl"
    with of_file(path):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    last = len(lines[0]["train_accuracy"]) - 1
    seen = [line for line in lines if line.get("held_out_accuracy")]
    curves = []
    for colour, (name, exit) in enumerate({"first exit": 0, "last exit": last}.items()):
        x, y = zip(*((line["epoch"], 100 * line["held_out_accuracy"][exit]) for line in seen), strict=True)
        curves.append(Series(f"{name}, held-out", x, y, colour, marks=False))
        x, y = zip(*((line["epoch"], 100 * line["train_accuracy"][exit]) for line in lines), strict=True)
        curves.append(Series(f"{name}, training", x, y, colour, dashed=True, marks=False))
    chart = Lines("Training", "epoch", "% right", curves)
    return Section("Training", "Training images are augmented, and harder for it.", [("training", chart)])


def _provenance(model: Model) -> Section:
    manifest = model.manifest
    told = {"network": manifest.network.to_dict(), **manifest.provenance}
    indented = json.dumps(told, indent=2)
    shown = escape(re.sub(r"\[[^][{}]*\]", lambda found: " ".join(found[0].split()), indented))  # lists in a line
    return Section(
        "Provenance",
        f"Fingerprint {model.bundle.fingerprint}.",
        html=f"<details><summary>Network, data, recipe, versions</summary><pre>{shown}</pre></details>",
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    first = "".join(f"<th>{name}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table></div>'


def _bar(part: float) -> str:
    """With its number behind it, for which some of the cell is left."""
    return f'<span class="bar" style="width:{70 * part:.0f}%"></span> {part:.0%}'


def _millions(costs: Sequence[float]) -> list[float]:
    return [cost / 1e6 for cost in costs]


def _milliseconds(seconds: Sequence[float]) -> list[float]:
    return [1e3 * second for second in seconds]


def _percent(shares: Any) -> list[float]:
    return [100 * float(share) for share in shares]
