"""The stages of a bundle on ONNX Runtime: numpy in, numpy out, no torch.

All stages are in one session, behind a switch, so that they share one pool of threads. With a session for each, idle
pools would spin on the cores that the busy one needs, or their threads would have to be woken at every stage. (A pool
for the whole process would do as well, but then every other session of the process fails that does not ask for it.)
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from msdnet.bundle import STAGES, Bundle
from msdnet.checks import check_whole
from msdnet.machine import cores
from msdnet.runtime.engine import Array, Engine, Rows, State

__all__ = ["OnnxEngine", "make_session"]

IMAGES, STAGE = "images", "stage"
FEW_ROWS = 4
_NOTHING = np.zeros((1, 1, 1, 1), np.float32)


class OnnxEngine(Engine):
    """Runs on the CPU.

    - threads: by default as many as there are cores
    """

    best_batch = 32

    def __init__(self, bundle: Bundle, *, threads: int | None = None) -> None:
        manifest = bundle.manifest
        super().__init__(manifest.costs, manifest.images, manifest.temperatures)
        self.threads = check_whole("threads", threads) if threads is not None else cores()
        self._session = make_session(bundle.folder / STAGES, self.threads)
        names = json.loads(self._session.get_modelmeta().custom_metadata_map["stages"])
        self._stages = [_Stage(*stage) for stage in names]
        self._places = [value.name for value in self._session.get_inputs()[1:]]
        self._outputs = [value.name for value in self._session.get_outputs()]
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
        stage = self._stages[state.exits_done]
        given = dict.fromkeys(self._places, _NOTHING)
        given.update(zip(self._places, (state.maps[name] for name in stage.inputs), strict=False))
        given[STAGE] = np.array(state.exits_done)
        outputs = self._outputs[: len(stage.outputs)]
        logits, *made = (self._copied if state.rows <= FEW_ROWS else self._bound)(given, outputs)
        maps = dict(state.maps)
        maps.update(zip(stage.outputs[1:], made, strict=True))
        needed = self._needed_after[state.exits_done]
        return logits, State(state.exits_done + 1, state.rows, {name: maps[name] for name in maps if name in needed})

    def _copied(self, given: Mapping[str, Array], outputs: list[str]) -> list[Array]:
        results: list[Array] = self._session.run(outputs, given)
        return results

    def _bound(self, given: Mapping[str, Array], outputs: list[str]) -> list[Array]:
        """Without a copy of what comes out, which for many rows costs more than the preparations."""
        binding = self._session.io_binding()
        for name, value in given.items():
            binding.bind_cpu_input(name, value)
        for name in outputs:
            binding.bind_output(name)
        self._session.run_with_iobinding(binding)
        values = binding.get_outputs()
        return [np.from_dlpack(value) if hasattr(value, "__dlpack__") else value.numpy() for value in values]

    def __repr__(self) -> str:
        return f"OnnxEngine(threads={self.threads})"

    def empty(self, like: Array, rows: int) -> Array:
        return np.empty((rows, *like.shape[1:]), dtype=like.dtype)

    def copy_rows(self, sources: Sequence[Array], rows: Rows, targets: Sequence[Array]) -> None:
        for source, target in zip(sources, targets, strict=True):
            np.take(source, rows, axis=0, out=target, mode="clip")  # "clip" writes straight into the target


class _Stage(NamedTuple):
    """The names of what a stage takes, and of what it gives: logits, then maps."""

    inputs: list[str]
    outputs: list[str]


def make_session(graph: Path, threads: int) -> onnxruntime.InferenceSession:
    """A graph that is ready to run."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors; a warning would be about the machine, at every start
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own kinds, which differ between versions
        raise ValueError(f"{graph}: ONNX Runtime cannot run it ({error})") from error
