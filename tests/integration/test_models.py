"""The models of the package say today what they said when they were shipped, and are as good as they say.

`tests/expect/MODEL.json` holds answers to some of the package's images, and how many of a thousand are right;
`python -m tests.integration.test_models` writes it anew, after a model was changed on purpose. MSDNET_DATA says where
CIFAR-100 is.
"""

import json
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import msdnet
from msdnet import samples
from msdnet.evaluation import evaluate
from msdnet.files import open_labelled
from msdnet.models import model_names
from msdnet.runtime import Model

EXPECTED = Path(__file__).parents[1] / "expect"
RESULTS = Path(__file__).parents[2] / "results"
MODELS = ("cifar10-anytime", "cifar10-small", "cifar100-anytime")
IMAGES = range(0, 1000, 50)  # of the samples


def test_these_are_the_models() -> None:
    assert tuple(model_names()) == MODELS
    assert {path.stem for path in EXPECTED.iterdir()} == set(MODELS)


def answers(model: Model) -> dict[str, Any]:
    """What it says of some images: (images, exits) classes, and how sure it is; within a budget, at which exit."""
    images, budget = samples.cifar10().images[IMAGES], 1.5 * model.costs[0]
    found, within = [list(model.anytime(image)) for image in images], model.classify(images, budget=budget)
    return {
        "classes": [[step.name for step in steps] for steps in found],
        "confidences": [[round(step.confidence, 4) for step in steps] for steps in found],
        "thresholds": [round(threshold, 4) for threshold in model.policy(budget).thresholds_[:-1]],
        "within a budget": [[int(k), model.classes[c]] for k, c in zip(within.exits, within.labels, strict=True)],
    }


def right_of_a_thousand(model: Model, cifar100: Path) -> list[int]:
    """Test images that each exit gets right: the package's, or the first of CIFAR-100's."""
    images = samples.cifar10()
    if len(model.classes) == 100:
        found = open_labelled(cifar100, "cifar100", classes=model.classes)
        images = found[:1000]
    return [round(share * len(images.labels)) for share in evaluate(model, images).accuracy]


def expected_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EXPECTED / f"{name}.json").read_text())
    return found


@pytest.mark.parametrize("engine", ["onnx", "torch"])
@pytest.mark.parametrize("name", MODELS)
def test_says_what_it_said_when_it_was_shipped(name: str, engine: Literal["onnx", "torch"]) -> None:
    expected, found = expected_of(name), answers(msdnet.load(name, engine=engine))
    assert found["classes"] == expected["classes"]
    np.testing.assert_allclose(found["confidences"], expected["confidences"], atol=2e-3)
    np.testing.assert_allclose(found["thresholds"], expected["thresholds"], atol=1e-4)
    pairs = zip(found["within a budget"], expected["within a budget"], strict=True)
    assert sum(now != then for now, then in pairs) <= 1, "one image may be at a threshold, on another CPU"


@pytest.mark.parametrize("name", MODELS)
def test_as_many_of_a_thousand_test_images_are_right(name: str, request: pytest.FixtureRequest) -> None:
    cifar100 = request.getfixturevalue("cifar100_root") if name.startswith("cifar100-") else Path()
    right = right_of_a_thousand(msdnet.load(name), cifar100)
    np.testing.assert_allclose(right, expected_of(name)["right of a thousand"], atol=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_gives_the_reported_figures_on_all_test_images(name: str, request: pytest.FixtureRequest) -> None:
    """On the CPU, from the shipped bundle: what its manifest says, and what results/ says of exits and budgets."""
    dataset = name.partition("-")[0]
    model = msdnet.load(name)
    measured = evaluate(
        model, open_labelled(request.getfixturevalue(f"{dataset}_root"), dataset, classes=model.classes)
    )
    recorded = json.loads((RESULTS / f"{dataset}.json").read_text())
    (reported,) = [one for one in recorded["models"] if one["model"] == name]
    told = model.manifest.test
    assert told is not None
    assert measured.images == told.images == reported["images"]
    rounding = 2e-4  # two images of 10,000, on another CPU
    assert measured.accuracy == pytest.approx(told.accuracy, abs=rounding)
    assert measured.accuracy == pytest.approx(reported["accuracy"], abs=rounding)
    for point in reported["points"]:
        found = measured.at(point["budget"], method=point["method"], whole=True)
        assert found.accuracy == pytest.approx(point["accuracy"], abs=rounding)
        assert found.cost == pytest.approx(point["cost"], rel=1e-3)


if __name__ == "__main__":
    EXPECTED.mkdir(exist_ok=True)
    for name in MODELS:
        model = msdnet.load(name)
        known = answers(model) | {"right of a thousand": right_of_a_thousand(model, Path(os.environ["MSDNET_DATA"]))}
        rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in known.items())
        (EXPECTED / f"{name}.json").write_text(f"{{{rows}}}\n")
