"""The scikit-learn estimator: scikit-learn's own checks, and what images and budgets add to them."""

import errno
import gc
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data

import msdnet
from msdnet import MSDNetClassifier, MSDNetConfig
from msdnet.bundle import WEIGHTS
from msdnet.extras import install
from msdnet.runtime import Result
from msdnet.training import Interrupted
from tests.helpers import TINY, in_a_child

# A fit takes half a second, most of it for the export.
SMALLEST = MSDNetConfig(
    exits=(1,),
    scales=1,
    channel_factors=(1,),
    bottleneck_factors=(1,),
    head_width=4,
    growth=2,
    seed_channels=2,
)


def quick(**parameters: Any) -> MSDNetClassifier:
    defaults: dict[str, Any] = {"network": SMALLEST, "epochs": 1, "device": "cpu", "random_state": 0}
    return MSDNetClassifier(**defaults | parameters)


def squares(count: int = 96, side: int = 12, channels: int = 3) -> tuple[NDArray[np.uint8], NDArray[np.str_]]:
    """Noise with more of one colour (where they are grey, all are alike), and the names of the colours."""
    colours = np.arange(count) % 3
    noise = np.random.default_rng(0).integers(0, 120, (count, side, side, channels))
    brighter = 100 * np.eye(3, dtype=int)[colours][:, None, None, :channels]
    return (noise + brighter).astype(np.uint8), np.array(["red", "green", "blue"])[colours]


@pytest.fixture(scope="module")
def fitted() -> MSDNetClassifier:
    return MSDNetClassifier(TINY, epochs=8, held_out=0.25, device="cpu", random_state=0).fit(*squares())


# scikit-learn's own checks


class RowsAsImages(MSDNetClassifier):
    """What scikit-learn checks with: rows of features, here made images of 5 x 5 grey pixels.

    What is no finite number is left to be refused.
    """

    def fit(self, X: Any, y: Any) -> "RowsAsImages":
        super().fit(self._as_images(X, reset=True), y)
        return self

    def _classify(self, X: Any, *arguments: Any, **options: Any) -> Result:
        check_is_fitted(self)
        return super()._classify(self._as_images(X, reset=False), *arguments, **options)

    def _as_images(self, X: Any, reset: bool) -> NDArray[np.floating]:
        rows = validate_data(self, X, reset=reset, dtype=float, ensure_all_finite=False)
        pixels = np.where(np.isfinite(rows), 1 / (1 + np.exp(-np.clip(rows, -50, 50))), rows)
        images: NDArray[np.floating] = pixels[:, np.arange(25) % rows.shape[1]].reshape(-1, 5, 5)
        return images

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = True, False
        tags.input_tags.positive_only = False
        tags.classifier_tags.poor_score = True  # after one epoch
        return tags


ROWS = RowsAsImages(SMALLEST, epochs=1, mirror=False, device="cpu", random_state=0)


@pytest.mark.parametrize(
    "check",
    [check for _, check in estimator_checks_generator(ROWS, mark="skip")],
    ids=lambda check: check.func.__name__,
)
def test_scikit_learns_checks(check: Any) -> None:
    """Each raises where it finds something wrong."""
    check(clone(ROWS))


def test_tags_say_that_it_takes_images_and_so_scikit_learn_checks_no_rows() -> None:
    tags = get_tags(MSDNetClassifier())
    assert not tags.input_tags.two_d_array
    assert tags.input_tags.three_d_array
    assert tags.estimator_type == "classifier"
    with pytest.warns(UserWarning, match="Can't test estimator"):
        names = [check.func.__name__ for _, check in estimator_checks_generator(MSDNetClassifier())]
    assert names == ["check_estimator_cloneable"]


def test_notebooks_show_it(fitted: MSDNetClassifier) -> None:
    assert repr(MSDNetClassifier(epochs=3)) == "MSDNetClassifier(epochs=3)"
    assert "MSDNetClassifier" in fitted._repr_html_()


def test_works_in_pipelines_and_cross_validation() -> None:
    X, y = squares(30, side=6)
    pipeline = make_pipeline(FunctionTransformer(lambda images: images / 255), quick())
    assert cross_val_score(pipeline, X, y, cv=2).shape == (2,)


# What it learns, and what a budget does


def test_learns(fitted: MSDNetClassifier) -> None:
    X, y = squares()
    assert fitted.score(X, y) > 0.9
    assert fitted.score(X, y, sample_weight=np.where(fitted.predict(X) == y, 1, 0)) == 1
    assert fitted.classes_.tolist() == ["blue", "green", "red"]
    assert fitted.image_shape_ == (12, 12, 3)
    assert fitted.costs_ == fitted.model_.costs
    assert len(fitted.held_out_accuracy_) == 3
    assert fitted.model_.manifest.held_out is not None
    assert fitted.model_.manifest.held_out.images == 24


