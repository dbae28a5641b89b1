"""Networks in which one map goes from block to block, with a classifier after some of them."""

from collections.abc import Iterable, Sequence

from torch import Tensor, nn

from msdnet.config import NetworkConfig
from msdnet.networks.staged import StagedNetwork, State

__all__ = ["Chain", "cut"]

_MAP = "map"


class Chain(StagedNetwork):
    """Stage k runs its part of the blocks, and its head answers from what comes out of them."""

    def __init__(self, config: NetworkConfig, stages: Iterable[nn.Module], heads: Iterable[nn.Module]) -> None:
        super().__init__()
        self.config = config
        self.stages = nn.ModuleList(stages)
        self.heads = nn.ModuleList(heads)
        self.exit_count = len(self.heads)

    def start(self, images: Tensor, *, lazy: bool) -> State:
        return State(exits_done=0, maps={_MAP: images}, lazy=lazy)

    def advance(self, state: State) -> tuple[Tensor, State]:
        self.check_not_done(state)
        made = self.stages[state.exits_done](state.maps[_MAP])
        logits = self.heads[state.exits_done](made)
        done = state.exits_done + 1
        return logits, State(done, {} if done == self.exit_count else {_MAP: made}, state.lazy)


def cut(blocks: Sequence[nn.Module], after: Sequence[int]) -> list[nn.Sequential]:
    """The blocks in stages: each ends after one of the given blocks, counted from 1, and the last after the last."""
    return [nn.Sequential(*blocks[start:end]) for start, end in zip([0, *after], [*after, len(blocks)], strict=True)]
