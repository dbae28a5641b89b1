"""Train a network on a folder of your own images, make a bundle of it, and classify with that.

    python examples/train_on_your_folder.py photos/ --out mine --epochs 30

The folder holds a folder of images for each class. A tenth of them is kept for testing, a tenth of the rest is held out
for thresholds; which ones depends on their names alone. Needs the extra `train`.
"""

import argparse
from pathlib import Path

import msdnet
from msdnet import MSDNetConfig
from msdnet.data import DataConfig
from msdnet.export import export_run
from msdnet.files import open_labelled
from msdnet.training import load_recipe, train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("--out", type=Path, default=Path("mine"))
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--side", type=int, default=64, help="pixels that the network sees")
    options = parser.parse_args()

    network = MSDNetConfig(exits=(3, 6, 9))  # three exits; see MSDNetConfig for what else can be chosen
    recipe = load_recipe("fast").lasting(options.epochs).in_batches(options.batch_size)
    data = DataConfig(dataset="folder", root=str(options.images), crop_size=options.side)
    train(recipe, data=data, network=network, out=options.out / "run")
    export_run(options.out / "run", options.out / "bundle", half=True, test=True)

    model = msdnet.load(options.out / "bundle")
    test = open_labelled(options.images, "folder", classes=model.classes)
    for share in (0.4, 0.7, 1.0):
        budget = max(share * model.costs[-1], model.costs[0])
        result = model.classify(test.images, budget=budget)
        right = (result.labels == test.labels).mean()
        print(f"{budget / 1e6:6.1f} M multiply-adds per image: {right:.1%} right, {result}")


if __name__ == "__main__":
    main()
