"""MSDNet and the systems that the paper compares it with, in both settings (figures 5, 7, 8 and 11)."""

from msdnet.published import published_for
from msdnet.reproduce.experiment import Experiment
from msdnet.reproduce.figure import Curve, Figure, Places, anytime, budgeted, computed, envelope, of_published, sizes
from msdnet.reproduce.subjects import Ensemble, Systems, Trained
from msdnet.training import Recipe

__all__ = ["DENSENET_LAYERS", "RESNET_LAYERS", "anytime_experiment", "budgeted_experiment", "densenet_star_experiment"]

_CLASSES = {"cifar10": 10, "cifar100": 100}
RESNET_LAYERS = (20, 32, 44, 56, 110)
DENSENET_LAYERS = (16, 28, 58, 100)
_SEEDS_OF_IDENTICAL = (1, 2, 3, 4)


class _Systems(Systems):
    """The systems of one data set, all trained by one recipe."""

    def __init__(self, dataset: str, recipe: Recipe) -> None:
        super().__init__(recipe, _CLASSES[dataset])
        # On CIFAR-10 without networks that cost more than MSDNet, and without a second kind of ensembles.
        self.all_of_them = dataset == "cifar100"

    @property
    def anytime_msdnet(self) -> Trained:
        return self.one("cifar_anytime")

    @property
    def batch_msdnets(self) -> tuple[Trained, ...]:
        """Of 10, 15, 21, 28 and 36 layers."""
        return self.each(*(f"cifar_batch_{exits}" for exits in range(4, 9)))

    @property
    def resnets(self) -> tuple[Trained, ...]:
        return self.each(*(f"resnet_{layers}" for layers in RESNET_LAYERS))

    @property
    def densenets(self) -> tuple[Trained, ...]:
        return self.each(*(f"densenet_bc_{layers}_12" for layers in DENSENET_LAYERS))

    @property
    def densenets_star(self) -> tuple[Trained, ...]:
        return self.each(*(f"densenet_star_{layers}_8" for layers in DENSENET_LAYERS))

    @property
    def wide_resnets(self) -> tuple[Trained, ...]:
        return self.one("wide_resnet_16_2"), self.one("wide_resnet_40_2")

    def varying(self, kind: str, members: tuple[Trained, ...]) -> Ensemble:
        """The cheapest first."""
        return Ensemble(f"ensemble_{kind}_varying", members)

    def identical(self, name: str) -> Ensemble:
        """One network from five seeds."""
        first = self.one(name)
        return Ensemble(f"ensemble_{name}", (first, *(first.again(seed) for seed in _SEEDS_OF_IDENTICAL)))

    def ensembles(self, places: Places) -> list[Curve]:
        varying = [
            Curve("ensemble: ResNets, varying", (self.varying("resnets", self.resnets),), places, 1),
            Curve("ensemble: DenseNets, varying", (self.varying("densenets", self.densenets),), places, 2),
        ]
        identical = [
            Curve("ensemble: ResNets, identical", (self.identical("resnet_20"),), places, 1, dashed=True),
            Curve("ensemble: DenseNets, identical", (self.identical("densenet_bc_28_12"),), places, 2, dashed=True),
        ]
        return varying + (identical if self.all_of_them else [])

    def others(self) -> list[Curve]:
        """Single networks of other kinds, most of which cost more than any MSDNet here."""
        return [
            Curve("Wide ResNets", self.wide_resnets, sizes, 3),
            Curve("stochastic depth", (self.one("stochastic_110"),), sizes, 4, kind="dots"),
            Curve("FractalNet", (self.one("fractalnet_20"),), sizes, 5, kind="dots"),
        ]


def anytime_experiment(dataset: str, recipe: Recipe) -> Experiment:
    systems = _Systems(dataset, recipe)
    curves = [
        Curve("MSDNet", (systems.anytime_msdnet,), anytime, 0),
        Curve("MSDNet, lazy", (systems.anytime_msdnet,), computed, 0, dashed=True, marks=False),
        *systems.ensembles(anytime),
        Curve("ResNet-MC", (systems.one("resnet_mc"),), anytime, 3),
        Curve("DenseNet-MC", (systems.one("densenet_mc"),), anytime, 4),
        *([Curve("FractalNet", (systems.one("fractalnet_20"),), anytime, 5)] if systems.all_of_them else []),
        *_published_fractalnet(dataset),
    ]
    title = f"Anytime prediction on {_written(dataset)}"
    return Experiment(f"anytime-{dataset}", title, dataset, (Figure(f"anytime_{dataset}", title, tuple(curves)),))


def budgeted_experiment(dataset: str, recipe: Recipe) -> Experiment:
    systems = _Systems(dataset, recipe)
    title = f"Budgeted batch classification on {_written(dataset)}"
    msdnets = [Curve("MSDNet, each", (one,), budgeted, 0, dashed=True, marks=False) for one in systems.batch_msdnets]
    main = [
        *msdnets,
        Curve("MSDNet, best of held-out", systems.batch_msdnets, envelope, 0),
        Curve("ResNets", systems.resnets, sizes, 1),
        Curve("DenseNets", systems.densenets, sizes, 2),
        *(systems.others() if systems.all_of_them else []),
        *_published_fractalnet(dataset),
        Curve("ResNet-MC, early exits", (systems.one("resnet_mc"),), budgeted, 1, dashed=True),
        Curve("DenseNet-MC, early exits", (systems.one("densenet_mc"),), budgeted, 2, dashed=True),
    ]
    with_ensembles = [
        Curve("MSDNet, best of held-out", systems.batch_msdnets, envelope, 0),
        *systems.ensembles(budgeted),
        Curve("ResNets, single", systems.resnets, sizes, 1, kind="dots"),
        Curve("DenseNets, single", systems.densenets, sizes, 2, kind="dots"),
    ]
    figures = (
        Figure(f"budgeted_{dataset}", title, tuple(main)),
        Figure(f"budgeted_{dataset}_ensembles", f"{title}: ensembles", tuple(with_ensembles)),
    )
    return Experiment(f"budgeted-{dataset}", title, dataset, figures)


def densenet_star_experiment(recipe: Recipe) -> Experiment:
    systems = _Systems("cifar100", recipe)
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
    return Experiment("densenet-star", "DenseNet* beside DenseNet and MSDNet, both settings", "cifar100", figures)


def _published_fractalnet(dataset: str) -> list[Curve]:
    """The paper shows it instead of a FractalNet of its own."""
    curves = published_for(dataset, "single")
    return [Curve(f"{curve.name}, published", (), of_published(curve), 6, kind="dots") for curve in curves]


def _written(dataset: str) -> str:
    return dataset.replace("cifar", "CIFAR-")
