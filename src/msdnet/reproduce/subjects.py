"""What an experiment measures: networks that are trained for it, and ensembles of these."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from msdnet.config import NetworkConfig
from msdnet.presets import network_config
from msdnet.systems import EnsembleConfig
from msdnet.training import Recipe

__all__ = ["Joint", "Subject", "Systems", "Trained", "seeded", "trained_for"]


@dataclass(frozen=True)
class Trained:
    """A network, and how it is trained."""

    name: str
    """Also of its run's folder and of its result's file."""
    network: NetworkConfig
    recipe: Recipe
    seed: int = 0

    def from_seeds(self, seeds: Sequence[int]) -> tuple["Trained", ...]:
        """The same network, drawn and trained several times."""
        names = seeded(self.name, seeds)
        return tuple(replace(self, name=name, seed=seed) for name, seed in zip(names, seeds, strict=True))


def seeded(name: str, seeds: Sequence[int]) -> tuple[str, ...]:
    """What a network is called that is trained from several seeds: with the first, 0, just its name."""
    return tuple(f"{name}_seed{seed}" if seed else name for seed in seeds)


@dataclass(frozen=True)
class Joint:
    """Networks that were trained one by one and are asked one after the other."""

    name: str
    members: tuple[Trained, ...]

    @property
    def network(self) -> EnsembleConfig:
        return EnsembleConfig(
            members=tuple(member.network for member in self.members), classes=self.members[0].network.classes
        )

    @property
    def recipe(self) -> Recipe:
        return self.members[0].recipe


Subject: TypeAlias = Trained | Joint


def trained_for(subject: Subject) -> tuple[Trained, ...]:
    """The networks that have to be trained before it can be measured."""
    return subject.members if isinstance(subject, Joint) else (subject,)


class Systems:
    """The networks of one data set by their names, all trained by one recipe."""

    def __init__(self, recipe: Recipe, classes: int) -> None:
        self.recipe, self.classes = recipe, classes

    def one(self, name: str) -> Trained:
        return Trained(name, network_config(name, classes=self.classes), self.recipe)

    def each(self, *names: str) -> tuple[Trained, ...]:
        return tuple(map(self.one, names))
