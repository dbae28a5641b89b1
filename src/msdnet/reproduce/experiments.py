"""The paper's experiments: which systems each compares, and the figures that it draws.

A system is declared once, by the curve that it makes in a figure; what must be trained follows from that.
"""

from collections.abc import Callable
from dataclasses import dataclass

from msdnet.naming import did_you_mean
from msdnet.presets import network_config
from msdnet.published import published_for
from msdnet.reproduce.figure import Curve, Figure, Places, anytime, budgeted, computed, envelope, of_published, sizes
from msdnet.reproduce.subjects import Ensemble, Subject, Trained
from msdnet.training import Recipe, load_recipe

__all__ = ["EXPERIMENTS", "Experiment", "find_experiment"]

_CLASSES = {"cifar10": 10, "cifar100": 100}
_RESNETS = (20, 32, 44, 56, 110)
_DENSENETS = (16, 28, 58, 100)
_SEEDS_OF_IDENTICAL = (1, 2, 3, 4)


@dataclass(frozen=True)
class Experiment:
    """Something that the paper shows."""

    name: str
    title: str
    dataset: str
    figures: tuple[Figure, ...]

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Everything that is to be measured."""
        return tuple(dict.fromkeys(subject for figure in self.figures for subject in figure.subjects))


class _Systems:
    """The systems of one data set, all trained by one recipe."""

    def __init__(self, dataset: str, recipe: Recipe) -> None:
        self.dataset, self.recipe = dataset, recipe

    def one(self, name: str) -> Trained:
        return Trained(name, network_config(name, classes=_CLASSES[self.dataset]), self.recipe)

    @property
    def anytime_msdnet(self) -> Trained:
        return self.one("cifar_anytime")

    @property
    def batch_msdnets(self) -> tuple[Trained, ...]:
        """Of 10, 15, 21, 28 and 36 layers."""
        return tuple(self.one(f"cifar_batch_{exits}") for exits in range(4, 9))

    @property
    def resnets(self) -> tuple[Trained, ...]:
        return tuple(self.one(f"resnet_{layers}") for layers in _RESNETS)

    @property
    def densenets(self) -> tuple[Trained, ...]:
        return tuple(self.one(f"densenet_bc_{layers}_12") for layers in _DENSENETS)

    @property
    def densenets_star(self) -> tuple[Trained, ...]:
        return tuple(self.one(f"densenet_star_{layers}_8") for layers in _DENSENETS)

    @property
    def wide_resnets(self) -> tuple[Trained, ...]:
        return self.one("wide_resnet_16_4"), self.one("wide_resnet_40_4")

    def varying(self, kind: str, members: tuple[Trained, ...]) -> Ensemble:
        """The cheapest first."""
        return Ensemble(f"ensemble_{kind}_varying", members)

    def identical(self, name: str) -> Ensemble:
        """One network from five seeds."""
        first = self.one(name)
        return Ensemble(f"ensemble_{name}", (first, *(first.again(seed) for seed in _SEEDS_OF_IDENTICAL)))

    def ensembles(self, places: Places) -> tuple[Curve, ...]:
        """Curves of the four ensembles."""
        return (
            Curve("ensemble: ResNets, varying", (self.varying("resnets", self.resnets),), places, 1),
            Curve("ensemble: ResNets, identical", (self.identical("resnet_20"),), places, 1, dashed=True),
            Curve("ensemble: DenseNets, varying", (self.varying("densenets", self.densenets),), places, 2),
            Curve("ensemble: DenseNets, identical", (self.identical("densenet_bc_28_12"),), places, 2, dashed=True),
        )


def _anytime(dataset: str, recipe: Recipe) -> Experiment:
    systems = _Systems(dataset, recipe)
    curves = [
        Curve("MSDNet", (systems.anytime_msdnet,), anytime, 0),
        Curve("MSDNet, lazy", (systems.anytime_msdnet,), computed, 0, dashed=True, marks=False),
        *systems.ensembles(anytime),
        Curve("ResNet-MC", (systems.one("resnet_mc"),), anytime, 3),
        Curve("DenseNet-MC", (systems.one("densenet_mc"),), anytime, 4),
        Curve("FractalNet", (systems.one("fractalnet_20"),), anytime, 5),
        *_published_fractalnet(dataset),
    ]
    title = f"Anytime prediction on {_written(dataset)}"
    return Experiment(f"anytime-{dataset}", title, dataset, (Figure(f"anytime_{dataset}", title, tuple(curves)),))


def _budgeted(dataset: str, recipe: Recipe) -> Experiment:
    systems = _Systems(dataset, recipe)
    title = f"Budgeted batch classification on {_written(dataset)}"
    msdnets = [Curve("MSDNet, each", (one,), budgeted, 6, marks=False) for one in systems.batch_msdnets]
    main = [
        *msdnets,
        Curve("MSDNet, best of held-out", systems.batch_msdnets, envelope, 0),
        Curve("ResNets", systems.resnets, sizes, 1),
        Curve("DenseNets", systems.densenets, sizes, 2),
        Curve("Wide ResNets", systems.wide_resnets, sizes, 3),
        Curve("stochastic depth", (systems.one("stochastic_110"),), sizes, 4, kind="dots"),
        Curve("FractalNet", (systems.one("fractalnet_20"),), sizes, 5, kind="dots"),
        *_published_fractalnet(dataset),
        Curve("ResNet-MC, early exits", (systems.one("resnet_mc"),), budgeted, 1, dashed=True),
        Curve("DenseNet-MC, early exits", (systems.one("densenet_mc"),), budgeted, 2, dashed=True),
    ]
    with_ensembles = [
        Curve("MSDNet, best of held-out", systems.batch_msdnets, envelope, 0),
        *systems.ensembles(budgeted),
        Curve("ResNets, single", systems.resnets, sizes, 3, kind="dots"),
        Curve("DenseNets, single", systems.densenets, sizes, 4, kind="dots"),
    ]
    figures = (
        Figure(f"budgeted_{dataset}", title, tuple(main)),
        Figure(f"budgeted_{dataset}_ensembles", f"{title}: ensembles", tuple(with_ensembles)),
    )
    return Experiment(f"budgeted-{dataset}", title, dataset, figures)


def _densenet_star(dataset: str, recipe: Recipe) -> Experiment:
    systems = _Systems(dataset, recipe)
    plain, star = (
        systems.varying("densenets", systems.densenets),
        systems.varying("densenets_star", systems.densenets_star),
    )
    figures = (
        Figure(
            "densenet_star_anytime",
            "DenseNet*: anytime prediction on CIFAR-100",
            (
                Curve("MSDNet", (systems.anytime_msdnet,), anytime, 0),
                Curve("ensemble: DenseNets*, varying", (star,), anytime, 1),
                Curve("ensemble: DenseNets, varying", (plain,), anytime, 2),
            ),
        ),
        Figure(
            "densenet_star_budgeted",
            "DenseNet*: budgeted batch classification on CIFAR-100",
            (
                Curve("MSDNet, best of held-out", systems.batch_msdnets, envelope, 0),
                Curve("DenseNets*", systems.densenets_star, sizes, 1),
                Curve("DenseNets", systems.densenets, sizes, 2),
            ),
        ),
    )
    return Experiment("densenet-star", "DenseNet* beside DenseNet and MSDNet, both settings", dataset, figures)


def _published_fractalnet(dataset: str) -> list[Curve]:
    """Which is what the paper shows."""
    curves = published_for(dataset, "single")
    return [Curve(f"{curve.name}, published", (), of_published(curve), 6, kind="dots") for curve in curves]


def _written(dataset: str) -> str:
    return dataset.replace("cifar", "CIFAR-")


EXPERIMENTS: dict[str, Callable[[Recipe], Experiment]] = {
    "anytime-cifar100": lambda recipe: _anytime("cifar100", recipe),
    "budgeted-cifar100": lambda recipe: _budgeted("cifar100", recipe),
    "densenet-star": lambda recipe: _densenet_star("cifar100", recipe),
}


def find_experiment(name: str, *, epochs: int | None = None) -> Experiment:
    """An experiment by its name; with other epochs than its own, results do not mix with those of the others."""
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; {did_you_mean(name, EXPERIMENTS)}")
    recipe = load_recipe("compare")
    return EXPERIMENTS[name](recipe if epochs is None else recipe.lasting(epochs))
