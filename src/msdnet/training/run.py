"""Starting a run in a folder, and going on with one."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import torch
from torch import nn

from msdnet.bundle import RUN
from msdnet.checks import check_number, check_same, check_whole
from msdnet.config import MSDNetConfig, NetworkConfig
from msdnet.data import DataConfig, ImageData, Unreadable, open_data
from msdnet.data.base import Shard
from msdnet.device import kernels_wanted, pick_device, training_precision
from msdnet.files import in_words
from msdnet.networks import StagedNetwork, create_network
from msdnet.presets import network_config
from msdnet.training.display import Display, choose_display
from msdnet.training.distributed import (
    first_on_machine_first,
    from_first,
    is_first,
    join_processes,
    wait_for_all,
)
from msdnet.training.evaluation import accuracies_on
from msdnet.training.recipe import Recipe, load_recipe
from msdnet.training.record import (
    check_network,
    check_same_images,
    defined_by,
    describe_data,
    is_finished,
    load_run,
    plain_json,
    read_run,
    read_summary,
    reopen,
)
from msdnet.training.side_by_side import ALONE, StopSignal
from msdnet.training.start import Start, find_start
from msdnet.training.step import CompiledStep, GraphedStep, Step
from msdnet.training.trainer import CHECKPOINT, MODEL, Summary, Trainer
from msdnet.version import VERSION
from msdnet.writing import write_atomically

try:
    import fcntl
except ModuleNotFoundError:  # on Windows, where a run can be read and exported
    fcntl = None  # type: ignore[assignment]

__all__ = ["make_step", "resume", "train"]

_LOCKS: set[IO[str]] = set()  # that this process holds


@dataclass(frozen=True, kw_only=True)
class _Conditions:
    """Under which a run is trained this time: nothing that defines it, and all of it may change when it goes on."""

    device: torch.device
    shard: Shard
    display: Display | None
    stop: StopSignal | None
    checkpoint_seconds: float


def train(
    recipe: str | Path | Recipe,
    *,
    data: DataConfig | ImageData,
    out: str | Path,
    network: str | NetworkConfig | None = None,
    teacher: str | Path | None = None,
    start: str | Path | None = None,
    seed: int = 0,
    device: str | None = None,
    test: bool = False,
    display: Display | None = None,
    stop: StopSignal | None = None,
    checkpoint_seconds: float = 60,
) -> Summary:
    """Train a network by a recipe into a new folder.

    The network is a name or a config, by default the anytime network that fits the data; its classes are the
    data's. A teacher is the folder of a finished run, for recipes that learn from one. To start with the weights of a
    network that was trained before, `start` is a model of the package, or the folder of a bundle or of a finished run;
    then the network is by default that one, and where the classes are others, what depends on them is made anew. The
    test images are looked at, once and at the end, only if `test` is set.
    """
    _check_system()
    folder = Path(out)
    _check_free(folder)
    seed = _checked_seed(seed)
    if not isinstance(data, DataConfig | ImageData):
        raise TypeError(f"data must be a DataConfig, which says where images are, or ImageData, got {data!r}")
    chosen = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    here = _conditions(device, display=display, stop=stop, checkpoint_seconds=checkpoint_seconds)
    with ALONE:
        begin = None if start is None else find_start(start)
        data = data if isinstance(data, ImageData) else data.found()
        with first_on_machine_first():  # which may download what the others then find
            images = data if isinstance(data, ImageData) else open_data(data, here.device)
        _check_parts(images, test)
        config = _network_config(network or (begin and begin.network.config), images, chosen)
        facts = _facts(chosen, config, images, data if isinstance(data, DataConfig) else None, seed)
        facts |= {"precision": str(training_precision(here.device)).removeprefix("torch.")}
        facts |= {} if begin is None else {"start": begin.facts}
        teaching = _teaching(chosen, teacher, facts, here.device)
        trainer = _trainer(folder, facts, chosen, config, images, here, teacher=teaching, start=begin)
    if here.shard.rank == 0:  # all that can be refused has been: from here on the folder is this run's
        _claim(folder, facts)
    wait_for_all()
    with _locked(folder, here.shard):
        with _free_again_if_nothing_was_done(folder, trainer):
            summary = trainer.run()
        return _tested(folder, summary, images, chosen, here.device) if test else summary


def resume(
    out: str | Path,
    *,
    data: ImageData | None = None,
    root: str | Path | None = None,
    teacher: str | Path | None = None,
    workers: int | None = None,
    unreadable: Unreadable | None = None,
    device: str | None = None,
    test: bool = False,
    display: Display | None = None,
    stop: StopSignal | None = None,
    checkpoint_seconds: float = 60,
) -> Summary:
    """Go on with the run in a folder, from its last checkpoint or from its start.

    `root` and `teacher` say where those are now, if they have moved; `data` gives the data, if the run was started
    with its own. `unreadable` says what an unreadable image means from now on, also when the run is exported.
    A run that is finished stays as it is, that too; its test images are looked at if they never were and `test` is set.
    """
    folder = Path(out)
    facts = read_run(folder)
    _checked_seed(facts["seed"])
    finished = read_summary(folder) if is_finished(folder) else None
    if finished is not None:
        check_network(folder)
    if finished is not None and (finished.test_accuracy is not None or not test):
        return finished
    _check_system()
    config, recipe = defined_by(facts, folder)
    here = _conditions(device, display=display, stop=stop, checkpoint_seconds=checkpoint_seconds)
    with _locked(folder, here.shard), ExitStack() as locks:
        with ALONE:
            with first_on_machine_first():
                images = data or reopen(facts, root, workers, unreadable, here.device)
            check_same_images(f"{folder}: started with other data", images, facts)
            _check_parts(images, test)
            if "dataset" in facts["data"] and unreadable not in (None, facts["data"].get("unreadable")):
                facts["data"]["unreadable"] = unreadable
                locks.enter_context(_rewritten(folder, facts, here.shard))
            if finished is not None:  # nothing is left to learn: only its test images are still to be looked at
                return _tested(folder, finished, images, recipe, here.device)
            known = facts.get("teacher", {}).get("folder")
            teaching = _teaching(recipe, teacher or known, facts, here.device)
            going_on = (folder / CHECKPOINT).exists()
            begin = None if going_on else _started_from(facts)
            trainer = _trainer(folder, facts, recipe, config, images, here, teacher=teaching, start=begin)
            if going_on:
                trainer.resume()
        summary = trainer.run()
        return _tested(folder, summary, images, recipe, here.device) if test else summary


def _tested(folder: Path, summary: Summary, data: ImageData, recipe: Recipe, device: torch.device) -> Summary:
    """Look at the test images with the network that the finished run has saved, and write down what it says of them.

    Whatever goes wrong with them, the run is finished and whole.
    """
    tested = None
    if is_first():
        with ALONE:
            network = load_run(folder, device=str(device), open_data=False).network
            network = network.to(memory_format=torch.channels_last)
            accuracy = accuracies_on(network, data, "test", recipe.batch_size)
            tested = dataclasses.replace(summary, test_accuracy=accuracy)
            tested.save(folder)
    return from_first(cast(Summary, tested))


def make_step(
    network: str | NetworkConfig,
    recipe: Recipe,
    data: ImageData,
    device: torch.device,
    *,
    teacher: StagedNetwork | None = None,
    start: Start | None = None,
    distributed: bool = False,
    precision: torch.dtype | None = None,
) -> Step:
    """A fresh network on its device, or one with weights to start with, and the way to train it that is fastest."""
    built: Any = create_network(_network_config(network, data, recipe))
    if start is not None:
        start.give(built, data.classes)
    built = built.to(device).to(memory_format=torch.channels_last)
    on_gpu = device.type == "cuda"
    if on_gpu:
        # Shapes never change: let cuDNN time a few kernels once. Timing all takes twice as long and finds none better.
        torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 3
    if on_gpu and distributed:
        built = nn.SyncBatchNorm.convert_sync_batchnorm(built)  # type: ignore[no-untyped-call]
    kind = _kind_of_step(built, device, distributed=distributed)
    return kind(built, recipe, data.image_shape[1:], teacher=teacher, distributed=distributed, precision=precision)


def _kind_of_step(network: StagedNetwork, device: torch.device, *, distributed: bool) -> type[Step]:
    compiled = kernels_wanted() == "compiled"
    if compiled and device.type != "cpu":
        raise ValueError(f"MSDNET_KERNELS=compiled is for training on a CPU, not on {device}")
    if compiled and network.chance is None:
        return CompiledStep
    return GraphedStep if device.type == "cuda" and not distributed else Step


def _network_config(network: str | NetworkConfig | None, data: ImageData, recipe: Recipe) -> NetworkConfig:
    channels, height, _ = data.image_shape
    default = "cifar_anytime" if height <= 64 else "imagenet_4"
    config = network_config(network or default, classes=len(data.classes), input_channels=channels)
    power = recipe.loss.boosting
    if power is None:
        return config
    if not isinstance(config, MSDNetConfig):
        raise ValueError(f"recipe {recipe.name} boosts the exits of an MSDNet, and this is a {config.kind}")
    if config.averaging not in (None, power):
        raise ValueError(
            f"recipe {recipe.name} boosts with power {power}, the network averages with {config.averaging}"
        )
    return dataclasses.replace(config, averaging=power)


def _facts(
    recipe: Recipe, config: NetworkConfig, data: ImageData, data_config: DataConfig | None, seed: int
) -> dict[str, Any]:
    """All that defines a run, as plain JSON values."""
    facts = {
        "msdnet": VERSION,
        "torch": torch.__version__,
        "network": config.to_dict(),
        "recipe": dataclasses.asdict(recipe),
        "seed": seed,
        "data": {"name": data.name} if data_config is None else dataclasses.asdict(data_config),
        "images": describe_data(data),
        # Not among the above, which are compared with those of runs that do not tell them:
        "resize": data.resized_to,
        "some_names": data.some_names,
    }
    return plain_json(facts)


def _teaching(
    recipe: Recipe, folder: str | Path | None, facts: dict[str, Any], device: torch.device
) -> StagedNetwork | None:
    """The network that teaches, where the recipe wants one; the run's facts then tell which it is."""
    if not recipe.loss.distillation.needs_network:
        if folder is not None:
            raise ValueError(f"recipe {recipe.name} learns from no other network: no teacher can be given")
        return None
    if folder is None:
        raise ValueError(f"recipe {recipe.name} learns from another network: a teacher (--teacher) is needed, a run")
    try:
        network, _, its_facts = load_run(folder, device=str(device), open_data=False)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error} (a teacher is a finished run; --teacher says where it is)") from error
    # Also for the sake of the held-out images: a teacher that was trained on them would tell of them.
    its_images, images = in_words(its_facts["images"]), in_words(facts["images"])
    check_same(f"{folder}: a teacher trained on other data", its_images, images, places=("there", "in this run"))
    weights = hashlib.sha256((Path(folder) / MODEL).read_bytes()).hexdigest()
    known = facts.setdefault(
        "teacher", {"folder": str(Path(folder).resolve()), "network": its_facts["network"], "weights": weights}
    )
    other = f"{folder}: another teacher than the run was started with: weights"
    check_same(other, weights, known["weights"], places=("now", "then"))
    return network.to(memory_format=torch.channels_last)


