"""Two processes train what one does that accumulates the same two half-batches."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from PIL import Image

from msdnet import create_network
from msdnet.data import Epoch, Shard
from msdnet.training import Recipe
from msdnet.training.checkpoint import load_tensors
from msdnet.training.loss import training_loss
from msdnet.training.recipe import Optimiser
from msdnet.training.schedule import learning_rate
from tests.helpers import TINY, ColouredSquares
from tests.unit.test_reproduce import paint_images

RECIPE = Recipe(epochs=2, batch_size=16, optimiser=Optimiser(learning_rate=0.05))
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
SCRIPT = """
import os, sys, time
from msdnet.training import train
from msdnet.training.display import Display
from tests.helpers import TINY, ColouredSquares
from tests.integration.test_processes import RECIPE

for out in sys.argv[1:]:
    train(RECIPE, data=ColouredSquares(), network=TINY, out=out, device="cpu", display=Display())
    if os.environ["RANK"] == "0":
        time.sleep(1)  # the other is ahead of it
"""


def test_two_processes_match_one_that_accumulates(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [*TORCHRUN, script, tmp_path / "run", tmp_path / "again"],
        timeout=120,
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env=_environment() | {"MSDNET_PRECISION": "float32"},  # as exact as the plain loops
    )
    assert done.returncode == 0, done.stderr
    alone = train_alone()
    for run in ("run", "again"):  # the processes stay together from one training to the next
        together, _ = load_tensors(tmp_path / run / "model.safetensors")
        for name, tensor in alone.items():
            torch.testing.assert_close(together[name], tensor, rtol=1e-4, atol=1e-5)


COMMAND = """
import sys, time
import msdnet.training.trainer as trainer
from msdnet.cli import main

save = trainer.Trainer._save
trainer.Trainer._save = lambda self: (time.sleep(2), save(self))
main()
"""


def test_the_command_line_under_torchrun_stops_only_when_it_has_saved(tmp_path: Path) -> None:
    """Both processes get a signal while saving takes long: the one that does not save must wait for the other."""
    for name, colour in (("cat", (200, 0, 0)), ("dog", (0, 0, 200))):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(30):
            Image.new("RGB", (16, 16), colour).save(tmp_path / "images" / name / f"{i}.png")
    (tmp_path / "slow.py").write_text(COMMAND)
    (tmp_path / "tiny.json").write_text(TINY.to_json())
    (tmp_path / "mine.toml").write_text("epochs = 400\nbatch_size = 8\nevaluate_every = 100\n")
    options = ["--data", "images", "--network", "tiny.json", "--image-size", "16", "--workers", "0", "--device", "cpu"]
    run = [*TORCHRUN, "slow.py", "train", "mine.toml", *options, "--out", "run"]
    process = subprocess.Popen(run, cwd=tmp_path, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    metrics = tmp_path / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 90
    while not (metrics.exists() and metrics.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    _, facts = load_tensors(tmp_path / "run" / "checkpoint.safetensors")
    assert facts["progress"]["epoch"] >= 1


@pytest.mark.parametrize(
    ("options", "message"), [(["--epochs", "0"], "epochs must be at least 1"), (["--bad"], "No such option: --bad")]
)
def test_what_goes_wrong_in_all_processes_is_told_once(tmp_path: Path, options: list[str], message: str) -> None:
    command = [*TORCHRUN, "-m", "msdnet", "reproduce", "densenet-star", *options]
    done = subprocess.run(
        command, cwd=tmp_path, env=_environment(), check=False, timeout=120, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.count(message) == 1


def train_alone() -> dict[str, torch.Tensor]:
    """Plain loops: gradients of two half-batches averaged, BN of each half by itself, its statistics the first's."""
    torch.manual_seed(0)
    data = ColouredSquares()
    network = create_network(TINY, classes=3)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    for epoch in range(RECIPE.epochs):
        halves = [data.training_batches(Epoch(16, seed=0, number=epoch, shard=Shard(rank, 2))) for rank in (0, 1)]
        for step, pair in enumerate(zip(*halves, strict=True)):
            optimiser.param_groups[0]["lr"] = learning_rate(RECIPE, epoch + step / data.steps(16))
            optimiser.zero_grad()
            before = {name: buffer.clone() for name, buffer in network.named_buffers()}
            after_first = {}
            for half, batch in enumerate(pair):
                for name, buffer in network.named_buffers():
                    buffer.copy_(before[name])
                logits = torch.stack(network(batch.images))
                torch.autograd.backward(training_loss(logits, batch.labels, torch.ones(3), RECIPE.loss) / 2)
                if half == 0:
                    after_first = {name: buffer.clone() for name, buffer in network.named_buffers()}
            for name, buffer in network.named_buffers():
                buffer.copy_(after_first[name])
            optimiser.step()
    return dict(network.state_dict())


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}


REPRODUCE = """
import os, sys, time
from dataclasses import replace
from pathlib import Path
from msdnet.training import load_run
from tests.unit.test_reproduce import PAIR, workshop

folder = Path(sys.argv[1])
here = replace(workshop(folder / "images", folder), say=print)
assert here.carry_out([PAIR]) == []
if os.environ["RANK"] == "0":
    print("images:", load_run(here.shelf.run_of(PAIR.members[0]), device="cpu").data.size("test"))
else:
    time.sleep(200)
"""


@pytest.mark.slow
def test_an_experiment_trains_together_and_measures_once_and_a_process_may_go_on_alone(tmp_path: Path) -> None:
    """Two networks and their ensemble, one after the other, by two processes; then one loads a run while the other does
    something else: it sleeps for longer than is waited for.
    """
    paint_images(tmp_path / "images")
    (tmp_path / "run.py").write_text(REPRODUCE)
    environment = _environment() | {"PYTHONUNBUFFERED": "1"}
    command = [*TORCHRUN, "run.py", str(tmp_path)]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told: list[str] = []
    began = time.monotonic()
    while not (told and told[-1].startswith("images:")):
        told.append(process.stdout.readline())
        assert told[-1], f"it ended after {told}"
    assert time.monotonic() - began < 150
    process.terminate()  # torchrun ends the other
    process.communicate(timeout=60)
    assert told[-1] == "images: 40\n"
    assert sum("measuring" in line for line in told) == 3
    assert {path.name for path in (tmp_path / "results/folder").iterdir()} == {
        "pair.json",
        "resnet.json",
        "resnet_seed1.json",
    }
