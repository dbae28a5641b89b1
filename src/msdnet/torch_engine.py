"""The stages of a bundle on PyTorch: on the CPU, or on a GPU where batches come in a few sizes with captured graphs.

A GPU runs a stage of many small kernels faster than Python can launch them one by one, so each stage is captured once
for each of a few batch sizes and then replayed whole. A batch is run in the next larger size: shrinking batches
capture nothing anew. Stages are put into the GPU's queue, and only whoever asks for a result waits for it.
"""

import os
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msdnet.bundle import WEIGHTS, Bundle
from msdnet.checks import check_choice
from msdnet.device import pick_device, side_stream
from msdnet.networks import StagedNetwork, empty_network
from msdnet.networks import State as NetworkState
from msdnet.runtime.engine import Array, Engine, Launched, Rows, State
from msdnet.runtime.forks import call_after_fork
from msdnet.runtime.tensors import read_tensors

__all__ = ["Precision", "TorchEngine", "network_of"]

Precision = Literal["float32", "tf32", "bfloat16"]
Maps: TypeAlias = Mapping[Hashable, Tensor]

# 1, 2, 3, ..., 8, 10, 12, 14, 16, 20, ..., 4096: at most a fifth of a batch is run for nothing.
BUCKETS = sorted({1, 2, 3, *(part * 2**k for k in range(10) for part in (4, 5, 6, 7)), 4096})


_CAPTURING = threading.Lock()  # torch can capture one graph at a time in a process
_SETTING = threading.Lock()  # cuDNN's settings are the whole process's: of two who change them, both must put them back


