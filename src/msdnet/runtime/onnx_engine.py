"""The stages of a bundle on ONNX Runtime: numpy in, numpy out, no torch.

All stages are in one session, behind a switch, so that they share one pool of threads. With a session for each, idle
pools would spin on the cores that the busy one needs, or their threads would have to be woken at every stage. (A pool
for the whole process would do as well, but then every other session of the process fails that does not ask for it.)

One image alone takes so little time that preparing a run and copying what comes out would be felt. It goes through a
chain: space for all that the stages make of an image, bound to them once.
"""

import ctypes
import json
import os
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # or it writes an identity into the home folder, and calls home

import onnxruntime

from msdnet.amounts import counted
from msdnet.bundle import IMAGES, STAGE, STAGE_NAMES, STAGES, Bundle
from msdnet.checks import check_whole
from msdnet.machine import cores
from msdnet.runtime.engine import Array, Engine, Rows, State
from msdnet.runtime.forks import call_after_fork

__all__ = ["OnnxEngine", "make_session"]

FEW_ROWS = 4
CHAINS = 4  # for images that are under way at the same time, each alone; any more do without one


class OnnxEngine(Engine):
    """Runs on the CPU.

    - threads: by default as many as there are cores
    """

    best_batch = 32

    _opened: onnxruntime.InferenceSession | None
    _chains: list["_Chain"]

    def __init__(self, bundle: Bundle, *, threads: int | None = None) -> None:
        manifest = bundle.manifest
        super().__init__(manifest.costs, manifest.images, manifest.temperatures)
        self._asked = threads
        self.threads = check_whole("threads", threads) if threads is not None else cores()
        self._bundle, self._process = bundle, os.getpid()
        self._forget_session()
        names = json.loads(self._session.get_modelmeta().custom_metadata_map[STAGE_NAMES])
        self._stages = [_Stage(*stage) for stage in names]
        self._nothing = {
            place.name: np.zeros([1] * len(place.shape), np.float32)
            for place in self._session.get_inputs()
            if place.name != STAGE
        }
        self._outputs = [value.name for value in self._session.get_outputs()]
        # What must be kept after a stage: whatever a later one reads.
        later: set[str] = set()
        self._needed_after: list[frozenset[str]] = []
        for stage in reversed(self._stages):
            self._needed_after.insert(0, frozenset(later))
            later.update(stage.inputs.values())
        std, mean = (np.array(values, np.float32) for values in (manifest.images.std, manifest.images.mean))
        self._scale, self._shift = (1 / std).reshape(-1, 1, 1), (-mean / std).reshape(-1, 1, 1)
        self._chains.append(self._make_chain())
        call_after_fork(self._leave_session)

    @property
    def _session(self) -> onnxruntime.InferenceSession:
        with self._opening:
            if self._opened is None:
                if os.getpid() != self._process:  # much later: other files may be there by now
                    self._bundle.check()
                self._opened = make_session(self._bundle.folder / STAGES, self.threads)
            return self._opened

    def _forget_session(self) -> None:
        """A new one is opened where it is needed."""
        self._opened, self._chains = None, []
        self._opening, self._adding_chain = threading.Lock(), threading.Lock()

    def _leave_session(self) -> None:
        """In a child, which has the parent's session, but not its threads: some may have been in the middle of a run,
        and to end the session would wait for them for ever, or crash. The child opens one of its own, and never ends
        the parent's, not even when it ends itself: one reference to it is never given back.
        """
        if self._opened is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._opened))
        self._forget_session()

    def begin(self, images: NDArray[Any]) -> State:
        pixels = images.transpose(0, 3, 1, 2)
        scale = self._scale / np.float32(255) if pixels.dtype == np.uint8 else self._scale
        link = self._first_link() if images.shape == (1, *self.images.shape) else None
        normalised = np.empty(pixels.shape, np.float32) if link is None else link.maps[IMAGES]
        np.multiply(pixels, scale, out=normalised)  # the channels are moved on the way, while they are bytes
        normalised += self._shift
        return State(0, len(images), {IMAGES: normalised} if link is None else link)

    def _first_link(self) -> "_Link | None":
        """The first place of a chain that no image is using."""
        for chain in self._chains:
            if (link := chain.link(0)) is not None:
                return link
        with self._adding_chain:
            if len(self._chains) == CHAINS:
                return None
            chain = self._chains[0].twin() if self._chains else self._make_chain()
            link = chain.link(0)  # before others see it
            self._chains.append(chain)
            return link

    def _make_chain(self) -> "_Chain":
        """By a run with zeros: the arrays that come out are the space for what images will give."""
        height, width, channels = self.images.shape
        state = State(0, 1, {IMAGES: np.zeros((1, channels, height, width), np.float32)})
        chain = _Chain(self._session, state.maps)
        for stage in self._stages:
            given = self._given(state)
            logits, state = self._logits_apart(state)
            made = [logits, *(state.maps[name] for name in stage.outputs[1:])]
            chain.add(given, dict(zip(self._outputs, made, strict=False)), state.maps)
        return chain

    def logits(self, state: State) -> tuple[NDArray[np.float32], State]:
        if isinstance(state.maps, _Link) and (after := state.maps.next()) is not None:
            logits = after.run()
            done = state.exits_done + 1
            return logits, State(done, state.rows, {} if done == self.exit_count else after)
        return self._logits_apart(state)

    def _logits_apart(self, state: State) -> tuple[NDArray[np.float32], State]:
        """Into memory of its own: several rows, or one where the chain is in use."""
        stage, given = self._stages[state.exits_done], self._given(state)
        outputs = self._outputs[: len(stage.outputs)]
        logits, *made = (self._copied if state.rows <= FEW_ROWS else self._bound)(given, outputs)
        maps = dict(state.maps)
        maps.update(zip(stage.outputs[1:], made, strict=True))
        needed = self._needed_after[state.exits_done]
        return logits, State(state.exits_done + 1, state.rows, {name: maps[name] for name in maps if name in needed})

    def _given(self, state: State) -> dict[str, Array]:
        """What the session takes to run the next stage."""
        stage = self._stages[state.exits_done]
        return {
            **self._nothing,
            **{place: state.maps[name] for place, name in stage.inputs.items()},
            STAGE: np.array(state.exits_done, np.int64),
        }

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

    @property
    def options(self) -> dict[str, Any]:
        return {"threads": self._asked}  # elsewhere, one for each core may be another number

    def __repr__(self) -> str:
        return f"OnnxEngine(threads={self.threads})"

    def __str__(self) -> str:
        return f"ONNX Runtime, {counted(self.threads, 'thread')}"

    def empty(self, like: Array, rows: int) -> Array:
        return np.empty((rows, *like.shape[1:]), dtype=like.dtype)

    def copy_rows(self, sources: Sequence[Array], rows: Rows, targets: Sequence[Array]) -> None:
        for source, target in zip(sources, targets, strict=True):
            np.take(source, rows, axis=0, out=target, mode="clip")  # "clip" writes straight into the target


