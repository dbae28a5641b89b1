"""Random numbers for networks that draw some as they train."""

import torch
from torch import Tensor

__all__ = ["Chance"]


class Chance:
    """Draws from a generator of its own, once it is given a seed, or else from torch's own numbers.

    So networks that train side by side do not draw from each other's. All is drawn where it is needed: a captured
    graph draws anew each time that it is run. A copy of a network starts without a generator.
    """

    generator: torch.Generator | None = None

    def __deepcopy__(self, _memo: dict[int, object]) -> "Chance":
        return Chance()

    def seed(self, seed: int, device: torch.device) -> None:
        self.generator = torch.Generator(device).manual_seed(seed)

    def uniform(self, *shape: int, device: torch.device) -> Tensor:
        """Between 0 and 1, never 1."""
        return torch.rand(shape, generator=self.generator, device=device)

    def ones(self, share: float, *, like: Tensor) -> Tensor:
        """1 for about that share of the values of a tensor like another, 0 for the others."""
        return torch.empty_like(like).bernoulli_(share, generator=self.generator)

    def whole(self, *shape: int, below: int, device: torch.device) -> Tensor:
        """Whole numbers from 0 on."""
        return torch.randint(below, shape, generator=self.generator, device=device)
