"""One step of training: forward, loss, backward, optimiser, averaging, and what is counted on the way.

`Step` runs anywhere; `GraphedStep` replays the same step as one CUDA graph, since the many small kernels of
such a network otherwise wait for the processor that launches them; `CompiledStep` runs kernels that torch.compile makes
for a processor. Knows nothing of epochs or files.
"""

import copy
from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from msdnet.data.base import Batch
from msdnet.device import side_stream, training_precision
from msdnet.networks import MSDNet, StagedNetwork
from msdnet.networks.padded import padded
from msdnet.training.loss import BalancedExits, boosted, exit_weights, is_readable, training_loss
from msdnet.training.recipe import Optimiser, Recipe
from msdnet.training.streams import ScalesSideBySide

__all__ = ["CompiledStep", "GraphedStep", "Step"]


class Step:
    """Trains a network, already on its device, by one batch at a time.

    What was counted stays on the device until it is asked for: `loss` is that of the last step; `correct`
    are the right answers at each exit and `seen` the images since they were last set to zero. The network's tensors may
    become views of others, which are trained: it is to be read, not moved or given other ones.
    """

    def __init__(
        self,
        network: StagedNetwork,
        recipe: Recipe,
        image_size: tuple[int, int],
        *,
        teacher: StagedNetwork | None = None,
        distributed: bool = False,
        precision: torch.dtype | None = None,
    ) -> None:
        self.network = network
        if (teacher is not None) != recipe.loss.distillation.needs_network:
            raise ValueError(f"recipe {recipe.name} learns from {'another' if teacher is None else 'no other'} network")
        self._teacher = None if teacher is None else _Teacher(teacher)
        self.recipe = recipe
        self.device = next(network.parameters()).device
        self._precision = precision or training_precision(self.device)
        weights = exit_weights(recipe.loss.exit_weights, network.costs(image_size))
        self._weights = torch.tensor(weights, device=self.device)
        self._rate = torch.zeros((), device=self.device)
        self._shares = _boosting_shares(network, recipe)
        self.average = copy.deepcopy(network).requires_grad_(False) if recipe.average_decay else None
        self._balanced = BalancedExits(network) if recipe.loss.balance_gradients else None
        self._runner = self._quickest(self._balanced or network)
        self.optimiser = torch.optim.SGD(
            _parameter_groups(self._runner, recipe.optimiser),
            lr=self._rate,
            momentum=recipe.optimiser.momentum,
            nesterov=recipe.optimiser.nesterov,
            fused=True,
        )
        if network.chance is not None:
            network.chance.seed(int(torch.randint(2**62, ())), self.device)
        self._steps = torch.zeros((), dtype=torch.long, device=self.device)
        self.loss = torch.zeros((), device=self.device)
        self.correct = torch.zeros(network.exit_count, dtype=torch.long, device=self.device)
        self.seen = torch.zeros((), dtype=torch.long, device=self.device)
        self._forward = DistributedDataParallel(self._runner) if distributed else self._runner

    @property
    def result(self) -> StagedNetwork:
        """The network that this training is about: the average where one is kept."""
        return self.network if self.average is None else self.average

    def __call__(self, batch: Batch, learning_rate: float) -> None:
        self._rate.fill_(learning_rate)
        self._compute(batch)

    def state(self) -> dict[str, Tensor]:
        """Every tensor that steps change, by name."""
        tensors = {f"network/{name}": tensor for name, tensor in self.network.state_dict().items()}
        tensors["steps"] = self._steps
        if self.average is not None:
            tensors |= {f"average/{name}": tensor for name, tensor in self.average.state_dict().items()}
        pairs = zip(self.network.named_parameters(), self._runner.parameters(), strict=True)
        for (name, parameter), trained in pairs:
            if parameter.data_ptr() != trained.data_ptr():
                raise RuntimeError(
                    f"{name} is no longer what is trained: the network was moved, or given other tensors"
                )
            # Without momentum so far it is zero, which is how SGD starts.
            momentum = self.optimiser.state[trained].setdefault("momentum_buffer", torch.zeros_like(trained))
            tensors[f"momentum/{name}"] = momentum[tuple(map(slice, parameter.shape))]  # that may be padded
        return tensors

    @property
    def random_numbers(self) -> torch.Generator | None:
        """Where a network that draws as it trains draws from."""
        return None if self.network.chance is None else self.network.chance.generator

    @torch.no_grad()
    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """For a step that has not diverged: what a twin's maps are filled up with is no part of a state."""
        for name, tensor in self.state().items():
            tensor.copy_(tensors[name])

    def _share_of_newest(self) -> Tensor:
        """How far the average moves towards the newest weights: further at first, to leave the initial ones behind."""
        return (9 / (10 + self._steps)).clamp(min=1 - self.recipe.average_decay)

    def _quickest(self, network: nn.Module) -> nn.Module:
        """The form of the network that trains quickest here; its parameters are the network's, in the same order."""
        # A class derived from MSDNet may do with its maps what it likes.
        if type(network) is MSDNet and self._precision == torch.bfloat16:
            return padded(network)
        return network

    def _compute(self, batch: Batch) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._precision == torch.bfloat16):
            if self._teacher is not None:
                self._teacher.ask(batch.images)
            logits = torch.stack(self._forward(batch.images))
        if self._shares is not None:
            logits = boosted(logits.float(), self._shares)
        taught = None if self._teacher is None else self._teacher.answer()
        loss = training_loss(logits, batch.labels, self._weights, self.recipe.loss, taught)
        loss.backward()  # type: ignore[no-untyped-call]
        if self._balanced is not None:
            self._balanced.restore_heads()
        self.optimiser.step()
        if self.average is not None:
            _move(self.average, self.network, self._share_of_newest())
        self._steps += 1
        self.loss.copy_(loss.detach())
        readable = is_readable(batch.labels)
        # Of a mixed image, the class that has most of it.
        labels = batch.labels if batch.labels.ndim == 1 else batch.labels.argmax(dim=1)
        self.correct += ((logits.detach().argmax(dim=2) == labels) & readable).sum(dim=1)
        self.seen += readable.sum()