def _started_from(facts: dict[str, Any]) -> Start | None:
    """What a run without a checkpoint starts with once more, if it did not start with weights drawn by chance."""
    if "start" not in facts:
        return None
    try:
        start = find_start(facts["start"]["folder"])
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error} (the run has no checkpoint yet, and would start with its weights)") from error
    start.check_known(facts["start"])
    return start


def _conditions(
    device: str | None, *, display: Display | None, stop: StopSignal | None, checkpoint_seconds: float
) -> _Conditions:
    check_number("checkpoint_seconds", checkpoint_seconds, low=0)
    torch_device = pick_device(device)
    return _Conditions(
        device=torch_device,
        shard=join_processes(torch_device),
        display=display,
        stop=stop,
        checkpoint_seconds=checkpoint_seconds,
    )


def _trainer(
    folder: Path,
    facts: dict[str, Any],
    recipe: Recipe,
    config: NetworkConfig,
    data: ImageData,
    here: _Conditions,
    *,
    teacher: StagedNetwork | None,
    start: Start | None,
) -> Trainer:
    seed, shard = facts["seed"], here.shard
    torch.manual_seed(seed)
    options: dict[str, Any] = {"distributed": shard.world > 1, "precision": _precision_of(facts)}
    step = make_step(config, recipe, data, here.device, teacher=teacher, start=start, **options)
    return Trainer(
        step,
        data,
        folder,
        facts,
        seed=seed,
        display=here.display or (choose_display() if shard.rank == 0 else Display()),
        shard=shard,
        stop=here.stop,
        checkpoint_seconds=here.checkpoint_seconds,
    )