def test_probabilities_are_of_the_classes_in_order(fitted: MSDNetClassifier) -> None:
    X, _ = squares()
    for options in ({}, {"budget": 1.5 * fitted.costs_[0]}, {"seconds": 1.0}):
        probabilities = fitted.predict_proba(X, **options)
        assert probabilities.shape == (96, 3)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
        if "seconds" not in options:  # what is measured anew may differ a little
            np.testing.assert_array_equal(fitted.classes_[probabilities.argmax(axis=1)], fitted.predict(X, **options))


def test_a_budget_is_that_of_the_call_or_else_its_own(fitted: MSDNetClassifier) -> None:
    X, y = squares()
    first, *_, last = fitted.costs_
    cheap = fitted.model_.classify(X, budget=first, probabilities=True).probabilities
    full = fitted.model_.classify(X, probabilities=True).probabilities
    assert cheap is not None
    assert full is not None
    assert not np.allclose(cheap, full)
    np.testing.assert_array_equal(fitted.predict_proba(X, budget=first), cheap)
    np.testing.assert_array_equal(fitted.predict_proba(X), full)
    own = pickle.loads(pickle.dumps(fitted)).set_params(budget=first)
    np.testing.assert_array_equal(own.predict_proba(X), cheap)
    assert own.score(X, y) == fitted.score(X, y, budget=first)
    own.predict(X, budget=last)
    own.predict(X, seconds=1.0)  # instead of its own budget, not beside it
    with pytest.raises(ValueError, match="budget must be at least"):
        fitted.predict(X, budget=first / 2)


@pytest.mark.parametrize("labels", [[7, -2, 30], [True, False, True], ["b", "a", "c"], [1.0, 2.0, 4.0]], ids=str)
def test_labels_may_be_of_any_kind(labels: list[Any]) -> None:
    X, _ = squares(24, side=6)
    y = np.array(labels)[np.arange(24) % 3]
    classifier = quick().fit(X, y)
    np.testing.assert_array_equal(classifier.classes_, np.unique(y))
    answers = classifier.predict(X)
    assert answers.dtype == y.dtype
    assert set(answers) <= set(labels)


def test_grey_images_need_no_channels(fitted: MSDNetClassifier) -> None:
    X, y = squares(24, side=6, channels=1)
    classifier = quick().fit(X[..., 0], y)
    assert classifier.image_shape_ == (6, 6, 1)
    assert classifier._files == quick().fit(X, y)._files
    np.testing.assert_array_equal(classifier.predict_proba(X[..., 0]), classifier.predict_proba(X))
    with pytest.raises(ValueError, match="images must have 3 channels"):
        fitted.predict(X)


def test_bytes_and_numbers_are_the_same_images(fitted: MSDNetClassifier) -> None:
    X, _ = squares()
    np.testing.assert_allclose(fitted.predict_proba(X / 255), fitted.predict_proba(X), atol=1e-4)


def test_bytes_of_another_size_are_resized_and_numbers_are_refused(fitted: MSDNetClassifier) -> None:
    X, y = squares()
    larger = X.repeat(2, axis=1).repeat(2, axis=2)
    assert (fitted.predict(larger) == fitted.predict(X)).mean() > 0.9
    with pytest.raises(ValueError, match=r"floating-point images must have the network's size \(12, 12, 3\)"):
        fitted.score(larger / 255, y)


def test_a_batch_is_a_tenth_of_few_images_and_the_learning_rate_follows() -> None:
    X, y = squares(111, side=6)
    recipe = quick().fit(X, y).model_.manifest.provenance["recipe"]
    assert (recipe["epochs"], recipe["batch_size"]) == (1, 10)  # 100 are left to train on
    assert recipe["optimiser"]["learning_rate"] == pytest.approx(0.4 * 10 / 512)


def test_the_callers_random_numbers_go_on_as_if_nothing_had_been() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    quick().fit(*squares(24, side=6))
    assert torch.equal(torch.rand(3), expected)


def test_predicts_with_as_many_threads_as_it_is_given() -> None:
    X, y = squares(24, side=6)
    classifier = quick(threads=1).fit(X, y)
    assert repr(classifier.model_.engine) == "OnnxEngine(threads=1)"
    classifier.set_params(threads=2).predict(X)
    assert repr(classifier.model_.engine) == "OnnxEngine(threads=2)"
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"):
        classifier.set_params(threads=0).predict(X)


# Copies of it


