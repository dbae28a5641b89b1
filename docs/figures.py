"""Make the figures and tables that the documentation shows: `make figures`.

What stands between two comments, `<!-- NAME: begin -->` and `<!-- NAME: end -->`, is replaced: tables and a few lines.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from msdnet import PRESETS, MSDNetConfig, preset_config, samples
from msdnet.data import DataConfig
from msdnet.drawing import draw_svg
from msdnet.evaluation import standard_error
from msdnet.models import find_bundle, model_names
from msdnet.networks import create_network
from msdnet.plan import Grid
from msdnet.published import Setting, published_for
from msdnet.report.charts import PAPER, Lines, Pictures, Series
from msdnet.reproduce import (
    EXPERIMENTS,
    GALLERY,
    Claim,
    Finding,
    Measurement,
    Workshop,
    charts,
    find_experiment,
    judge_all,
    measured_of,
    read_gallery,
    read_measurement,
)

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results/reproduction"
PAGES = (
    "README.md",
    *(f"docs/{name}.md" for name in ("architecture", "budgets", "deploying", "models", "reproduction", "training")),
)


def drawings() -> dict[str, str]:
    """Every drawing by the path of its file."""
    anytime = Grid(preset_config("cifar_anytime"))
    reduced = Grid(MSDNetConfig(exits=(3, 6, 9)))
    return {
        "docs/figures/layout.svg": draw_svg(
            anytime, "The first four layers of an MSDNet with three scales", last_layer=4
        ),
        "docs/figures/reduction.svg": draw_svg(reduced, "Network reduction: three blocks, each with one scale fewer"),
        "docs/figures/plan.svg": draw_svg(anytime, "The CIFAR anytime network: which stage computes which cell"),
        "docs/figures/accuracy_budgeted.svg": budgeted_chart().svg(PAPER),
        "docs/figures/accuracy_anytime.svg": anytime_chart().svg(PAPER),
        **{f"docs/figures/{name}.svg": chart.svg(PAPER) for name, chart in reproduced().items()},
    }


def presets_table() -> Iterator[str]:
    yield "| preset | exits | layers | parameters | multiply-adds to the first exit | to the last |"
    yield "|---|---|---|---|---|---|"
    for name, config in PRESETS.items():
        with torch.device("meta"):  # shapes are all that is needed
            network = create_network(name)
        parameters = sum(parameter.numel() for parameter in network.parameters())
        first, *_, last = network.costs(224 if config.stem == "imagenet" else 32)
        yield (
            f"| `{name}` | {network.exit_count} | {config.depth} | {parameters / 1e6:.2f} M "
            f"| {first / 1e6:,.1f} M | {last / 1e6:,.1f} M |"
        )


def costs_table() -> Iterator[str]:
    network = create_network("cifar_anytime")
    yield "| exit | " + " | ".join(str(k) for k in range(1, network.exit_count + 1)) + " |"
    yield "|---" * (network.exit_count + 1) + "|"
    for name, lazy in (("lazy", True), ("whole layers", False)):
        yield f"| {name} | " + " | ".join(f"{cost / 1e6:.1f}" for cost in network.costs(32, lazy=lazy)) + " |"


def throughput_table() -> Iterator[str]:
    yield "| network | batch | images/s | of it outside the step | peak memory | first step after |"
    yield "|---|---|---|---|---|---|"
    for path in sorted((ROOT / "results").glob("throughput_*.json")):
        record = json.loads(path.read_text())
        for result in record["results"]:
            yield (
                f"| `{record['preset']}` | {result['batch']:,} | {result['images_per_second']:,.0f} "
                f"| {result['share_outside_step']:.1%} | {result['peak_memory_gib']:.1f} GiB "
                f"| {result['first_step_seconds']:.0f} s |"
            )


def engine_table() -> Iterator[str]:
    record = _result("batches_cpu")
    run = sorted(record["runs"], key=lambda run: run["time_saved"])[len(record["runs"]) // 2]  # of its median
    yield "| | multiply-adds per image | seconds | images/s |"
    yield "|---|---|---|---|"
    full = create_network(record["preset"]).costs(32)[-1]
    for name, cost, seconds in (
        ("all to the last exit", full, run["full_seconds"]),
        ("within the budget", full / run["multiply_adds_saved"], run["seconds"]),
    ):
        yield f"| {name} | {cost / 1e6:.1f} M | {seconds:.1f} | {record['images'] / seconds:,.0f} |"


def engines_table() -> Iterator[str]:
    engines, deadlines, memory = (_result(f"{name}_cpu") for name in ("engines", "deadlines", "memory"))
    policies = _result("policies_cpu")
    fits = {method: found["median_s"] for method, found in policies["fit"].items()}
    yield "| what | measured |"
    yield "|---|---|"
    for batch in ("1", "64"):
        found = engines[f"batch_{batch}"]
        low, high = found["stages_over_whole_quartiles"]
        yield (
            f"| 7 exits, batch {batch}, on two CPU cores | {found['stages_ms']:.1f} ms in stages, "
            f"{found['stages_over_whole']:.2f} times as long as one ONNX graph (quartiles {low:.2f} to {high:.2f}); "
            f"the first exit after {found['first_over_whole']:.0%} of that graph's time; PyTorch eager takes "
            f"{found['eager_over_stages']:.1f} times as long as the stages |"
        )
    for path in sorted((ROOT / "results").glob("batches_*.json")):
        found = json.loads(path.read_text())
        yield (
            f"| {found['images']:,} images, a third of the multiply-adds, {found['hardware']} "
            f"| {found['time_saved']:.2f} times faster ({found['time_over_multiply_adds']:.2f} of what the "
            f"multiply-adds saved); {found['waste']:.2f} times as long as these stages alone, in full batches |"
        )
    yield f"| 100,000 images from a generator | {memory['ratio']:.2f} times the memory of 10,000 |"
    yield (
        f"| deadlines | {deadlines['late_share']:.1%} late by a millisecond (plain runs: "
        f"{deadlines['floor_share']:.1%}), {deadlines['exits_from_oracle']:.2f} exits from an "
        f"oracle; newest answer within {deadlines['latest_p99_ms']:.3f} ms (99th percentile) |"
    )
    yield (
        f"| a policy for {policies['images']:,} images and {policies['exits']} exits | paper "
        f"{1e3 * fits['paper']:.0f} ms, accuracy {fits['accuracy']:.2f} s |"
    )


def install_size() -> Iterator[str]:
    found, startup = _result("install_cpu"), _result("startup_cpu")["median_s"]
    disk, downloaded, taken = found["disk"], found["downloaded_bytes"] / 1e6, found["disk_bytes"] / 1e6
    parts = {
        "ONNX Runtime": ("onnxruntime",),
        "numpy": ("numpy", "numpy.libs"),
        "this package with its models": ("msdnet",),
        "Pillow": ("PIL", "pillow.libs"),
    }
    shares = ", ".join(f"{sum(disk[name] for name in names) / 1e6:.0f} {part}" for part, names in parts.items())
    yield f"\n`pip install .` downloads {downloaded:.0f} MB and takes {taken:.0f} MB on disk (Linux on x86-64, Python"
    yield f"{found['python']}): {shares}; the rest is the command line's."
    yield f"`make demo` took {found['demo_seconds']:.0f} s in a fresh clone, `msdnet demo` {startup['demo']:.0f} s"
    yield f"thereafter, `msdnet classify` of one image {startup['classify']:.1f} s, all on two CPU cores.\n"


def service_deadlines() -> Iterator[str]:
    found = _result("service_cpu")
    yield f"| threads | beside it | answers after {found['deadline_ms']} ms | mean exit | load |"
    yield "|---|---|---|---|---|"
    for one in found["deadlines"]:
        beside = "a busy loop" if one["busy_loops"] else "nothing of ours"
        yield (
            f"| {one['threads']} | {beside} | {one['late_share']:.0%} | {one['mean_exit']:.1f} | {one['load']:.1f} |"
        )


def service_first_calls() -> Iterator[str]:
    found = _result("service_cpu")["first_calls_ms"]
    calls = {"budget": 'classify(image, budget="50%")', "seconds": 'classify(image, seconds="50ms")'}
    calls["deadline"] = "answer(image, deadline_ms=5)"
    yield "| call | " + " | ".join(f"`{name}`: first | then" for name in found) + " |"
    yield "|---" * (1 + 2 * len(found)) + "|"
    for kind, call in calls.items():
        times = (f"{one[kind]['first']:,.0f} ms | {one[kind]['then']:.1f} ms" for one in found.values())
        yield f"| `{call}` | {' | '.join(times)} |"


def service_memory() -> Iterator[str]:
    yield "| model | loaded | after one image | after 1,000 in one call |"
    yield "|---|---|---|---|"
    for name, mib in _result("service_cpu")["memory_mib"].items():
        kinds = ("loaded", "one_image", "thousand_images")
        yield f"| `{name}` | " + " | ".join(f"{mib[kind]:.0f} MiB" for kind in kinds) + " |"


# --- how good the models are: benchmarks/accuracy.py writes these results


def budgeted_chart() -> Lines:
    result = _result("cifar100")
    ours = [
        _curve("best of our three networks", result["best"]["paper"], 1),
        _curve("cifar100-anytime", _points_of(result, "cifar100-anytime"), 0),
        _curve("the same by the paper's training", _baseline_points(), 2),
    ]
    return _beside_published("CIFAR-100, test images: within a budget", "budgeted", ours)


def anytime_chart() -> Lines:
    millions = [cost / 1e6 for cost in _baseline()["whole_costs"]]
    ours = [
        Series("cifar100-anytime (mean of three seeds)", millions, _of_seeds().mean(axis=0), 0),
        Series("the same by the paper's training", millions, [100 * right for right in _baseline()["accuracy"]], 2),
    ]
    return _beside_published("CIFAR-100, test images: at any moment", "anytime", ours)


def _beside_published(title: str, setting: Setting, ours: list[Series]) -> Lines:
    """A method has the same colour in both settings."""
    published = (*published_for("cifar100", "budgeted"), *published_for("cifar100", "anytime"))
    colours = {name: colour for colour, name in enumerate(dict.fromkeys(curve.name for curve in published), start=3)}
    theirs = [
        Series(f"{curve.name}, published", curve.millions, curve.percent, colours[curve.name], dashed=True, marks=False)
        for curve in published_for("cifar100", setting)
    ]
    return Lines(title, "million multiply-adds per image, counting whole layers", "% right", [*ours, *theirs])


def _curve(name: str, points: Sequence[dict[str, Any]], colour: int) -> Series:
    return Series(name, [p["cost"] / 1e6 for p in points], [100 * p["accuracy"] for p in points], colour)


def headline() -> Iterator[str]:
    """The budgets that a reader looks for first."""
    result = _result("cifar100")
    millions = (10.0, 15.0, 20.0, 30.0, 50.0, 80.0)
    yield _row(
        "CIFAR-100, test accuracy in % at an average of so many multiply-adds per image",
        [f"{million:.0f} M" for million in millions],
    )
    yield "|---" * (len(millions) + 1) + "|"
    yield _row("**in this package: `cifar100-anytime`**", _at(millions, _points_of(result, "cifar100-anytime")))
    yield _row("of our three networks, the best on held-out images", _at(millions, result["best"]["paper"]))
    yield _row("the same network by the paper's own training (`paper`)", _at(millions, _baseline_points()))
    yield from _published_rows("cifar100", "budgeted", millions)


def certainty() -> Iterator[str]:
    """How far the headline's figures are known."""
    result = _result("cifar100")
    error = max(standard_error(point["accuracy"], result["images"]) for point in result["best"]["paper"])
    yield (
        f"\nAll count whole layers. Ours, by the paper's thresholds, are known to {100 * error:.1f} points (a standard "
        f"error of {result['images']:,} test images). The\nfirst two rows learnt from a larger network, with strong "
        "augmentation, and answer with the average of the exits so far; the third is the\nnetwork of the first, as the "
        "paper trains it.\n"
    )