def _precision_of(facts: dict[str, Any]) -> torch.dtype:
    """That of the run, wherever it goes on."""
    return torch.float32 if facts["precision"] == "float32" else torch.bfloat16


def _check_system() -> None:
    if fcntl is None:
        raise OSError("training needs Linux or macOS; on Windows, use WSL")


def _check_parts(data: ImageData, test: bool) -> None:
    """Refuse data that lack images to judge the network by: better now than after hours."""
    if data.size("held_out") == 0:
        raise ValueError(f"{data.name}: no images are held out, and a training needs some")
    if test and data.size("test") == 0:
        raise ValueError(f"{data.name}: has no test images to look at in the end (test, --test)")


def _check_free(folder: Path) -> None:
    if (folder / RUN).is_file():
        read_run(folder)  # what is no run cannot be gone on with, and says what can be done
    if (folder / CHECKPOINT).exists() or (folder / RUN).exists():
        raise ValueError(f"{folder}: holds a run already; go on with it by --resume {folder}, or choose another folder")
    if is_finished(folder) or (folder / MODEL).exists():  # by what another run left behind
        raise ValueError(f"{folder}: holds what a run has made, without its {RUN}; choose another folder")


def _checked_seed(seed: int) -> int:
    seed = check_whole("seed", seed, at_least=0)
    if seed >= 2**32:
        raise ValueError(f"seed must be below {2**32}, got {seed}")
    return seed


