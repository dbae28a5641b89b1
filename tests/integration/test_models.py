"""The models of the package say today what they said when they were shipped, and are as good as they say.

`tests/expect/MODEL.json` holds answers to some of the package's images; `python -m tests.integration.test_models`
writes it anew, after a model was changed on purpose.
"""

import json
from pathlib import Path
from typing import Any

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
IMAGES = range(0, 1000, 50)  # of the samples


def answers(model: Model) -> dict[str, Any]:
    """What every exit says of some images: (images, exits) classes, and how sure it is."""
    images = samples.cifar10().images[IMAGES]
    found = [list(model.anytime(image)) for image in images]
    return {
        "classes": [[step.name for step in steps] for steps in found],
        "confidences": [[round(step.confidence, 4) for step in steps] for steps in found],
        "policy": [round(threshold, 4) for threshold in model.policy(0.4 * model.costs[-1]).thresholds_[:-1]],
    }


@pytest.mark.parametrize("name", model_names())
def test_says_what_it_said_when_it_was_shipped(name: str) -> None:
    expected, found = json.loads((EXPECTED / f"{name}.json").read_text()), answers(msdnet.load(name))
    assert found["classes"] == expected["classes"]
    np.testing.assert_allclose(found["confidences"], expected["confidences"], atol=2e-3)
    np.testing.assert_allclose(found["policy"], expected["policy"], atol=1e-4)


@pytest.mark.parametrize("name", model_names())
def test_is_as_good_on_a_thousand_test_images_as_on_all(name: str, request: pytest.FixtureRequest) -> None:
    model = msdnet.load(name)
    told = model.manifest.test
    if name.startswith("cifar10-"):
        images = samples.cifar10()
    else:
        everything = open_labelled(request.getfixturevalue("cifar100_root"), "cifar100", classes=model.classes)
        images = everything._replace(images=everything.images[:1000], labels=everything.labels[:1000])
    assert told is not None
    for share, right in zip(told.accuracy, evaluate(model, images).accuracy, strict=True):
        error = (share * (1 - share) / len(images.labels)) ** 0.5
        assert abs(right - share) < 4 * error


@pytest.mark.slow
@pytest.mark.parametrize("name", model_names())
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
    for name in model_names():
        rows = ",\n".join(
            f"{json.dumps(key)}: {json.dumps(value)}" for key, value in answers(msdnet.load(name)).items()
        )
        (EXPECTED / f"{name}.json").write_text(f"{{{rows}}}\n")
