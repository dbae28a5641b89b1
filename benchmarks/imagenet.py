"""How long would the experiments on ImageNet take here? From the images/s of a few training steps of each network.

    python -m benchmarks.imagenet [--only SYSTEM ...] [--record FILE]

What `msdnet reproduce anytime-imagenet --plan` (and budgeted-imagenet) says on a machine where nothing is trained yet,
with the images/s beside it. Reading images is not in it: benchmarks.folder tells how fast that is.
"""

import tempfile
from pathlib import Path

import torch

from benchmarks.machine import make_parser, record
from msdnet.reproduce import Shelf, find_experiment, make_plan
from msdnet.reproduce.subjects import Trained

EXPERIMENTS = "anytime-imagenet", "budgeted-imagenet"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", metavar="SYSTEM", help="time these alone")
    options = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    known = {one for name in EXPERIMENTS for one in find_experiment(name).everyone}
    if unknown := set(options.only or ()) - known:
        parser.error(f"no such systems: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    needed: dict[str, list[str]] = {}
    networks: dict[str, dict[str, float]] = {}
    for name in EXPERIMENTS:
        experiment = find_experiment(name)
        trained = {one.name: one for one in experiment.everyone.values() if isinstance(one, Trained)}
        needed[name] = [one for one in trained if options.only is None or one in options.only]
        untimed = [trained[one] for one in needed[name] if one not in networks]
        with tempfile.TemporaryDirectory() as empty:
            nothing = Shelf(results=Path(empty), runs=Path(empty))
            planned = list(make_plan(experiment, nothing, untimed, device=str(device)))
        for one in planned:
            rate = trained[one.name].recipe.epochs * experiment.training_images / one.seconds
            networks[one.name] = {"images_per_second": rate, "hours": one.seconds / 3600}
            print(f"{one.name}: {rate:,.0f} images/s, {one.seconds / 3600:,.1f} h", flush=True)
    hours = {name: sum(networks[one]["hours"] for one in ones) for name, ones in needed.items()}
    for name, total in hours.items():
        print(f"{name}: {total:,.0f} h")
    record(options.record, device, benchmark="imagenet", networks=networks, experiments=needed, hours=hours)


if __name__ == "__main__":
    main()
