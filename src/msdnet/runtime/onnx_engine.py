"""The stages of a bundle on ONNX Runtime: numpy in, numpy out, no torch.

Each stage has its own pool of threads. By ONNX Runtime's default idle pools spin on the cores that the busy one needs,
which makes seven stages three times slower than one graph; here they stop with the run. (One pool for the whole
process would do as well, but then every other session in the process fails that does not ask for it.)
"""

import os
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from msdnet.bundle import WEIGHTS, Bundle, stage_file
from msdnet.checks import check_whole
from msdnet.runtime.engine import Array, Engine, Rows, State

__all__ = ["OnnxEngine", "cores", "make_session"]

IMAGES = "images"
FEW_ROWS = 4


class OnnxEngine(Engine):
    """Runs on the CPU.

    - threads: by default as many as there are cores
    """

    best_batch = 32

    def __init__(self, bundle: Bundle, *, threads: int | None = None) -> None:
        manifest = bundle.manifest
        super().__init__(manifest.costs, manifest.images, manifest.temperatures)
        self.threads = check_whole("threads", threads) if threads is not None else cores()
        bundle.check(WEIGHTS)  # which the stages read
        self._stages = [_Stage(bundle.check(stage_file(exit)), self.threads) for exit in range(manifest.exit_count)]
        # What must be kept after a stage: whatever a later one reads.
        later: set[str] = set()
        self._needed_after: list[frozenset[str]] = []
        for stage in reversed(self._stages):
            self._needed_after.insert(0, frozenset(later))
            later.update(stage.inputs)
        std, mean = (np.array(values, np.float32) for values in (manifest.images.std, manifest.images.mean))
        self._scale, self._shift = (1 / std).reshape(-1, 1, 1), (-mean / std).reshape(-1, 1, 1)

    def begin(self, images: NDArray[Any]) -> State:
        pixels = images.transpose(0, 3, 1, 2)
        scale = self._scale / np.float32(255) if pixels.dtype == np.uint8 else self._scale
        normalised = np.ascontiguousarray(pixels * scale + self._shift, dtype=np.float32)
        return State(0, len(images), {IMAGES: normalised})

    def logits(self, state: State) -> tuple[NDArray[np.float32], State]:
        logits, made = self._stages[state.exits_done].run(state.maps, state.rows)
        maps = dict(state.maps)
        maps.update(made)
        needed = self._needed_after[state.exits_done]
        return logits, State(state.exits_done + 1, state.rows, {name: maps[name] for name in maps if name in needed})

    def __repr__(self) -> str:
        return f"OnnxEngine(threads={self.threads})"

    def empty(self, like: Array, rows: int) -> Array:
        return np.empty((rows, *like.shape[1:]), dtype=like.dtype)

    def copy_rows(self, source: Array, rows: Rows, target: Array) -> None:
        np.take(source, rows, axis=0, out=target, mode="clip")  # "clip" writes straight into the target


class _Stage:
    def __init__(self, graph: Path, threads: int) -> None:
        self._session = make_session(graph, threads)
        self.inputs = [value.name for value in self._session.get_inputs()]
        self.outputs = [value.name for value in self._session.get_outputs()]

    def run(self, maps: Mapping[Hashable, Array], rows: int) -> tuple[NDArray[np.float32], dict[str, Array]]:
        """The logits, and the maps that it made."""
        given = {name: maps[name] for name in self.inputs}
        logits, *made = self._copied(given) if rows <= FEW_ROWS else self._bound(given)
        return logits, dict(zip(self.outputs[1:], made, strict=True))

    def _copied(self, given: Mapping[str, Array]) -> list[Array]:
        outputs: list[Array] = self._session.run(self.outputs, given)
        return outputs

    def _bound(self, given: Mapping[str, Array]) -> list[Array]:
        """Without a copy of what comes out, which for many rows costs more than the preparations."""
        binding = self._session.io_binding()
        for name, value in given.items():
            binding.bind_cpu_input(name, value)
        for name in self.outputs:
            binding.bind_output(name)
        self._session.run_with_iobinding(binding)
        return [np.from_dlpack(value) for value in binding.get_outputs()]


def make_session(graph: Path, threads: int) -> onnxruntime.InferenceSession:
    """A graph that is ready to run."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors; a warning would be about the machine, at every start
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own kinds, which differ between versions
        raise ValueError(f"{graph}: ONNX Runtime cannot run it ({error})") from error


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
