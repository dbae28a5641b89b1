"""Ensembles: networks that are asked one after the other."""

from collections.abc import Hashable

import torch
from torch import Tensor, nn

from msdnet.networks.staged import StagedNetwork, State
from msdnet.systems import EnsembleConfig

__all__ = ["Ensemble"]

_IMAGES, _SUM = "images", "sum"
_LEAST = 1e-30  # added to probabilities, of which a logarithm is taken


class Ensemble(StagedNetwork):
    """Stage k asks member k. Exit k answers with the average of the probabilities of members 1 to k.

    What it gives as logits are logarithms of sums of probabilities: softmax makes the average of them.
    """

    def __init__(self, config: EnsembleConfig, members: list[StagedNetwork]) -> None:
        super().__init__()
        self.config = config
        self.members = nn.ModuleList(members)
        self.exit_count = len(members)
        self.softmax = nn.Softmax(dim=1)

    def start(self, images: Tensor, *, lazy: bool) -> State:
        return State(exits_done=0, maps={_IMAGES: images}, lazy=lazy)

    def advance(self, state: State) -> tuple[Tensor, State]:
        self.check_not_done(state)
        images, done = state.maps[_IMAGES], state.exits_done + 1
        total: Tensor = self.softmax(self._ask(state.exits_done, images, state.lazy))
        if state.exits_done:
            total = state.maps[_SUM] + total
        maps: dict[Hashable, Tensor] = {} if done == self.exit_count else {_IMAGES: images, _SUM: total}
        return torch.log(total + _LEAST), State(done, maps, state.lazy)

    def _ask(self, member: int, images: Tensor, lazy: bool) -> Tensor:
        network = self.members[member]
        assert isinstance(network, StagedNetwork)
        *_, last = network.answers(network.start(images, lazy=lazy))
        return last