def _claim(folder: Path, facts: dict[str, Any]) -> None:
    """Make the folder this run's; of two that try at once, one is refused."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: a file, where a run needs a folder")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        write_atomically(folder / RUN, _text(facts), new=True)
    except FileExistsError:
        _check_free(folder)


@contextmanager
def _free_again_if_nothing_was_done(folder: Path, trainer: Trainer) -> Iterator[None]:
    """What fails before its first step is done, for want of memory say, is tried again with other options."""
    try:
        yield
    except Exception:
        if trainer.leads and not trainer.begun and not (folder / CHECKPOINT).exists():
            (folder / RUN).unlink(missing_ok=True)
        raise


@contextmanager
def _locked(folder: Path, shard: Shard) -> Iterator[None]:
    """Keep other trainings out of the folder; the lock ends with this process, however it ends."""
    if shard.rank > 0:
        yield
        return
    with (folder / RUN).open("r+") as file:  # on NFS, only a file that could be written can be locked
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{folder}: another process is training here") from None
        except OSError as error:
            why = f"its file system does not lock files ({error.strerror}), and two trainings could get mixed up"
            raise ValueError(f"{folder}: {why}; choose a folder elsewhere") from error
        _LOCKS.add(file)
        try:
            yield
        finally:
            _LOCKS.discard(file)


@contextmanager
def _rewritten(folder: Path, facts: dict[str, Any], shard: Shard) -> Iterator[None]:
    """Put other facts in place of a locked run's, and lock these as well: whoever comes now opens the new file."""
    if shard.rank == 0:
        write_atomically(folder / RUN, _text(facts))
    with _locked(folder, shard):
        yield


def _text(facts: dict[str, Any]) -> bytes:
    return (json.dumps(facts, indent=2) + "\n").encode()


def _close_locks() -> None:
    """Processes that read images are copies of this one, and may live on for a while if it is killed."""
    for file in _LOCKS:
        file.close()
    _LOCKS.clear()


if fcntl is not None:  # so there is fork as well
    os.register_at_fork(after_in_child=_close_locks)
