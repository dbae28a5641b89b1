"""How a network is trained: a frozen description, checked where it is made, read from TOML.

Knows no torch: what the words mean in tensors, the other modules of this package say.
"""

import dataclasses
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from msdnet.anytime import Exponential, Samples, Uniform
from msdnet.checks import check_choice, check_flag, check_number, check_whole, keep_checked, numbers
from msdnet.naming import did_you_mean
from msdnet.tables import from_mapping

__all__ = [
    "Augmentation",
    "Distillation",
    "ExitWeights",
    "Loss",
    "Optimiser",
    "Recipe",
    "Schedule",
    "load_recipe",
    "recipe_names",
]


@dataclass(frozen=True, kw_only=True)
class Optimiser:
    """Stochastic gradient descent with momentum."""

    learning_rate: float = 0.1
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 1e-4
    decay_norms_and_biases: bool = True
    """Whether weight decay reaches BN and biases as well."""

    def __post_init__(self) -> None:
        keep_checked(self, check_number, "learning_rate", low=0, above=True)
        keep_checked(self, check_number, "momentum", low=0, high=1, below=True)
        keep_checked(self, check_number, "weight_decay", low=0)
        check_flag("nesterov", self.nesterov)
        check_flag("decay_norms_and_biases", self.decay_norms_and_biases)
        if self.nesterov and self.momentum == 0:
            raise ValueError("momentum must be above 0 with nesterov, got 0")


