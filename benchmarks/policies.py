"""How long does solving a policy take, and which is better?

    python -m benchmarks.policies [--images N] [--rounds N] [--seeds N] [--record FILE]
    python -m benchmarks.policies BUNDLE... [--record FILE]

Without bundles, on synthetic answers: nothing there is a network's. Times fitting both methods to held-out answers of
eleven exits for a budget in the middle, one after the other, in an order that alternates; figures are medians over
rounds. Then compares them, on the held-out answers and on fresh ones, at budgets over the whole range.

With bundles of trained networks, on the answers to their held-out images: thresholds are fitted to one half of them and
tested on the other, both ways, for several ways to halve them.
"""

import statistics
import time

import numpy as np
import torch
from numpy.typing import NDArray

import msdnet
from benchmarks.machine import make_parser, record
from msdnet.policy import METHODS, Method, Policy, PolicyFamily
from msdnet.runtime import Model
from tests.synthetic import COSTS, Answers, answers

WANTED: dict[Method, float] = {"paper": 0.05, "accuracy": 2.0}  # seconds
BUDGETS = np.linspace(1.1 * COSTS[0], 0.95 * COSTS[-1], 10)
FRESH = 50_000
HALVINGS = 4


def seconds(method: Method, held_out: Answers) -> float:
    start = time.perf_counter()
    Policy(method).fit(*held_out, COSTS, float(COSTS.mean()))
    return time.perf_counter() - start


def as_a_network_gives_them(data: Answers) -> Answers:
    """Single precision: some images are then equally sure."""
    return Answers(data.confidence.astype(np.float32).astype(np.float64), data.correct)


def measure(images: int, rounds: int) -> dict[Method, dict[str, float]]:
    held_out = as_a_network_gives_them(answers(images, seed=0))
    times: dict[Method, list[float]] = {method: [] for method in METHODS}
    for round_ in range(-1, rounds):
        for method in METHODS if round_ % 2 else METHODS[::-1]:
            took = seconds(method, held_out)
            if round_ >= 0:  # the first warms up
                times[method].append(took)
    return {
        method: {
            "median_s": statistics.median(times[method]),
            "slowest_s": max(times[method]),
            "wanted_s": WANTED[method],
        }
        for method in METHODS
    }


def compare(held_out_images: int, seeds: int) -> list[dict[str, float]]:
    """Accuracies and costs of both methods at each budget, averaged over seeds."""
    rows = []
    for seed in range(seeds):
        held_out, fresh = answers(held_out_images, seed), answers(FRESH, 10_000 + seed)
        families = {method: PolicyFamily(*held_out, COSTS, method=method) for method in METHODS}
        rows.append([of_budget(budget, families, fresh) for budget in BUDGETS.tolist()])
    return averaged(rows)


def compare_on(model: Model) -> list[dict[str, float]]:
    """The same of a trained network, averaged over ways to halve its held-out images."""
    sure, right = model.held_out("largest"), model.held_out("correct").astype(bool)
    costs = np.array(model.costs, dtype=float)
    rows = []
    for seed in range(HALVINGS):
        order = np.random.default_rng(seed).permutation(len(right))
        halves = np.array_split(order, 2)
        for fitted, tested in (halves, halves[::-1]):
            families = {method: PolicyFamily(sure[fitted], right[fitted], costs, method=method) for method in METHODS}
            fresh = Answers(sure[tested], right[tested])
            budgets = np.geomspace(1.1 * costs[0], 0.9 * costs[-1], 9).tolist()
            rows.append([of_budget(budget, families, fresh, costs) for budget in budgets])
    return averaged(rows)


def averaged(rows: list[list[dict[str, float]]]) -> list[dict[str, float]]:
    """For each budget, over all that have it."""
    return [
        {name: statistics.mean(result[name] for result in results) for name in results[0]}
        for results in zip(*rows, strict=True)
    ]


def of_budget(
    budget: float, families: dict[Method, PolicyFamily], fresh: Answers, costs: NDArray[np.floating] = COSTS
) -> dict[str, float]:
    result = {"budget": budget}
    for method, family in families.items():
        policy = family.policy(budget)
        exits = policy.exit_indices(fresh.confidence)
        result |= {
            f"{method}_held_out_accuracy": policy.accuracy_,
            f"{method}_held_out_cost": policy.cost_,
            f"{method}_fresh_accuracy": fresh.accuracy(exits),
            f"{method}_fresh_cost": float(costs[exits].mean()),
        }
    return result


def print_comparison(rows: list[dict[str, float]]) -> None:
    print("                      held-out accuracy       fresh accuracy          fresh cost, of budget")
    print("    budget (M)" + "          paper     ours" * 3)
    for row in rows:
        shown = [f"    {row['budget'] / 1e6:10.1f}"]
        for what, scale in (("held_out_accuracy", 1.0), ("fresh_accuracy", 1.0), ("fresh_cost", row["budget"])):
            shown.append("  ".join(f"{row[f'{method}_{what}'] / scale:7.2%}" for method in ("paper", "accuracy")))
        print("        ".join(shown))
    for what in ("held_out", "fresh"):
        gains = [row[f"accuracy_{what}_accuracy"] - row[f"paper_{what}_accuracy"] for row in rows]
        points = 100 * statistics.mean(gains)
        print(f"    ours over the paper's, {what.replace('_', '-'):8}: {points:+.2f} points on average")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("bundles", nargs="*", help="of trained networks, to compare the methods on")
    parser.add_argument("--images", type=int, default=50_000, help="held-out images of the timing")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--held-out", type=int, default=5_000, help="held-out images of the comparison")
    parser.add_argument("--seeds", type=int, default=5, help="of the comparison")
    options = parser.parse_args()
    cpu = torch.device("cpu")
    if options.bundles:
        found = []
        for model in map(msdnet.load, options.bundles):
            rows = compare_on(model)
            print(f"{model.manifest.name}, halves of its held-out images, mean of {2 * HALVINGS}")
            print_comparison(rows)
            found.append({"model": model.manifest.name, "fingerprint": model.bundle.fingerprint, "budgets": rows})
        record(options.record, cpu, benchmark="policies", data="halves of held-out images", models=found)
        return

    times = measure(options.images, options.rounds)
    print(f"{options.images:,} held-out images, {len(COSTS)} exits, median of {options.rounds} rounds")
    for method, result in times.items():
        print(f"  {method:9} {1e3 * result['median_s']:8.1f} ms (wanted: under {1e3 * result['wanted_s']:,.0f} ms)")
    print(f"synthetic answers, {options.held_out:,} held-out and {FRESH:,} fresh images, mean of {options.seeds} seeds")
    rows = compare(options.held_out, options.seeds)
    print_comparison(rows)
    setting = {"exits": len(COSTS), "rounds": options.rounds, "images": options.images}
    compared = {"held_out_images": options.held_out, "fresh_images": FRESH, "seeds": options.seeds, "budgets": rows}
    record(options.record, cpu, benchmark="policies", data="synthetic", **setting, fit=times, comparison=compared)


if __name__ == "__main__":
    main()