def models_table() -> Iterator[str]:
    yield "| model | classes | exits | parameters | million multiply-adds | % right of 10,000 test images | size |"
    yield "|---|---|---|---|---|---|---|"
    for name in model_names():
        bundle = find_bundle(name)
        manifest = bundle.manifest
        assert manifest.test is not None
        with torch.device("meta"):
            parameters = sum(parameter.numel() for parameter in create_network(manifest.network).parameters())
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
        _row("the same network by the paper's own training (`paper`; one seed)", _percent(_baseline()["accuracy"])),
    ]
    return _by_exit("cifar100", _result("cifar100_seeds")["models"][0]["whole_costs"], rows)


def anytime_cifar10() -> Iterator[str]:
    ours = next(model for model in _result("cifar10")["models"] if model["model"] == "cifar10-anytime")
    return _by_exit("cifar10", ours["whole_costs"], [_row("**this package**", _percent(ours["accuracy"]))])


def _by_exit(dataset: str, costs: Sequence[float], rows: Sequence[str]) -> Iterator[str]:
    millions = [round(cost / 1e6, 2) for cost in costs]
    yield _row("exit", range(1, len(costs) + 1))
    yield "|---" * (len(costs) + 1) + "|"
    yield _row("million multiply-adds, whole layers", [f"{million:.1f}" for million in millions])
    yield from rows
    yield from _published_rows(dataset, "anytime", millions)