def test_the_same_random_state_gives_the_same_network() -> None:
    X, y = squares(24, side=6)
    first = quick().fit(X, y)
    assert first._files == clone(first).fit(X, y)._files
    assert first._files != quick(random_state=np.random.RandomState(1)).fit(X, y)._files


def test_the_bundle_of_the_model_is_there_as_long_as_the_model(fitted: MSDNetClassifier) -> None:
    own = pickle.loads(pickle.dumps(fitted))
    assert own.model_.bundle.folder != fitted.model_.bundle.folder
    model = own.model_
    del own
    gc.collect()
    model.bundle.check()
    assert msdnet.load(model.bundle.folder).classes == model.classes
    folder = model.bundle.folder
    del model
    gc.collect()
    assert not folder.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_leaves_its_parents_bundle_alone(fitted: MSDNetClassifier) -> None:
    own = pickle.loads(pickle.dumps(fitted))

    def let_go() -> None:
        nonlocal own
        del own
        gc.collect()

    assert in_a_child(let_go)
    assert own.model_.bundle.folder.is_dir()
    assert msdnet.load(own.model_.bundle.folder).classes == own.model_.classes


def test_a_pickled_one_predicts_without_torch(fitted: MSDNetClassifier, tmp_path: Path) -> None:
    (tmp_path / "fitted.pickle").write_bytes(pickle.dumps(fitted))
    X, _ = squares()
    np.save(tmp_path / "X.npy", X)
    script = f"""
import pickle, sys
import numpy as np
from pathlib import Path

class NoTorch:  # scikit-learn takes what is in sys.modules for installed, even nothing
    def find_spec(self, name, *_):
        if name == "torch":
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, NoTorch())
folder = Path({str(tmp_path)!r})
fitted = pickle.loads((folder / "fitted.pickle").read_bytes())
X = np.load(folder / "X.npy")
np.save(folder / "answers.npy", fitted.predict_proba(X))
try:
    fitted.fit(X, fitted.predict(X))
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"MSDNetClassifier.fit needs torch: {install('train')}\n"
    np.testing.assert_allclose(np.load(tmp_path / "answers.npy"), fitted.predict_proba(X), atol=1e-5)


def test_saves_its_bundle(fitted: MSDNetClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "bundles/squares")
    X, _ = squares()
    result = msdnet.load(tmp_path / "bundles/squares").classify(X)
    assert result.names == fitted.predict(X).tolist()
    with pytest.raises(FileExistsError, match="is there already"):
        fitted.save(tmp_path / "bundles/squares")


def test_a_full_disk_leaves_no_half_of_a_bundle(
    fitted: MSDNetClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_bytes

    def nearly_full(path: Path, content: bytes) -> int:
        if path.name == WEIGHTS:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", nearly_full)
    with pytest.raises(OSError, match="No space left"):
        fitted.save(tmp_path / "squares")
    assert list(tmp_path.iterdir()) == []


def test_the_package_imports_without_scikit_learn_and_says_what_to_install() -> None:
    script = """
import inspect, pydoc, sys
import msdnet
assert "sklearn" not in sys.modules and "torch" not in sys.modules

class NoScikitLearn:
    def find_spec(self, name, *_):
        if name == "sklearn":
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, NoScikitLearn())
from msdnet import *
from msdnet import MSDNetClassifier
assert "MSDNetClassifier" in dict(inspect.getmembers(msdnet)) and hasattr(msdnet, "MSDNetClassifier")
assert "needs scikit-learn" in MSDNetClassifier.__doc__
pydoc.render_doc(msdnet)
try:
    MSDNetClassifier(epochs=3)
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"MSDNetClassifier needs scikit-learn: {install('sklearn')}\n"
    with pytest.raises(AttributeError, match="module 'msdnet' has no attribute 'MSDNetRegressor'"):
        _ = msdnet.MSDNetRegressor


# What goes wrong


def test_predicts_nothing_before_fit(tmp_path: Path) -> None:
    X, y = squares(6)
    new = MSDNetClassifier()
    for method, arguments in (("predict", (X,)), ("predict_proba", (X,)), ("score", (X, y)), ("save", (tmp_path,))):
        with pytest.raises(NotFittedError):
            getattr(new, method)(*arguments)