class _Chain:
    """Space for one image at a time: for its pixels, and for what each stage makes, just where the next one reads it.

    There is a place for each state on the way. Who holds a link to a place may write there; nobody else does.
    """

    def __init__(self, session: onnxruntime.InferenceSession, start: Mapping[Hashable, Array]) -> None:
        self.places = [start]
        self.held = [threading.Lock()]
        self._session = session
        self._runs: list[_Run] = []

    def twin(self) -> "_Chain":
        """Another one, with space of its own; what is the same for all images is shared."""
        written = [array for run in self._runs for array in run.arrays[1].values()]
        own = {id(array): np.empty_like(array) for array in (*self.places[0].values(), *written)}

        def theirs(arrays: Mapping[Any, Array]) -> dict[Any, Array]:
            return {name: own.get(id(array), array) for name, array in arrays.items()}

        twin = _Chain(self._session, theirs(self.places[0]))
        for run, after in zip(self._runs, self.places[1:], strict=True):
            given, made = run.arrays
            twin.add(theirs(given), theirs(made), theirs(after))
        return twin

    def add(self, given: Mapping[str, Array], made: Mapping[str, Array], after: Mapping[Hashable, Array]) -> None:
        """The next stage: what it takes, what it makes (its logits first), and the maps of the state after it."""
        binding = self._session.io_binding()
        for arrays, bind in ((given, binding.bind_input), (made, binding.bind_output)):
            for name, array in arrays.items():
                bind(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        self._runs.append(_Run(binding, next(iter(made.values())), (given, made)))
        self.places.append(after)
        self.held.append(threading.Lock())

    def link(self, place: int, before: "_Link | None" = None) -> "_Link | None":
        """Hold a place, if nobody does."""
        return _Link(self, place, before) if self.held[place].acquire(blocking=False) else None

    def run(self, stage: int) -> NDArray[np.float32]:
        """Its logits, to keep."""
        run = self._runs[stage]
        self._session.run_with_iobinding(run.binding)
        logits: NDArray[np.float32] = run.logits.copy()
        return logits


class _Run(NamedTuple):
    """A stage that needs no more preparations. The binding knows where its arrays lie, but does not keep them alive."""

    binding: Any
    logits: Array
    arrays: tuple[Mapping[str, Array], Mapping[str, Array]]


class _Link(Mapping[Hashable, Array]):
    """The maps of a state in a chain. They stay as they are until this, and all that came from it, is forgotten."""

    def __init__(self, chain: _Chain, place: int, before: "_Link | None") -> None:
        self._chain, self._place = chain, place
        self._before = before  # holds the places behind it too: where the first is free, all are
        self.maps = chain.places[place]

    def __del__(self) -> None:
        self._chain.held[self._place].release()

    def __copy__(self) -> "_Link":
        return self  # a place is held once

    def __deepcopy__(self, _memo: dict[int, Any]) -> dict[Hashable, Array]:
        return {name: array.copy() for name, array in self.maps.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.__deepcopy__({}),)

    def next(self) -> "_Link | None":
        """The place after this, unless the state there is still in use: this one has been advanced before."""
        return self._chain.link(self._place + 1, self)

    def run(self) -> NDArray[np.float32]:
        """The stage that ends here."""
        return self._chain.run(self._place - 1)

    def __getitem__(self, name: Hashable) -> Array:
        return np.asarray(_Lent(self.maps[name], self))

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.maps)

    def __len__(self) -> int:
        return len(self.maps)


class _Lent:
    """A map of a chain as numpy can take it: the array that it makes of this holds the link."""

    def __init__(self, array: Array, link: _Link) -> None:
        self.__array_interface__ = array.__array_interface__
        self._link = link


class _Stage(NamedTuple):
    """The names of what a stage takes, and of what it gives: logits, then maps."""

    inputs: dict[str, str]
    """By their places among the session's inputs."""
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