def budgeted_table(dataset: str) -> Iterator[str]:
    result = _result(dataset)
    best = result["best"]
    chosen = best["paper"]
    millions = [point["budget"] / 1e6 for point in chosen]
    yield _row("million multiply-adds, whole layers", [f"{million:.0f}" for million in millions])
    yield "|---" * (len(millions) + 1) + "|"
    yield _row("**of our networks, the best on held-out images**", _percent(point["accuracy"] for point in chosen))
    yield _row("which is", [point["model"].removeprefix(f"{dataset}-") for point in chosen])
    spent = [f"{point['cost'] / 1e6:.2f} ± {point['cost_error'] / 1e6:.2f}" for point in chosen]
    yield _row("it spent, on the test images (± a standard error)", spent)
    yield _row("computed, since evaluation is lazy", [f"{point['lazy_cost'] / 1e6:.1f}" for point in chosen])
    yield _row("with our thresholds instead of the paper's", _percent(point["accuracy"] for point in best["accuracy"]))
    yield _row("they spent", [f"{point['cost'] / 1e6:.1f}" for point in best["accuracy"]])
    for model in result["models"]:
        if model["model"] in model_names():
            yield _row(f"`{model['model']}` alone", _at(millions, _points_of(result, model["model"])))
    if dataset == "cifar100":
        yield _row("`cifar100-anytime` by the paper's own training (`paper`)", _at(millions, _baseline_points()))
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
    (model,) = _result("cifar100_paper")["models"]
    return dict(model)


