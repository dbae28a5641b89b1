"""Classify all images of a folder within a time for each, on average: easy ones take less, hard ones more.

python examples/classify_within_time.py bundles/first photos/ --milliseconds 3
"""

import argparse
from collections import Counter
from pathlib import Path

import msdnet
from msdnet.pixels import ENDINGS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a model of the package, or the folder of a bundle")
    parser.add_argument("images", type=Path)
    parser.add_argument("--milliseconds", type=float, default=3.0)
    options = parser.parse_args()

    model = msdnet.load(options.model)
    print(model.profile())  # what each stage takes here; budgets in time go by it
    paths = sorted(path for path in options.images.rglob("*") if path.suffix.lower() in ENDINGS)
    result = model.classify(paths, seconds=options.milliseconds / 1e3)
    print(result)
    print("most often:", ", ".join(f"{name} ({count})" for name, count in Counter(result.names).most_common(5)))


if __name__ == "__main__":
    main()
