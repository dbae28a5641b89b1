"""Make the figures and tables that the documentation shows: `make figures`.

What stands between two comments, `<!-- NAME: begin -->` and `<!-- NAME: end -->`, is replaced: tables and a few lines.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from accuracy import (
    anytime_chart,
    anytime_cifar10,
    anytime_cifar100,
    budgeted_chart,
    budgeted_table,
    certainty,
    gain,
    headline,
    models_table,
    read_result,
)

from msdnet import PRESETS, MSDNetConfig, preset_config, samples
from msdnet.amounts import counted
from msdnet.drawing import draw_svg
from msdnet.networks import outline
from msdnet.plan import Grid
from msdnet.report.charts import PAPER, Lines, Pictures
from msdnet.reproduce import (
    EXPERIMENTS,
    GALLERY,
    Claim,
    Finding,
    Measurement,
    Shelf,
    charts,
    find_experiment,
    judge,
    judge_all,
    measured_of,
    read_gallery,
    read_measurement,
)
from msdnet.reproduce.claims.claim import NOT_YET
from msdnet.reproduce.studies import HEADS, STUDIED, relative_accuracy, why_names

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results/reproduction"
PAGES = (
    "README.md",
    *(
        f"docs/{name}.md"
        for name in ("architecture", "budgets", "deploying", "experiments", "models", "reproduction", "training")
    ),
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
        network = outline(name)
        first, *_, last = network.costs(224 if config.stem == "imagenet" else 32)
        yield (
            f"| `{name}` | {network.exit_count} | {config.depth} | {network.parameter_count / 1e6:.2f} M "
            f"| {first / 1e6:,.1f} M | {last / 1e6:,.1f} M |"
        )


def costs_table() -> Iterator[str]:
    network = outline("cifar_anytime")
    yield "| exit | " + " | ".join(str(k) for k in range(1, network.exit_count + 1)) + " |"
    yield "|---" * (network.exit_count + 1) + "|"
    for name, lazy in (("lazy", True), ("whole layers", False)):
        yield f"| {name} | " + " | ".join(f"{cost / 1e6:.1f}" for cost in network.costs(32, lazy=lazy)) + " |"


def throughput_table() -> Iterator[str]:
    yield "| network | batch | images/s | time outside the training step | peak memory | time to first step |"
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
    record = read_result("batches_cpu")
    run = sorted(record["runs"], key=lambda run: run["time_saved"])[len(record["runs"]) // 2]  # of its median
    yield "| | multiply-adds per image | seconds | images/s |"
    yield "|---|---|---|---|"
    full = outline(record["preset"]).costs(32)[-1]
    for name, cost, seconds in (
        ("all to the last exit", full, run["full_seconds"]),
        ("within the budget", full / run["multiply_adds_saved"], run["seconds"]),
    ):
        yield f"| {name} | {cost / 1e6:.1f} M | {seconds:.1f} | {record['images'] / seconds:,.0f} |"


def engines_table() -> Iterator[str]:
    engines, deadlines, memory = (read_result(f"{name}_cpu") for name in ("engines", "deadlines", "memory"))
    policies = read_result("policies_cpu")
    fits = {method: found["median_s"] for method, found in policies["fit"].items()}
    yield "| what | measured |"
    yield "|---|---|"
    for batch in ("1", "64"):
        found = engines[f"batch_{batch}"]
        low, high = found["stages_over_whole_quartiles"]
        yield (
            f"| 7 exits, batch {batch}, on two CPU cores | {found['stages_ms']:.1f} ms in stages: "
            f"{found['stages_over_whole']:.2f} times the time of one ONNX graph (quartiles {low:.2f} to {high:.2f}); "
            f"the first exit after {found['first_over_whole']:.0%} of that graph's time; PyTorch eager takes "
            f"{found['eager_over_stages']:.1f} times as long as the stages |"
        )
    for path in sorted((ROOT / "results").glob("batches_*.json")):
        found = json.loads(path.read_text())
        yield (
            f"| {found['images']:,} images, a third of the multiply-adds, {found['hardware']} "
            f"| {found['time_saved']:.2f} times faster, with {found['multiply_adds_saved']:.2f} times fewer "
            f"multiply-adds; {abs(found['waste'] - 1):.0%} {'over' if found['waste'] > 1 else 'under'} the time of the "
            "same stages timed alone, in full batches |"
        )
    yield f"| 100,000 images from a generator | {memory['ratio']:.2f} times the memory of 10,000 |"
    yield (
        f"| deadlines | {deadlines['late_share']:.1%} missed by over 1 ms (of plain runs through all exits, "
        f"{deadlines['floor_share']:.1%} took over 1 ms longer than their median); on average "
        f"{deadlines['exits_from_oracle']:.2f} exits from the best choice; `latest()` returns within "
        f"{deadlines['latest_p99_ms']:.3f} ms (99th percentile) |"
    )
    yield (
        f"| fitting a policy to {policies['images']:,} images and {policies['exits']} exits | "
        f"{1e3 * fits['paper']:.0f} ms with `paper`, {fits['accuracy']:.2f} s with `accuracy` |"
    )


def install_size() -> Iterator[str]:
    found, startup = read_result("install_cpu"), read_result("startup_cpu")["median_s"]
    disk, downloaded, taken = found["disk"], found["downloaded_bytes"] / 1e6, found["disk_bytes"] / 1e6
    parts = {
        "ONNX Runtime": ("onnxruntime",),
        "numpy": ("numpy", "numpy.libs"),
        "this package with its models": ("msdnet",),
        "Pillow": ("PIL", "pillow.libs"),
    }
    shares = ", ".join(f"{part} {sum(disk[name] for name in names) / 1e6:.0f} MB" for part, names in parts.items())
    yield f"\n`pip install .` downloads {downloaded:.0f} MB and takes {taken:.0f} MB on disk (Linux on x86-64, Python"
    yield f"{found['python']}), of which {shares}; the rest is for the command line."
    yield f"On two CPU cores, `make demo` took {found['demo_seconds']:.0f} s in a fresh clone, `msdnet demo`"
    yield f"{startup['demo']:.0f} s after that, and `msdnet classify` of one image {startup['classify']:.1f} s.\n"


def service_deadlines() -> Iterator[str]:
    found = read_result("service_cpu")
    late = f"late answers (after {found['deadline_ms']} ms)"
    yield f"| threads | other work on the machine | {late} | mean exit | load average |"
    yield "|---|---|---|---|---|"
    for one in found["deadlines"]:
        beside = "one busy loop" if one["busy_loops"] else "none of ours"
        yield (
            f"| {one['threads']} | {beside} | {one['late_share']:.0%} | {one['mean_exit']:.1f} | {one['load']:.1f} |"
        )


def service_first_calls() -> Iterator[str]:
    found = read_result("service_cpu")["first_calls_ms"]
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
    for name, mib in read_result("service_cpu")["memory_mib"].items():
        kinds = ("loaded", "one_image", "thousand_images")
        yield f"| `{name}` | " + " | ".join(f"{mib[kind]:.0f} MiB" for kind in kinds) + " |"


# --- the paper's experiments: whatever there are results of


@cache
def _measured(name: str) -> dict[str, Measurement]:
    """Of an experiment."""
    experiment = find_experiment(name)
    return measured_of(experiment, Shelf(RESULTS / experiment.dataset, runs=RESULTS))


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
    in_part = sum(finding.in_part for finding in judged.values())
    open_ones = [claim for claim, finding in _judged().items() if finding is None]
    not_yet = sum(claim.otherwise == NOT_YET or bool(claim.parts) for claim in open_ones)
    at_once = sum(claim.experiment is None and not claim.parts for claim in judged)
    sums = sum(bool(claim.parts) and finding.verdict == "no" for claim, finding in judged.items())
    sum_up = f" ({counted(sums, 'of them only sums', 'of them only sum')} up others)" if sums else ""
    yield (
        f"\nOf the paper's {len(_judged())} claims, {len(judged)} have been judged: {held} hold, {in_part} hold in "
        f"part, and {len(judged) - held - in_part} do not{sum_up}.\n"
        f"{not_yet} are not measured yet, and {len(open_ones) - not_yet} cannot be judged by our experiments (the "
        f"list of claims says why). {at_once} of the {len(judged)} needed no training: costs were counted, or a model "
        "of the package was used.\n"
    )


def claims_table() -> Iterator[str]:
    yield "| section | the paper says | measured | holds |"
    yield "|---|---|---|---|"
    for claim, finding in _judged().items():
        measured, holds = (finding.measured, finding.verdict) if finding else (_reason(claim), "-")
        yield f"| {claim.section} | {_plain_text(claim.says)} | {_plain_text(measured)} | {holds} |"


def _reason(claim: Claim) -> str:
    """Why a claim is not judged on this page."""
    if claim.experiment in ("anytime-imagenet", "budgeted-imagenet") and not (RESULTS / "imagenet").exists():
        reason = f"{claim.otherwise}: ImageNet was not at hand. `msdnet reproduce {claim.experiment}` measures it"
        return reason + _elsewhere(claim)
    if claim.experiment == GALLERY and (RESULTS / f"{GALLERY}.json").exists():
        shown = read_gallery(RESULTS / f"{GALLERY}.json")
        first, last = (f"{shown.left[exit]} left at the {name}" for exit, name in ((0, "first exit"), (-1, "last")))
        return (
            f"{claim.otherwise}. Of {shown.images:,} images of CIFAR-10, {first}, {shown.right[0]} of them rightly, "
            f"and {last}, {shown.right[-1]} of them rightly"
        )
    if claim.otherwise == NOT_YET and claim.experiment is not None:
        systems, here = find_experiment(claim.experiment).subjects, _measured(claim.experiment)
        return (
            f"{claim.otherwise}: of the {len(systems)} systems of `{claim.experiment}` {len(systems) - len(here)} are "
            "still to be trained"
        )
    return claim.otherwise


def _elsewhere(claim: Claim) -> str:
    """The same, asked of other images."""
    if claim.elsewhere is None or claim.elsewhere.experiment is None:
        return ""
    experiment = claim.elsewhere.experiment
    finding = judge(claim.elsewhere, _measured(experiment))
    dataset = find_experiment(experiment).dataset.replace("cifar", "CIFAR-")
    return f". On {dataset}, where the paper does not say it: {finding.measured}" if finding else ""


def _plain_text(words: str) -> str:
    """For a cell of a table: a star, as in DenseNet*, is a star, and no emphasis."""
    return words.replace("|", r"\|").replace("*", r"\*")


def training_time() -> Iterator[str]:
    """By what trained them: an hour of a processor is not one of a GPU."""
    records = [read_measurement(path) for path in sorted(RESULTS.glob("*/*.json"))]
    trainings: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        if record.training:
            trainings.setdefault(record.made_by["hardware"], []).append(record.training)
    told = [f"{len(ones)} in {_machine_hours(ones)} on {hardware}" for hardware, ones in trainings.items()]
    count = sum(map(len, trainings.values()))
    yield (
        f"\n{count} networks were trained for this: {', '.join(told)}.\n"
        if told
        else "\nNo networks are trained yet.\n"
    )


def _machine_hours(trainings: Sequence[Mapping[str, Any]]) -> str:
    """What was trained side by side shared the machine; of older results it is not known what was."""
    hours = sum(one.get("machine_seconds", one["seconds"]) for one in trainings) / 3600
    about = "" if all("machine_seconds" in one for one in trainings) else "at most "
    return f"{about}{hours:,.1f} hours"


def imagenet_time() -> Iterator[str]:
    """From the images/s of training steps; what is read more slowly than that is trained as slowly."""
    found, reading = read_result("imagenet_h200"), read_result("folder_h200")["results"][-1]
    read = reading["ours_images_per_second"]
    yield "| network | images/s | hours |"
    yield "|---|---|---|"
    for name, one in found["networks"].items():
        yield f"| `{name}` | {one['images_per_second']:,.0f} | {one['hours']:.1f} |"
    for name, networks in found["experiments"].items():
        trained = [found["networks"][network] for network in networks]
        waiting = sum(one["hours"] * max(1.0, one["images_per_second"] / read) for one in trained)
        yield (
            f"| **all of `{name}`** | | **{found['hours'][name]:.0f}**, or {waiting:.0f} where {reading['workers']} "
            f"processes read {read:,.0f} images/s |"
        )


def why_table() -> Iterator[str]:
    """Of each network with each kind of classifiers: the first one, and what those at all six places do to the last."""
    measured = _measured("why")
    yield (
        "| network | intermediate classifiers | accuracy without (three seeds) | the first, % of that "
        "| the last, % of that, by place of the other |"
    )
    yield "|---|---|---|---|---|"
    for family, heads in STUDIED:
        found = [measured[name] for name in why_names(family, heads) if name in measured]
        first, last = ([100 * place.y for place in relative_accuracy(found, exit)] for exit in (0, -1))
        alone = sorted(100 * one.test_accuracy[-1] for one in found if len(one.costs) == 1)
        if first:
            yield (
                f"| {family} | {HEADS[heads]} | {alone[0]:.1f} to {alone[-1]:.1f}% | {first[0]:.1f} "
                f"| {' '.join(f'{one:.1f}' for one in last)} |"
            )


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
    "gain": gain,
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
    "imagenet_time": imagenet_time,
    "why": why_table,
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