class TorchEngine(Engine):
    """Runs on the device that torch has.

    - device: cpu, cuda, cuda:1, ...; by default a GPU if there is one
    - precision: of the arithmetic; the weights are in full precision. tf32 is of GPUs alone
    """

    def __init__(self, bundle: Bundle, *, device: str | None = None, precision: Precision = "float32") -> None:
        manifest = bundle.manifest
        super().__init__(manifest.costs, manifest.images, manifest.temperatures)
        check_choice("precision", precision, get_args(Precision))
        self.device = pick_device(device)
        if precision == "tf32" and self.device.type != "cuda":
            raise ValueError(f"precision tf32 is of NVIDIA GPUs; {self.device} has float32 and bfloat16")
        self.precision = precision
        self.best_batch = 32 if self.device.type == "cpu" else 1024
        self.ahead = 1 if self.device.type == "cuda" else 0
        self.network: StagedNetwork = network_of(bundle).to(self.device)
        # Tensor cores want the channels last; full precision does not run on them, and is far slower that way.
        self._channels_last = self.device.type == "cuda" and precision != "float32"
        if self._channels_last:
            self.network = self.network.to(memory_format=torch.channels_last)
        scale = 1 / torch.tensor(manifest.images.std, device=self.device)
        shift = -torch.tensor(manifest.images.mean, device=self.device) * scale
        self._scale, self._shift = scale.view(1, -1, 1, 1), shift.view(1, -1, 1, 1)
        self._graphs: dict[tuple[int, int], _Graph] = {}
        self._process = os.getpid()
        self._make_lock()
        call_after_fork(self._make_lock)
        self._pool = torch.cuda.graph_pool_handle() if self.device.type == "cuda" else None
        self._last_run: torch.cuda.Event | None = None

    def _make_lock(self) -> None:
        self._alone = threading.Lock()  # a graph's memory is for one run at a time

    @property
    def options(self) -> dict[str, Any]:
        return {"device": str(self.device), "precision": self.precision}

    def __repr__(self) -> str:
        return f"TorchEngine(device={str(self.device)!r}, precision={self.precision!r})"

    def __str__(self) -> str:
        return f"PyTorch, {self.device}, {self.precision}"

    @torch.inference_mode()
    def begin(self, images: NDArray[Any]) -> State:
        if os.getpid() != self._process and torch.get_num_threads() > 1:  # which a fork does not copy: it would hang
            raise RuntimeError(
                "a forked process cannot use its parent's model on PyTorch: load it there anew, start processes by "
                "spawn, or call torch.set_num_threads(1) in it"
            )
        # (N, H, W, C) in memory is the "channels last" layout of (N, C, H, W). Where another is wanted, bytes are moved
        # sooner than the numbers that become of them.
        with self._here():
            pixels = self._given(np.require(images, requirements=["C", "W"])).permute(0, 3, 1, 2)
            scale = self._scale / 255 if pixels.dtype == torch.uint8 else self._scale
            pixels = pixels if self._channels_last else pixels.contiguous()
            normalised = torch.addcmul(self._shift, pixels.float(), scale)
            state = self.network.begin(normalised)
        return State(0, len(images), state.maps)

    @torch.inference_mode()
    def logits(self, state: State) -> tuple[NDArray[np.float32], State]:
        with self._alone, self._here():
            logits, after = self._run(state)
            fetched = self._fetch(logits)
        return fetched(), after

    @torch.inference_mode()
    def launch(self, state: State) -> Launched:
        self.check_not_done(state)
        with self._alone, self._here():
            logits, after = self._run(state)
            fetched = self._fetch(torch.softmax(logits / self.temperatures[state.exits_done], dim=1))
        return lambda: (fetched(), after)

    def _here(self) -> AbstractContextManager[Any]:
        """Streams and graphs are those of the device that torch has at hand, which need not be this one."""
        return nullcontext() if self._pool is None else torch.cuda.device(self.device)

    def _given(self, values: NDArray[Any]) -> Tensor:
        """On the device. A GPU takes them when it comes to it, from a copy that it can reach: nobody waits for it."""
        tensor = torch.from_numpy(values)
        if self._pool is None:
            return tensor.to(self.device)
        return tensor.pin_memory().to(self.device, non_blocking=True)

    def _fetch(self, values: Tensor) -> Callable[[], NDArray[np.float32]]:
        """Have values sent to where numpy reads them. Called, it waits until they, and all before them, are there."""
        if self._pool is None:
            return values.cpu().numpy
        landing = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
        landing.copy_(values, non_blocking=True)
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record(torch.cuda.current_stream(self.device))
        self._last_run = arrived

        def wait() -> NDArray[np.float32]:
            arrived.synchronize()
            return landing.numpy().copy()  # memory that the GPU can reach is dear: it is used again

        return wait

    def _run(self, state: State) -> tuple[Tensor, State]:
        bucket = next((size for size in BUCKETS if size >= state.rows), None)
        if self._pool is None or bucket is None or not state.rows:
            logits, maps = self._stage(state.exits_done, state.maps)
        else:
            logits, maps = self._replay(state, bucket)
        return logits.float(), State(state.exits_done + 1, state.rows, maps)

    def empty(self, like: Array, rows: int) -> Array:
        """In the layout of the map."""
        layout = torch.channels_last if self._channels_last and like.ndim == 4 else torch.contiguous_format
        return torch.empty((rows, *like.shape[1:]), dtype=like.dtype, device=like.device, memory_format=layout)

    @torch.inference_mode()
    def copy_rows(self, sources: Sequence[Array], rows: Rows, targets: Sequence[Array]) -> None:
        with self._here():
            chosen = self._given(rows.astype(np.int64, copy=False))
            for source, target in zip(sources, targets, strict=True):
                target.copy_(source.index_select(0, chosen))

    def _stage(self, exits_done: int, maps: Maps) -> tuple[Tensor, Maps]:
        with self._arithmetic():
            logits, after = self.network.advance(NetworkState(exits_done, maps))
        return logits, after.maps

    def _replay(self, state: State, bucket: int) -> tuple[Tensor, Maps]:
        if self._last_run is not None:  # graphs share memory, and another thread may have a queue of its own
            torch.cuda.current_stream(self.device).wait_event(self._last_run)
        key = (state.exits_done, bucket)
        if key not in self._graphs:
            with _CAPTURING:
                self._graphs[key] = self._capture(state, bucket)
        graph = self._graphs[key]
        for name, space in graph.inputs.items():
            space[: state.rows].copy_(state.maps[name])
        graph.cuda.replay()
        # A state is its owner's: the graph's own memory is written again when the stage runs next.
        return graph.logits[: state.rows], {name: made[: state.rows].clone() for name, made in graph.maps.items()}

    def _capture(self, state: State, bucket: int) -> "_Graph":
        inputs = {name: self.empty(given, bucket).zero_() for name, given in state.maps.items()}
        aside = side_stream(self.device, "stages")
        assert aside is not None
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # kernels are chosen in a first run, which must not be captured
            self._stage(state.exits_done, inputs)
        torch.cuda.current_stream().wait_stream(aside)
        cuda = torch.cuda.CUDAGraph()
        # On a stream of this device, since torch's own for captures is of whichever device captured first; and so that
        # other threads may go on with their work.
        with torch.cuda.graph(cuda, pool=self._pool, stream=aside, capture_error_mode="thread_local"):
            logits, maps = self._stage(state.exits_done, inputs)
        return _Graph(cuda, inputs, logits, maps)

    @contextmanager
    def _arithmetic(self) -> Iterator[None]:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            if self.device.type != "cuda":
                yield
                return
            exact = self.precision == "float32"
            flags = torch.backends.cudnn.flags(enabled=True, allow_tf32=not exact, benchmark=True, benchmark_limit=3)
            with _SETTING, flags:
                yield


@dataclass(frozen=True, eq=False)
class _Graph:
    """A stage captured for one size of batch, and the memory that it reads and writes."""

    cuda: torch.cuda.CUDAGraph
    inputs: Maps
    logits: Tensor
    maps: Maps


def network_of(bundle: Bundle) -> StagedNetwork:
    """The bundle's network, in evaluation mode."""
    network = empty_network(bundle.manifest.network).eval()
    weights = {name: torch.from_numpy(value) for name, value in read_tensors(bundle, WEIGHTS).items()}
    counters = {name for name in network.state_dict() if name.endswith("num_batches_tracked")}
    wrong = network.state_dict().keys() - counters ^ weights.keys()
    if wrong:
        raise ValueError(
            f"{bundle.folder / WEIGHTS}: not the network's weights ({sorted(wrong)[0]} is missing or extra)"
        )
    network.load_state_dict(weights, strict=False)
    return network
