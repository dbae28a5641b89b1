"""Make the figures and tables that the documentation shows: `make figures`.

What stands between two comments, `<!-- NAME: begin -->` and `<!-- NAME: end -->`, is replaced: tables and a few lines.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import reproduced
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

from msdnet import PRESETS, MSDNetConfig, preset_config
from msdnet.drawing import draw_svg
from msdnet.networks import outline
from msdnet.plan import Grid
from msdnet.report.charts import PAPER

ROOT = Path(__file__).resolve().parents[1]
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
        **{f"docs/figures/{name}.svg": chart.svg(PAPER) for name, chart in reproduced.drawn().items()},
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
    **reproduced.TABLES,
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