class GraphedStep(Step):
    """The same step captured in one CUDA graph; a batch of another size than the first runs without it."""

    _warmup_steps = 3
    _graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, batch: Batch, learning_rate: float) -> None:
        if self._graph is None:
            self._capture(batch)
            assert self._graph is not None
        if batch.images.shape != self._static.images.shape:
            super().__call__(batch, learning_rate)
            return
        self._rate.fill_(learning_rate)
        self._static.images.copy_(batch.images)
        self._static.labels.copy_(batch.labels)
        self._graph.replay()

    def _quickest(self, network: nn.Module) -> nn.Module:
        quick = super()._quickest(network)
        return ScalesSideBySide(quick) if isinstance(quick, MSDNet) else quick

    def _capture(self, batch: Batch) -> None:
        """Take a few steps, in which libraries choose their kernels, take them back, and record one."""
        self._static = Batch(batch.images.clone(), batch.labels.clone())
        changing = self.state() | {"loss": self.loss, "correct": self.correct, "seen": self.seen}
        before = {name: tensor.clone() for name, tensor in changing.items()}
        random_state = None if self.random_numbers is None else self.random_numbers.get_state()
        aside = side_stream(self.device, "capture")
        assert aside is not None
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(self._warmup_steps):
                self._compute(self._static)
        torch.cuda.current_stream().wait_stream(aside)
        self.optimiser.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        if self.random_numbers is not None:
            graph.register_generator_state(self.random_numbers)
        # Other threads, such as one that pins the next batch's memory, may go on with their own work.
        with torch.cuda.graph(graph, stream=aside, capture_error_mode="thread_local"):
            self._compute(self._static)
        with torch.no_grad():
            for name, tensor in changing.items():
                tensor.copy_(before[name])
        if self.random_numbers is not None and random_state is not None:
            self.random_numbers.set_state(random_state)
        self._graph = graph


class CompiledStep(Step):
    """The same step by kernels that are made for this network and this batch size, which takes a minute or two.

    On a processor BN, ReLU and concatenation take longer than convolutions: each reads and writes whole maps, which
    compiled kernels do once for several of them. Not for networks that draw at random: each draw would part them.
    """

    _networks = 256
    """Of one process: torch leaves the ninth uncompiled, taking it for the first with ever new options."""

    def _quickest(self, network: nn.Module) -> nn.Module:
        torch._dynamo.config.recompile_limit = self._networks
        try:  # what is missing is better told now, and in one line
            torch.compile(torch.neg)(torch.ones(1))
        except Exception as error:
            why, *_ = str(error).splitlines() or [type(error).__name__]
            raise ValueError(f"MSDNET_KERNELS=compiled: torch.compile does not work here ({why})") from error
        return cast(nn.Module, torch.compile(network, dynamic=False))  # one batch size: another is compiled anew


class _Teacher:
    """A trained network that is asked about the images of a step; on a GPU, while its student looks at them."""

    def __init__(self, network: StagedNetwork) -> None:
        self._network = network.eval().requires_grad_(False)
        self._stream = side_stream(next(network.parameters()).device, "teacher")

    def ask(self, images: Tensor) -> None:
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(self._stream):
            self._logits: Tensor = self._network(images)[-1]

    def answer(self) -> Tensor:
        """The logits (N, classes) of its last exit."""
        if self._stream is not None:
            torch.cuda.current_stream().wait_stream(self._stream)
        return self._logits


def _boosting_shares(network: StagedNetwork, recipe: Recipe) -> tuple[float, ...] | None:
    """What share its own logits have in an exit's answer, where exits learn to put right those before them."""
    power = recipe.loss.boosting
    if power is None:
        return None
    if not isinstance(network, MSDNet) or network.config.averaging != power:
        raise ValueError(f"recipe {recipe.name} boosts exits that answer with averages of power {power}")
    return network.config.exit_shares


def _parameter_groups(network: nn.Module, optimiser: Optimiser) -> list[dict[str, object]]:
    """The weights of convolutions and linear layers, and the rest, which may go without weight decay."""
    weights = [parameter for parameter in network.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in network.parameters() if parameter.ndim <= 1]
    other_decay = optimiser.weight_decay if optimiser.decay_norms_and_biases else 0.0
    return [
        {"params": weights, "weight_decay": optimiser.weight_decay},
        {"params": others, "weight_decay": other_decay},
    ]


@torch.no_grad()
def _move(average: nn.Module, network: nn.Module, share: Tensor) -> None:
    """Move an average a little towards the network: weights and BN statistics alike."""
    pairs = zip(average.state_dict().values(), network.state_dict().values(), strict=True)
    # Views of wider tensors are packed first: if a single one is not, a GPU takes all tensors one by one.
    alike = ((a, b if b.stride() == a.stride() else torch.empty_like(a).copy_(b)) for a, b in pairs)
    ours, theirs = zip(*((a, b) for a, b in alike if a.is_floating_point()), strict=True)
    way = torch._foreach_sub(theirs, ours)
    torch._foreach_mul_(way, share)
    torch._foreach_add_(ours, way)