ScheduleKind = Literal["steps", "cosine", "one_cycle"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How the learning rate moves."""

    kind: ScheduleKind = "steps"
    """Dropped at given epochs; along half a cosine to 0; or in straight lines up over the warm-up and down to 0."""
    warmup_epochs: float = 0
    """The learning rate rises from 0 over so many epochs."""
    drop_epochs: tuple[float, ...] = ()
    drop_factor: float = 0.1

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(ScheduleKind))
        keep_checked(self, check_number, "warmup_epochs", low=0)
        keep_checked(self, check_number, "drop_factor", low=0, high=1, above=True)
        keep_checked(self, numbers, "drop_epochs", low=0)
        if self.drop_epochs and self.kind != "steps":
            raise ValueError(f'drop_epochs belong to the kind "steps", got them with {self.kind!r}')


@dataclass(frozen=True, kw_only=True)
class ExitWeights:
    """The paper's w_k: uniform if nothing is set, given one by one, falling, or derived from a distribution P(B).

    Whichever way, they are scaled to 1 on average.
    """

    given: tuple[float, ...] | None = None
    first: float | None = None
    """How many times the last exit's weight the first one's is; from one to the next they fall by equal ratios."""
    exponential: Exponential | None = None
    uniform: Uniform | None = None
    samples: Samples | None = None

    def __post_init__(self) -> None:
        chosen = [f.name for f in dataclasses.fields(self) if getattr(self, f.name) is not None]
        if len(chosen) > 1:
            raise ValueError(f"exit_weights must be set in one way, got {', '.join(chosen)}")
        if self.given is not None:
            keep_checked(self, numbers, "given", low=0)
        if self.first is not None:
            keep_checked(self, check_number, "first", low=0, above=True)

    @property
    def budgets(self) -> Exponential | Uniform | Samples | None:
        return self.exponential or self.uniform or self.samples


Teacher = Literal["last", "later_half", "network"]


@dataclass(frozen=True, kw_only=True)
class Distillation:
    """Exits learn from the network's own later exits, or from another network, beside the labels."""

    weight: float = 0.0
    """How much the distillation counts beside the cross-entropy; 0 turns it off."""
    temperature: float = 2.0
    teacher: Teacher = "last"
    """The last exit, or the average of the later half of them; or another network, trained before, teaches the later
    half, and they the others: it would be too far ahead of those."""

    def __post_init__(self) -> None:
        keep_checked(self, check_number, "weight", low=0)
        keep_checked(self, check_number, "temperature", low=0, above=True)
        check_choice("teacher", self.teacher, get_args(Teacher))

    @property
    def needs_network(self) -> bool:
        """Whether another network has to be given."""
        return self.weight > 0 and self.teacher == "network"


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What is minimised: the sum over exits of w_k times that exit's loss."""

    exit_weights: ExitWeights = field(default_factory=ExitWeights)
    label_smoothing: float = 0.0
    distillation: Distillation = field(default_factory=Distillation)
    balance_gradients: bool = False
    """Whether gradients that meet at an exit are averaged, so that shared layers see equal magnitudes."""
    boosting: float | None = None
    """An exit learns what those before it leave wrong: the loss is that of the average so far with this power (the
    config's `averaging`), in which the exits before stand as they are. It is what the network then answers with."""

    def __post_init__(self) -> None:
        keep_checked(self, check_number, "label_smoothing", low=0, high=1)
        if self.boosting is not None:
            keep_checked(self, check_number, "boosting", low=0, high=8)
        check_flag("balance_gradients", self.balance_gradients)


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """What is done to training images beside the data's own cropping and mirroring: each to a share of them."""

    distort: float = 0.0
    """Share of the images that get one random distortion of colour or shape, as in TrivialAugment."""
    erase: float = 0.0
    """Share of the images with a rectangle blanked out."""
    mixup: float = 0.0
    """Share of the images blended with another one; labels are mixed in proportion."""
    cutmix: float = 0.0
    """Share of the images into which a rectangle of another one is pasted; labels are mixed in proportion."""
    until: float = 1.0
    """Share of the epochs after which images come as the data give them, to end on what the network is for."""

    def __post_init__(self) -> None:
        keep_checked(self, check_number, "distort", "erase", "mixup", "cutmix", "until", low=0, high=1)
        if self.mixup + self.cutmix > 1:
            raise ValueError(f"mixup and cutmix must be at most 1 together, got {self.mixup} and {self.cutmix}")

    @property
    def mixes(self) -> bool:
        """Whether an image may hold another one, and so have more than one label."""
        return self.mixup + self.cutmix > 0


Selection = Literal["last", "best"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything about a training but the network, the data and the seed."""

    name: str = "custom"
    epochs: int
    batch_size: int
    optimiser: Optimiser = field(default_factory=Optimiser)
    schedule: Schedule = field(default_factory=Schedule)
    loss: Loss = field(default_factory=Loss)
    augmentation: Augmentation = field(default_factory=Augmentation)
    average_decay: float = 0.0
    """Decay per step of an exponential moving average of the weights, which then is the result; 0 turns it off."""
    evaluate_every: int = 1
    """Epochs between evaluations on the held-out images."""
    select: Selection = "last"
    """The result: the weights of the last epoch, or the best on the held-out images (mean accuracy of the exits)."""

    def __post_init__(self) -> None:
        keep_checked(self, check_whole, "epochs", "batch_size", "evaluate_every")
        keep_checked(self, check_number, "average_decay", low=0, high=1, below=True)
        check_choice("select", self.select, get_args(Selection))
        for name, kind in (
            ("optimiser", Optimiser),
            ("schedule", Schedule),
            ("loss", Loss),
            ("augmentation", Augmentation),
        ):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} must be a table of fields, got {getattr(self, name)!r}")
        if self.schedule.warmup_epochs >= self.epochs:
            raise ValueError(f"warmup_epochs must be below the {self.epochs} epochs, got {self.schedule.warmup_epochs}")

    def lasting(self, epochs: int) -> "Recipe":
        """The same recipe over another number of epochs, its warm-up and drops moved in proportion."""
        check_whole("epochs", epochs)
        ratio = epochs / self.epochs
        schedule = dataclasses.replace(
            self.schedule,
            warmup_epochs=self.schedule.warmup_epochs * ratio,
            drop_epochs=tuple(epoch * ratio for epoch in self.schedule.drop_epochs),
        )
        return dataclasses.replace(self, epochs=epochs, schedule=schedule)

    def check_fills_a_batch(self, images: int) -> None:
        """So many training images must be a batch, or there is no step."""
        if images < self.batch_size:
            raise ValueError(
                f"the recipe's batches of {self.batch_size} are more than the {images} training images: batch_size "
                f"(--batch-size) must be at most {images}"
            )

    def changed(self, *, epochs: int | None = None, batch_size: int | None = None) -> "Recipe":
        """Lasting so many epochs, in batches of this size; what is None stays as it is."""
        lasting = self if epochs is None else self.lasting(epochs)
        return lasting if batch_size is None else lasting.in_batches(batch_size)

    def in_batches(self, size: int) -> "Recipe":
        """The same recipe with batches of another size; the learning rate follows in proportion."""
        check_whole("batch_size", size)
        rate = self.optimiser.learning_rate * size / self.batch_size
        return dataclasses.replace(
            self, batch_size=size, optimiser=dataclasses.replace(self.optimiser, learning_rate=rate)
        )


def recipe_names() -> list[str]:
    """The recipes that come with the package."""
    folder = resources.files("msdnet.training") / "recipes"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def load_recipe(name: str | Path) -> Recipe:
    """A recipe of the package by its name, or one's own by the path of its TOML file."""
    if str(name) in recipe_names():
        text = (resources.files("msdnet.training") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
    elif str(name).endswith(".toml"):
        text = _read(Path(name))
    else:
        raise ValueError(f"unknown recipe {str(name)!r}; {did_you_mean(name, recipe_names())} (or a .toml file)")
    try:
        values: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"recipe {name}: {error}") from error
    return from_mapping(Recipe, {"name": Path(name).stem} | values, f"recipe {name}")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"recipe {path}: no such file") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"recipe {path}: not a text file ({error.reason})") from error
