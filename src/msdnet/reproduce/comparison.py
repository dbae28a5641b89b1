"""MSDNet and the systems that the paper compares it with, in both settings (figures 5, 7, 8 and 11)."""

from msdnet.amounts import counted
from msdnet.published import published_for
from msdnet.reproduce.experiment import Experiment
from msdnet.reproduce.figure import Curve, Figure, Places, anytime, budgeted, computed, envelope, of_published, sizes
from msdnet.reproduce.subjects import Joint, Systems
from msdnet.training import Recipe

__all__ = [
    "ANYTIME_MSDNET",
    "DENSENETS",
    "DENSENETS_STAR",
    "FRACTALNET",
    "IDENTICAL",
    "MSDNETS",
    "RESNETS",
    "STOCHASTIC",
    "VARYING",
    "VARYING_STAR",
    "WIDE_RESNETS",
    "WITH_CLASSIFIERS",
    "anytime_experiment",
    "budgeted_experiment",
    "densenet_star_experiment",
]

_CLASSES = {"cifar10": 10, "cifar100": 100}

# Names of networks, each kind from the cheapest on.
ANYTIME_MSDNET = "cifar_anytime"
MSDNETS = tuple(f"cifar_batch_{exits}" for exits in range(4, 9))  # of 10, 15, 21, 28 and 36 layers
RESNETS = tuple(f"resnet_{layers}" for layers in (20, 32, 44, 56, 110))
DENSENETS = tuple(f"densenet_bc_{layers}_12" for layers in (16, 28, 58, 100))
DENSENETS_STAR = tuple(f"densenet_star_{layers}_8" for layers in (16, 28, 58, 100))
WIDE_RESNETS = ("wide_resnet_16_2", "wide_resnet_40_2")
WITH_CLASSIFIERS = RESNET_MC, DENSENET_MC = ("resnet_mc", "densenet_mc")
STOCHASTIC, FRACTALNET = "stochastic_110", "fractalnet_20"

# Names of ensembles: of the networks above, and of one from several seeds.
VARYING = ("ensemble_resnets_varying", "ensemble_densenets_varying")
VARYING_STAR = "ensemble_densenets_star_varying"
_IDENTICAL = ("resnet_20", "densenet_bc_28_12")
IDENTICAL = tuple(f"ensemble_{name}" for name in _IDENTICAL)
_SEEDS_OF_IDENTICAL = (0, 1, 2, 3, 4)


class _Systems(Systems):
    """The systems of one data set, all trained by one recipe."""

    def __init__(self, dataset: str, recipe: Recipe) -> None:
        super().__init__(recipe, _CLASSES[dataset])
        self.resnets, self.densenets = self.each(*RESNETS), self.each(*DENSENETS)
        # On CIFAR-10 without other kinds of networks, and without ensembles of identical ones.
        self.all_of_them = dataset == "cifar100"

    @property
    def varying(self) -> tuple[Joint, ...]:
        """The cheapest first."""
        return tuple(map(Joint, VARYING, (self.resnets, self.densenets)))

    @property
    def identical(self) -> tuple[Joint, ...]:
        """One network from five seeds."""
        members = [one.from_seeds(_SEEDS_OF_IDENTICAL) for one in self.each(*_IDENTICAL)]
        return tuple(map(Joint, IDENTICAL, members))

    def ensembles(self, places: Places) -> list[Curve]:
        kinds = ("ResNets", "DenseNets")
        varying = [
            Curve(f"ensemble: {kind}, varying", (one,), places, colour)
            for colour, (kind, one) in enumerate(zip(kinds, self.varying, strict=True), 1)
        ]
        identical = [
            Curve(f"ensemble: {kind}, identical", (one,), places, colour, dashed=True)
            for colour, (kind, one) in enumerate(zip(kinds, self.identical, strict=True), 1)
        ]
        return varying + (identical if self.all_of_them else [])

    def others(self) -> list[Curve]:
        """Single networks of other kinds, most of which cost more than any MSDNet here."""
        return [
            Curve("Wide ResNets", self.each(*WIDE_RESNETS), sizes, 3),
            Curve("stochastic depth", (self.one(STOCHASTIC),), sizes, 4, kind="dots"),
            Curve("FractalNet", (self.one(FRACTALNET),), sizes, 5, kind="dots"),
        ]


def anytime_experiment(dataset: str, recipe: Recipe) -> Experiment:
    systems = _Systems(dataset, recipe)
    curves = [
        Curve("MSDNet", (systems.one(ANYTIME_MSDNET),), anytime, 0),
        Curve("MSDNet, lazy", (systems.one(ANYTIME_MSDNET),), computed, 0, dashed=True, marks=False),
        *systems.ensembles(anytime),
        Curve("ResNet-MC", (systems.one(RESNET_MC),), anytime, 3),
        Curve("DenseNet-MC", (systems.one(DENSENET_MC),), anytime, 4),
    ]
    if systems.all_of_them:
        curves.append(Curve("FractalNet", (systems.one(FRACTALNET),), anytime, 5))
    curves += _published_fractalnet(dataset)
    title = f"Anytime prediction on {_written(dataset)}, {counted(recipe.epochs, 'epoch')}"
    return Experiment(f"anytime-{dataset}", title, dataset, (Figure(f"anytime_{dataset}", title, tuple(curves)),))


def budgeted_experiment(dataset: str, recipe: Recipe) -> Experiment:
    systems = _Systems(dataset, recipe)
    title = f"Budgeted batch classification on {_written(dataset)}, {counted(recipe.epochs, 'epoch')}"
    msdnets = [Curve("MSDNet, each", (one,), budgeted, 0, dashed=True, marks=False) for one in systems.each(*MSDNETS)]
    main = [
        *msdnets,
        Curve("MSDNet, best on held-out", systems.each(*MSDNETS), envelope, 0),
        Curve("ResNets", systems.resnets, sizes, 1),
        Curve("DenseNets", systems.densenets, sizes, 2),
        *(systems.others() if systems.all_of_them else []),
        *_published_fractalnet(dataset),
        Curve("ResNet-MC, early exits", (systems.one(RESNET_MC),), budgeted, 1, dashed=True),
        Curve("DenseNet-MC, early exits", (systems.one(DENSENET_MC),), budgeted, 2, dashed=True),
    ]
    with_ensembles = [
        Curve("MSDNet, best on held-out", systems.each(*MSDNETS), envelope, 0),
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
    _, plain = systems.varying
    star = Joint(VARYING_STAR, systems.each(*DENSENETS_STAR))
    figures = (
        Figure(
            "densenet_star_anytime",
            f"DenseNet*: anytime prediction on CIFAR-100, {counted(recipe.epochs, 'epoch')}",
            (
                Curve("MSDNet", (systems.one(ANYTIME_MSDNET),), anytime, 0),
                Curve("ensemble: DenseNets*, varying", (star,), anytime, 1),
                Curve("ensemble: DenseNets, varying", (plain,), anytime, 2),
            ),
        ),
        Figure(
            "densenet_star_budgeted",
            f"DenseNet*: budgeted batch classification on CIFAR-100, {counted(recipe.epochs, 'epoch')}",
            (
                Curve("MSDNet, best on held-out", systems.each(*MSDNETS), envelope, 0),
                Curve("DenseNets*", systems.each(*DENSENETS_STAR), sizes, 1),
                Curve("DenseNets", systems.densenets, sizes, 2),
                Curve("ensemble: DenseNets*, early exits", (star,), budgeted, 1, dashed=True),
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
