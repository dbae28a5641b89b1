"""How long does solving a policy take, and which is better? On synthetic answers: nothing here is a network's.

    python -m benchmarks.policies [--images N] [--rounds N] [--seeds N] [--record FILE]

Times fitting both methods to held-out answers of eleven exits for a budget in the middle, one after the other, in an
order that alternates; figures are medians over rounds. Then compares them, on the held-out answers and on fresh ones,
at budgets over the whole range.
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks.machine import record
from msdnet.policy import METHODS, Method, Policy, PolicyFamily
from tests.synthetic import COSTS, Answers, answers

WANTED: dict[Method, float] = {"paper": 0.05, "accuracy": 2.0}  # seconds
BUDGETS = np.linspace(1.1 * COSTS[0], 0.95 * COSTS[-1], 10)
FRESH = 50_000


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
    return [
        {name: statistics.mean(result[name] for result in results) for name in results[0]}
        for results in zip(*rows, strict=True)
    ]


def of_budget(budget: float, families: dict[Method, PolicyFamily], fresh: Answers) -> dict[str, float]:
    result = {"budget": budget}
    for method, family in families.items():
        policy = family.policy(budget)
        exits = policy.exits(fresh.confidence)
        result |= {
            f"{method}_held_out_accuracy": policy.accuracy_,
            f"{method}_held_out_cost": policy.cost_,
            f"{method}_fresh_accuracy": fresh.accuracy(exits),
            f"{method}_fresh_cost": float(COSTS[exits].mean()),
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=50_000, help="held-out images of the timing")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--held-out", type=int, default=5_000, help="held-out images of the comparison")
    parser.add_argument("--seeds", type=int, default=5, help="of the comparison")
    parser.add_argument("--record", type=Path, help="write the result to this JSON file")
    options = parser.parse_args()

    times = measure(options.images, options.rounds)
    print(f"{options.images:,} held-out images, {len(COSTS)} exits, median of {options.rounds} rounds")
    for method, result in times.items():
        print(f"  {method:9} {1e3 * result['median_s']:8.1f} ms (wanted: under {1e3 * result['wanted_s']:,.0f} ms)")
    print(f"synthetic answers, {options.held_out:,} held-out and {FRESH:,} fresh images, mean of {options.seeds} seeds")
    rows = compare(options.held_out, options.seeds)
    print_comparison(rows)
    setting = {"exits": len(COSTS), "rounds": options.rounds, "images": options.images}
    compared = {"held_out_images": options.held_out, "fresh_images": FRESH, "seeds": options.seeds, "budgets": rows}
    cpu = torch.device("cpu")
    record(options.record, cpu, benchmark="policies", data="synthetic", **setting, fit=times, comparison=compared)


if __name__ == "__main__":
    main()