def _baseline_points() -> list[dict[str, Any]]:
    return _points_of(_result("cifar100_paper"), _baseline()["model"])


def _points_of(result: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """A model's budgets, by the paper's thresholds."""
    (model,) = (one for one in result["models"] if one["model"] == name)
    return [point for point in model["points"] if point["method"] == "paper"]


def _at(millions: Iterable[float], points: Sequence[dict[str, Any]]) -> list[str]:
    """The accuracy at each budget, in per cent; nothing where a budget is below the first exit."""
    known = {point["budget"] / 1e6: point["accuracy"] for point in points}
    return ["".join(_percent([known[million]] if million in known else [])) for million in millions]


def _of_seeds() -> NDArray[np.floating]:
    """% right (seeds, exits)."""
    return 100 * np.array([model["accuracy"] for model in _result("cifar100_seeds")["models"]])


def _row(name: str, cells: Iterable[object]) -> str:
    return f"| {name} | " + " | ".join(map(str, cells)) + " |"


def _percent(shares: Iterable[float]) -> list[str]:
    """Halves are rounded up, though 77.05 is a little less in binary."""
    return [f"{100 * share + 1e-9:.1f}" for share in shares]


# --- the paper's experiments: whatever there are results of


@cache
def _measured(name: str) -> dict[str, Measurement]:
    """Of an experiment."""
    experiment = find_experiment(name)
    return measured_of(experiment, Workshop(DataConfig(), RESULTS, runs=RESULTS, name=experiment.dataset))


def reproduced() -> dict[str, Lines | Pictures]:
    """Every figure that can be drawn, by the name of its file."""
    found: dict[str, Lines | Pictures] = {}
    for experiment in map(find_experiment, EXPERIMENTS):
        found |= charts(experiment, _measured(experiment.name))
    gallery = RESULTS / f"{GALLERY}.json"
    return found | ({GALLERY: read_gallery(gallery).chart(samples.cifar10())} if gallery.exists() else {})


def reproduced_figures() -> Iterator[str]:
    shown, missing = reproduced(), _missing()
    for name, chart in shown.items():
        yield f"\n![{chart.title}](figures/{name}.svg)"
        if missing.get(name):
            yield f"\nStill to be trained: {', '.join(missing[name])}."
    yield "" if shown else "\nNo figures yet: nothing is measured.\n"


def _missing() -> dict[str, list[str]]:
    """What each figure is to show and does not yet, by the figure's name."""
    return {
        figure.name: [f"`{subject.name}`" for subject in figure.subjects if subject.name not in measured]
        for experiment in map(find_experiment, EXPERIMENTS)
        for measured in [_measured(experiment.name)]
        for figure in experiment.figures
    }


@cache
def _judged() -> dict[Claim, Finding | None]:
    return judge_all({name: _measured(name) for name in EXPERIMENTS})


def verdicts() -> Iterator[str]:
    judged = {claim: finding for claim, finding in _judged().items() if finding}
    held = sum(finding.holds for finding in judged.values())
    at_once = sum(claim.experiment is None and not claim.parts for claim in judged)
    sums = sum(bool(claim.parts) and not finding.holds for claim, finding in judged.items())
    yield (
        f"\nOf {len(_judged())} claims of the paper {held} were found true and {len(judged) - held} false "
        f"({sums} of these sum up others); {len(_judged()) - len(judged)} are not measured yet, or cannot be here.\n"
        f"{at_once} of the judged take no experiment: costs are counted, or a model of the package is known.\n"
    )


def claims_table() -> Iterator[str]:
    yield "| section | the paper says | measured | holds |"
    yield "|---|---|---|---|"
    for claim, finding in _judged().items():
        measured, holds = (finding.measured, "yes" if finding.holds else "no") if finding else (_reason(claim), "-")
        yield f"| {claim.section} | {_plain_text(claim.says)} | {_plain_text(measured)} | {holds} |"


def _reason(claim: Claim) -> str:
    """Why a claim is not judged on this page."""
    if claim.experiment in ("anytime-imagenet", "budgeted-imagenet") and not (RESULTS / "imagenet").exists():
        return f"{claim.otherwise}: ImageNet was not at hand. `msdnet reproduce {claim.experiment}` measures it"
    return claim.otherwise


def _plain_text(words: str) -> str:
    """For a cell of a table: a star, as in DenseNet*, is a star, and no emphasis."""
    return words.replace("|", r"\|").replace("*", r"\*")


def training_time() -> Iterator[str]:
    """What was trained side by side shared the machine; of older results it is not known what was."""
    records = [read_measurement(path) for path in sorted(RESULTS.glob("*/*.json"))]
    trainings = [record.training for record in records if record.training]
    hours = sum(one.get("machine_seconds", one["seconds"]) for one in trainings) / 3600
    about = "" if all("machine_seconds" in one for one in trainings) else "at most "
    hardware = ", ".join(sorted({record.made_by["hardware"] for record in records}))
    yield (
        f"\n{len(trainings)} networks were trained for this, in {about}{hours:,.1f} hours on {hardware}.\n"
        if trainings
        else "\nNo networks are trained yet.\n"
    )


def _result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "results" / f"{name}.json").read_text())
    return found


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "presets": presets_table,
    "costs": costs_table,
    "throughput": throughput_table,
    "engine": engine_table,
    "engines": engines_table,
    "install_size": install_size,
    "service_deadlines": service_deadlines,
    "service_first_calls": service_first_calls,
    "service_memory": service_memory,
    "headline": headline,
    "certainty": certainty,
    "models": models_table,
    "anytime_cifar100": anytime_cifar100,
    "anytime_cifar10": anytime_cifar10,
    "budgeted_cifar100": partial(budgeted_table, "cifar100"),
    "budgeted_cifar10": partial(budgeted_table, "cifar10"),
    "verdicts": verdicts,
    "claims": claims_table,
    "reproduced": reproduced_figures,
    "training_time": training_time,
}


def refreshed(page: str) -> str:
    """A page with its tables as they should be."""
    return re.sub(r"(<!-- (\w+): begin -->\n).*?(<!-- \2: end -->)", _with_table, page, flags=re.DOTALL)


def _with_table(match: re.Match[str]) -> str:
    begin, name, end = match.groups()
    return "\n".join([begin.rstrip(), *TABLES[name](), end])


if __name__ == "__main__":
    (ROOT / "docs/figures").mkdir(exist_ok=True)
    for path, drawing in drawings().items():
        (ROOT / path).write_text(drawing)
    for path in PAGES:
        (ROOT / path).write_text(refreshed((ROOT / path).read_text()))