IMAGES, LABELS = squares(24, side=6)


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (IMAGES.reshape(24, -1), LABELS, ValueError, r"X must be images of the shape .*, got the shape \(24, 108\)"),
        (IMAGES[None], LABELS[:1], ValueError, r"X must be images of the shape .*, got the shape \(1, 24, 6, 6, 3\)"),
        (IMAGES[:, :5], LABELS, ValueError, "X must be square images, got 5 x 6 pixels"),
        (IMAGES[:, :2, :2], LABELS, ValueError, "at least 3 pixels a side for this network, got 2"),
        (IMAGES.transpose(0, 3, 1, 2), LABELS, ValueError, r"1 or 3 channels, and have them last, got .* \(3, 6, 6\)"),
        (IMAGES[..., :2], LABELS, ValueError, r"X must have 1 or 3 channels, .* \(6, 6, 2\)"),
        (IMAGES.astype(int), LABELS, TypeError, r"X must be bytes \(uint8\) or floating-point .*, got int64"),
        (IMAGES / 1, LABELS, ValueError, "floating-point X must be from 0 to 1, got 0 to 219"),
        (np.where(IMAGES > 99, np.nan, 0.5), LABELS, ValueError, "Input X contains NaN"),
        (IMAGES[:0], LABELS[:0], ValueError, "0 sample"),
        (IMAGES, LABELS[:-1], ValueError, "inconsistent numbers of samples"),
        (IMAGES, np.linspace(0, 1, 24), ValueError, "Unknown label type"),
        (IMAGES, np.full(24, "same"), ValueError, "y must have at least two classes, got one class, 'same'"),
        (IMAGES[:5], LABELS[:5], ValueError, "two images for each class, so 6 for 3 classes, got 5"),
    ],
)
def test_refuses_images_and_labels(X: Any, y: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        quick().fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"network": "cifar_tiny"}, ValueError, "unknown network 'cifar_tiny'"),
        ({"recipe": "slow"}, ValueError, "unknown recipe 'slow'"),
        ({"epochs": 0}, ValueError, "epochs must be at least 1, got 0"),
        ({"batch_size": 1}, ValueError, "batch_size must be at least 2, got 1"),
        ({"batch_size": 23}, ValueError, "batches of 23 are more than the 22 training images: batch_size"),
        ({"held_out": 0.9}, ValueError, "each of 3 classes an image to train on, got 0.9, which is 22 of 24 images"),
        ({"held_out": 1.0}, ValueError, "held_out must be above 0 and below 1, got 1.0"),
        ({"mirror": "no"}, TypeError, "mirror must be true or false, got 'no'"),
        ({"random_state": -1}, ValueError, "random_state must be at least 0, got -1"),
        ({"threads": 0}, ValueError, "threads must be at least 1, got 0"),
        ({"budget": "abc"}, ValueError, "a budget must be written like 20M, 1.5G or 30%, got 'abc'"),
        ({"budget": "1%"}, ValueError, "a budget must be at least"),
        ({"budget": -3}, ValueError, "budget must be at least .*, got -3"),
        ({"budget": True}, TypeError, "budget must be a number"),
        ({"device": "abacus"}, ValueError, "device must be cpu, cuda or cuda:N, got 'abacus'"),
    ],
)
def test_refuses_parameters_when_it_is_fitted(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        quick(**parameters).fit(IMAGES, LABELS)


@pytest.mark.parametrize("random_state", range(5))
def test_a_rare_class_is_trained_on_whatever_the_random_state(random_state: int, monkeypatch: Any) -> None:
    seen = []
    monkeypatch.setattr("msdnet.classifier._bundle", lambda data, *_: seen.append(data))
    monkeypatch.setattr(MSDNetClassifier, "_serve", lambda *_: None)
    y = [*["a"] * 11, *["b"] * 12, "c"]
    quick(random_state=random_state, held_out=0.25).fit(IMAGES, y)
    held_out = [y[place] for place in seen[0].held_out_indices]
    assert [held_out.count(label) for label in "abc"] == [3, 3, 0]


def test_a_refused_fit_leaves_it_as_it_was(fitted: MSDNetClassifier) -> None:
    before = dict(vars(fitted))
    with pytest.raises(ValueError, match="at least two classes"):
        fitted.fit(IMAGES, np.zeros(24))
    assert vars(fitted) == before


def test_a_fit_that_fails_at_its_very_end_leaves_it_as_it_was(
    fitted: MSDNetClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dict(vars(fitted))

    def full(**_: str) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("msdnet.classifier.mkdtemp", full)
    with pytest.raises(OSError, match="No space left"):
        fitted.fit(IMAGES, np.where(LABELS[0] == LABELS, "ape", "zebra"))
    assert vars(fitted) == before


def test_interrupted_as_anything_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise Interrupted("go on with: msdnet train --resume", signal.SIGINT)

    monkeypatch.setattr("msdnet.training.train", stopped)
    with pytest.raises(KeyboardInterrupt):
        quick().fit(IMAGES, LABELS)


def test_shows_its_training_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    quick().fit(IMAGES, LABELS)
    assert capsys.readouterr().out == ""
    quick(verbose=1).fit(IMAGES, LABELS)
    assert "epoch 1/1" in capsys.readouterr().out
