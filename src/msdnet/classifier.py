"""A network with many exits as scikit-learn knows classifiers: images in an array, labels of any kind, `fit`.

Training needs torch, which is imported when `fit` is called. What was trained runs on ONNX Runtime, also in another
process, on another machine: a pickled classifier carries its bundle.
"""

import os
import shutil
import signal
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any, Self
from weakref import finalize

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_is_fitted

from msdnet.amounts import Amount, parse_budget
from msdnet.bundle import Bundle
from msdnet.checks import check_flag, check_number, check_whole
from msdnet.config import NetworkConfig
from msdnet.extras import needed_for
from msdnet.files import hold_out_by_class
from msdnet.pixels import check_pixels
from msdnet.policy.outcomes import check_budget
from msdnet.presets import network_config
from msdnet.runtime import Model, OnnxEngine, Result
from msdnet.writing import new_folder

if TYPE_CHECKING:
    from msdnet.data import ImageData
    from msdnet.training import Recipe

__all__ = ["MSDNetClassifier"]

LEAST_BATCH = 2  # BN takes the variance of its batch
SMALL_BATCH = 8  # where a tenth of the training images is even less


class MSDNetClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """A classifier of images that spends a budget where the images need it.

    - network: the name of a preset, or a config. `cifar_small` takes images from 9 pixels on; for photos of more than
      64 there is `imagenet_4`
    - recipe: how it is trained: a name, the path of a TOML file, or a `Recipe`
    - epochs, batch_size: instead of the recipe's. The learning rate follows the batch size in proportion. By default,
      a batch is a tenth of the training images (at least 8) where the recipe's is more than that
    - held_out: share of the images of each class that are not trained on; thresholds for budgets are found on them.
      At least one of each class is trained on
    - mirror: whether training images are mirrored at random; not for letters and digits
    - budget: multiply-adds per image on average (`20e6`, `"20M"`, `"30%"`), for `predict`, `predict_proba` and `score`
      unless they are given another; by default all images go to the last exit
    - random_state: the same whole number gives the same network, on a CPU to the last bit
    - device: to train on, `cpu` or `cuda`; by default a GPU if there is one
    - threads: to predict with; by default one for each core. Give 1 where scikit-learn runs several fits at once
    - verbose: 1 shows how the training goes

    After `fit`:

    - classes_: the labels, sorted
    - costs_: multiply-adds to reach each exit
    - held_out_accuracy_: of each exit
    - image_shape_: height, width and channels of the training images
    - model_: an `msdnet.runtime.Model`, for exits, costs and times of a prediction, deadlines, images that keep coming

    >>> import numpy as np
    >>> from msdnet import MSDNetClassifier, MSDNetConfig
    >>> y = np.array(["dark", "light"] * 40)
    >>> noise = np.random.default_rng(0).integers(0, 100, (80, 12, 12, 3))
    >>> X = (noise + 100 * (y == "light")[:, None, None, None]).astype(np.uint8)

    >>> tiny = MSDNetConfig(exits=(1, 2), scales=2, channel_factors=(1, 2), bottleneck_factors=(1, 2), head_width=8)
    >>> classifier = MSDNetClassifier(tiny, epochs=10, device="cpu", random_state=0).fit(X, y)
    >>> classifier.predict(X[:4]).tolist()
    ['dark', 'light', 'dark', 'light']

    >>> first, last = classifier.costs_
    >>> classifier.score(X, y, budget=(first + last) / 2) > 0.9
    True
    """

    def __init__(
        self,
        network: str | NetworkConfig = "cifar_small",
        *,
        recipe: "str | Path | Recipe" = "fast",
        epochs: int | None = None,
        batch_size: int | None = None,
        held_out: float = 0.1,
        mirror: bool = True,
        budget: Amount | None = None,
        random_state: int | RandomState | None = None,
        device: str | None = None,
        threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.network = network
        self.recipe = recipe
        self.epochs = epochs
        self.batch_size = batch_size
        self.held_out = held_out
        self.mirror = mirror
        self.budget = budget
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train on images and their labels.

        - X: (n, height, width, channels), square, with 1 or 3 channels; or (n, height, width), grey. Bytes (uint8), or
          floating-point numbers from 0 to 1
        - y: (n), labels of any kind that can be sorted
        """
        images, labels = _images(X), _labels(y)
        check_consistent_length(images, labels)
        self._check_shape(images.shape[1:])
        classes, numbers = np.unique(labels, return_inverse=True)
        self._check_numbers(len(images), classes)
        files = self._train(images, numbers, classes)
        self._serve(files)  # the last that can go wrong: until then it is what it was
        self._files, self.classes_ = files, classes
        self.image_shape_: tuple[int, ...] = images.shape[1:]
        return self

    def predict(self, X: ArrayLike, *, budget: Amount | None = None, seconds: Amount | None = None) -> NDArray[Any]:
        """The labels (n) of images.

        - X: as for `fit`; bytes of another size are resized as pictures are
        - budget: multiply-adds per image on average; seconds: average time per image, as measured on this machine
        """
        labels: NDArray[Any] = self._classify(X, budget, seconds).labels
        answers: NDArray[Any] = self.classes_[labels]
        return answers

    def predict_proba(
        self, X: ArrayLike, *, budget: Amount | None = None, seconds: Amount | None = None
    ) -> NDArray[np.floating]:
        """(n, classes), in the order of `classes_`: of the exit where each image left. Otherwise as `predict`."""
        probabilities = self._classify(X, budget, seconds, probabilities=True).probabilities
        assert probabilities is not None
        return probabilities

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        budget: Amount | None = None,
        seconds: Amount | None = None,
    ) -> float:
        """The share of the images whose label is predicted. Otherwise as `predict`."""
        return float(accuracy_score(y, self.predict(X, budget=budget, seconds=seconds), sample_weight=sample_weight))

    def save(self, path: str | Path) -> None:
        """Write the bundle into a new folder, for `msdnet.load` and `msdnet classify`. Its classes are texts."""
        check_is_fitted(self)
        with new_folder(Path(path)) as folder:
            _write(self._files, folder)

    def _train(self, images: NDArray[Any], numbers: NDArray[np.integer], classes: NDArray[Any]) -> dict[str, bytes]:
        """The files of the bundle that training brings."""
        with needed_for("MSDNetClassifier.fit"):
            from msdnet.data import ArrayData
            from msdnet.device import pick_device
        self._check_budget(images.shape[1:], len(classes))
        seed = self._seed()
        data = ArrayData(
            images,
            numbers,
            [str(label) for label in classes],
            held_out=self._held_out(numbers, len(classes), seed),
            held_out_seed=seed,
            device=pick_device(self.device),
            mirror=self.mirror,
        )
        return _bundle(data, self._recipe(data.size("train")), self.network, seed, self.device, bool(self.verbose))

    def _held_out(self, numbers: NDArray[np.integer], classes: int, seed: int) -> tuple[int, ...]:
        """The places of the images that are not trained on: of each class its share, but never all."""
        images, count = len(numbers), max(1, round(self.held_out * len(numbers)))
        if count > images - classes:
            raise ValueError(
                f"held_out must leave each of {classes} classes an image to train on, got {self.held_out}, which is "
                f"{count} of {images} images: give more images or a smaller share"
            )
        return hold_out_by_class(numbers.tolist(), count, seed)

    def _recipe(self, images: int) -> "Recipe":
        """For so many training images."""
        from msdnet.training import Recipe, load_recipe

        recipe = self.recipe if isinstance(self.recipe, Recipe) else load_recipe(self.recipe)
        small = min(images, max(SMALL_BATCH, images // 10))
        rows = min(recipe.batch_size, small) if self.batch_size is None else self.batch_size
        return recipe.changed(epochs=self.epochs, batch_size=rows)

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return check_whole("random_state", self.random_state, at_least=0)
        return int(check_random_state(self.random_state).randint(2**31))

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        """Of an image."""
        height, width, channels = shape
        if channels not in (1, 3):
            raise ValueError(f"X must have 1 or 3 channels, and have them last, got images of the shape {shape}")
        if height != width:
            raise ValueError(f"X must be square images, got {height} x {width} pixels: crop or pad them")
        least = network_config(self.network).smallest_side
        if height < least:
            raise ValueError(f"X must be images of at least {least} pixels a side for this network, got {height}")

    def _check_numbers(self, images: int, classes: NDArray[Any]) -> None:
        if len(classes) < 2:
            raise ValueError(f"y must have at least two classes, got one class, {classes.tolist()[0]!r}")
        if images < 2 * len(classes):
            needed = f"{2 * len(classes)} for {len(classes)} classes"
            raise ValueError(f"X must have at least two images for each class, so {needed}, got {images}")
        check_number("held_out", self.held_out, low=0, high=1, above=True, below=True)
        check_flag("mirror", self.mirror)
        if self.batch_size is not None:
            check_whole("batch_size", self.batch_size, at_least=LEAST_BATCH)
        if self.threads is not None:
            check_whole("threads", self.threads)

    def _check_budget(self, shape: tuple[int, ...], classes: int) -> None:
        """What cannot be kept is better told before the training."""
        if self.budget is None:
            return
        from msdnet.networks import outline

        side, _, channels = shape
        costs = outline(self.network, classes=classes, input_channels=channels).costs(side)
        if isinstance(self.budget, str):
            parse_budget(self.budget, costs[0], costs[-1])
        else:
            check_budget(self.budget, np.array(costs))

    def _classify(
        self, X: ArrayLike, budget: Amount | None, seconds: Amount | None, *, probabilities: bool = False
    ) -> Result:
        check_is_fitted(self)
        if budget is None and seconds is None:
            budget = self.budget
        if self.threads != self._threads:  # they were set anew
            self._serve(self._files)
        return self.model_.classify(_images(X), budget=budget, seconds=seconds, probabilities=probabilities)

    def _serve(self, files: dict[str, bytes]) -> None:
        """Put the bundle on ONNX Runtime; its folder is there for as long as anyone has the bundle."""
        scratch = mkdtemp(prefix="msdnet-")
        try:
            _write(files, Path(scratch))
            bundle = Bundle(scratch)
            bundle.check()
            model = Model(bundle, OnnxEngine(bundle, threads=self.threads))
        except BaseException:
            _remove(scratch, os.getpid())
            raise
        finalize(bundle, _remove, scratch, os.getpid())
        self.model_, self._threads = model, self.threads
        held_out = bundle.manifest.held_out
        assert held_out is not None
        self.costs_, self.held_out_accuracy_ = self.model_.costs, held_out.accuracy

    def __getstate__(self) -> dict[str, Any]:
        """Without the model, which is made anew from the files of its bundle."""
        return {name: value for name, value in super().__getstate__().items() if name != "model_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_files"):
            self._serve(self._files)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True  # grey images; for those of colour, of four dimensions, there is no tag
        tags.input_tags.positive_only = True
        return tags


def _images(X: ArrayLike) -> NDArray[Any]:
    """(n, height, width, channels), bytes or numbers from 0 to 1."""
    images: NDArray[Any] = check_array(X, ensure_2d=False, allow_nd=True, input_name="X")
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4:
        raise ValueError(
            "X must be images of the shape (n, height, width, channels), or (n, height, width) where they are grey, "
            f"got the shape {images.shape}; X.reshape(-1, height, width, channels) makes images of rows of pixels"
        )
    check_pixels("X", images)
    return images


def _labels(y: ArrayLike) -> NDArray[Any]:
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def _bundle(
    data: "ImageData", recipe: "Recipe", network: str | NetworkConfig, seed: int, device: str | None, shown: bool
) -> dict[str, bytes]:
    """Train in a folder that is gone afterwards; the files of the bundle by their names."""
    import torch

    from msdnet.device import pick_device
    from msdnet.export import export_run
    from msdnet.training import Interrupted, train
    from msdnet.training.display import Display

    trains_on = pick_device(device)
    try:
        # A training sets torch's random numbers; those of whoever calls go on as if nothing had been.
        with (
            torch.random.fork_rng([trains_on] if trains_on.type == "cuda" else []),
            TemporaryDirectory(prefix="msdnet-") as scratch,
        ):
            run, display = Path(scratch, "run"), None if shown else Display()
            train(recipe, data=data, network=network, out=run, seed=seed, device=device, display=display)
            bundle = export_run(run, Path(scratch, "classifier"), data=data, device=device)
            return {file.name: file.read_bytes() for file in bundle.folder.iterdir()}
    except Interrupted as stopped:
        signal.raise_signal(stopped.signal_number)  # the run is gone: nothing but the signal is left to tell of
        raise


def _remove(folder: str, process: int) -> None:
    """What a process has made is not for its children, which a fork gives the same objects."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content)
