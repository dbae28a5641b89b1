"""Two processes train what one does that accumulates the same two half-batches."""

import os
import subprocess
import sys
from pathlib import Path

import torch

from msdnet import create_network
from msdnet.data import Epoch, Shard
from msdnet.training import Recipe
from msdnet.training.checkpoint import load_tensors
from msdnet.training.loss import training_loss
from msdnet.training.recipe import Optimiser
from msdnet.training.schedule import learning_rate
from tests.helpers import TINY, ColouredSquares

RECIPE = Recipe(epochs=2, batch_size=16, optimiser=Optimiser(learning_rate=0.05))
SCRIPT = """
import sys
from msdnet.training import train
from msdnet.training.display import Display
from tests.helpers import TINY, ColouredSquares
from tests.integration.test_processes import RECIPE

train(RECIPE, data=ColouredSquares(), network=TINY, out=sys.argv[1], device="cpu", display=Display())
"""


def test_two_processes_match_one_that_accumulates(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    subprocess.run(
        [*torchrun, script, tmp_path / "run"],
        check=True,
        capture_output=True,
        cwd=Path(__file__).parents[2],
        env=_environment(),
    )
    together, _ = load_tensors(tmp_path / "run" / "model.safetensors")
    alone = train_alone()
    for name, tensor in alone.items():
        torch.testing.assert_close(together[name], tensor, rtol=1e-4, atol=1e-5)


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
