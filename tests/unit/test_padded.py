"""Maps that are filled up with zeros train the same network."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from msdnet import MSDNetConfig, create_network, preset_config
from msdnet.data import Batch
from msdnet.networks import MSDNet
from msdnet.networks.padded import padded
from msdnet.training import Recipe
from msdnet.training.recipe import Optimiser
from msdnet.training.step import GraphedStep, Step

SMALL = MSDNetConfig(exits=(2, 4, 6), growth=3, classes=7)
CONFIGS = {
    "halves of 3 and 6": SMALL,
    "an odd growth": replace(SMALL, growth=5),
    "all fit": replace(SMALL, growth=16),
    "not dense": replace(SMALL, growth=7, dense=False, bottleneck_factors=(0, 0, 0)),
    "one scale at a time": replace(SMALL, growth=7, multi_scale=False, head_width=20),
    "the last scales drop out": replace(SMALL, reduction="tail"),
    "greyscale": replace(SMALL, input_channels=1),
    "ImageNet's stem": replace(
        preset_config("imagenet_4"), exits=(2, 4), growth=3, seed_channels=5, head_width="input", classes=7
    ),
}
RECIPE = Recipe(epochs=1, batch_size=4, optimiser=Optimiser(learning_rate=0.1), average_decay=0.9)


class PlainStep(Step):
    def _quickest(self, network: nn.Module) -> nn.Module:
        return network


class PaddedStep(Step):
    def _quickest(self, network: nn.Module) -> nn.Module:
        assert isinstance(network, MSDNet)
        return padded(network)


def some_images(network: MSDNet, rows: int = 4) -> Tensor:
    side = 96 if network.config.stem == "imagenet" else 32
    return torch.randn(rows, network.config.input_channels, side, side, dtype=torch.float64)


def parts_beyond(network: nn.Module, twin: nn.Module) -> list[Tensor]:
    """What the twin's tensors have beyond the network's, which is left in them as zeros."""
    beyond = []
    for own, wide in zip(network.state_dict().values(), twin.state_dict().values(), strict=True):
        rest = wide.clone()
        rest[tuple(map(slice, own.shape))] = 0
        beyond.append(rest)
    return beyond


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_padded_network_computes_and_learns_the_same(config: MSDNetConfig) -> None:
    torch.manual_seed(0)
    network = create_network(config).double()
    plain = copy.deepcopy(network)
    twin = padded(network)
    images, labels = some_images(plain), torch.arange(4)
    for one in (plain, twin):
        optimiser = torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)
        for _ in range(3):
            optimiser.zero_grad()
            loss = torch.stack([functional.cross_entropy(logits, labels) for logits in one(images)]).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    for name, tensor in plain.state_dict().items():
        torch.testing.assert_close(network.state_dict()[name], tensor, rtol=1e-9, atol=1e-9)
    assert not any(rest.any() for rest in parts_beyond(network, twin)), "padding is zeros for good"


def test_every_map_has_channels_in_eights() -> None:
    twin = padded(create_network(CONFIGS["an odd growth"]))
    widths = []
    for layer in twin.modules():
        if isinstance(layer, nn.Conv2d | nn.BatchNorm2d):
            layer.register_forward_hook(lambda _layer, _read, made: widths.append(made.shape[1]))
    maps = [
        cell.register_forward_hook(lambda _cell, _read, made: widths.append(made.shape[1]))
        for cell in twin.cells.values()
    ]
    twin(torch.randn(2, 3, 32, 32))
    assert len(widths) > len(maps)
    assert all(width % 8 == 0 for width in widths), widths


def test_the_network_itself_keeps_its_shapes_and_answers() -> None:
    network = create_network(SMALL)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    images = torch.randn(2, 3, 32, 32)
    expected = [logits.clone() for logits in network.eval()(images)]
    twin = padded(network)
    assert twin.training
    assert not network.training
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name]), name
        assert tensor.untyped_storage().data_ptr() == twin.state_dict()[name].untyped_storage().data_ptr(), name
    torch.testing.assert_close(network(images), expected)


def test_a_step_with_padding_is_one_without_and_so_is_its_checkpoint() -> None:
    """Weights, BN, momentum and the moving average, under the same names and in the same shapes."""
    steps = {}
    for kind in (PlainStep, PaddedStep):
        torch.manual_seed(0)
        steps[kind] = kind(create_network(SMALL), RECIPE, (32, 32), precision=torch.float32)
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(6, 4, 3, 32, 32, generator=generator)
    for batch in images[:3]:
        for step in steps.values():
            step(Batch(batch, torch.arange(4)), 0.1)
    plain, with_padding = (step.state() for step in steps.values())
    assert plain.keys() == with_padding.keys()
    for name, tensor in plain.items():
        torch.testing.assert_close(with_padding[name], tensor, rtol=1e-3, atol=1e-5)
    # Either goes on with what the other has saved.
    saved = {kind: {name: tensor.clone() for name, tensor in step.state().items()} for kind, step in steps.items()}
    torch.manual_seed(2)
    resumed = {kind: kind(create_network(SMALL), RECIPE, (32, 32), precision=torch.float32) for kind in steps}
    resumed[PlainStep].load_state(saved[PaddedStep])
    resumed[PaddedStep].load_state(saved[PlainStep])
    for batch in images[3:]:
        for step in (steps[PlainStep], *resumed.values()):
            step(Batch(batch, torch.arange(4)), 0.1)
    expected = steps[PlainStep].state()
    for step in resumed.values():
        for name, tensor in step.state().items():
            torch.testing.assert_close(tensor, expected[name], rtol=5e-3, atol=1e-4)


def is_own_twin(step: Step) -> bool:
    return {id(tensor) for tensor in step._runner.parameters()} == {id(tensor) for tensor in step.network.parameters()}


def test_maps_are_filled_up_where_it_pays() -> None:
    """In bfloat16, in MSDNet itself: what a class derived from it does with its maps is not known."""

    class Own(MSDNet):
        pass

    twin = Step(create_network(SMALL), RECIPE, (32, 32), precision=torch.bfloat16)._runner
    convolutions = [layer for layer in twin.modules() if isinstance(layer, nn.Conv2d)]
    assert all(layer.weight.shape[0] % 8 == 0 for layer in convolutions)
    assert all(layer.weight.is_contiguous(memory_format=torch.channels_last) for layer in convolutions)
    assert is_own_twin(Step(create_network(SMALL), RECIPE, (32, 32), precision=torch.float32))
    assert is_own_twin(Step(Own(SMALL), RECIPE, (32, 32), precision=torch.bfloat16))
    assert is_own_twin(Step(create_network(CONFIGS["all fit"]), RECIPE, (32, 32), precision=torch.bfloat16))


def test_a_gpus_graph_is_of_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for the streams, which need a GPU."""
    monkeypatch.setattr("msdnet.training.step.ScalesSideBySide", lambda network: network)
    assert not is_own_twin(GraphedStep(create_network(SMALL), RECIPE, (32, 32), precision=torch.bfloat16))
    assert is_own_twin(GraphedStep(create_network(SMALL), RECIPE, (32, 32), precision=torch.float32))


def test_a_network_whose_bn_several_gpus_share_stays_as_it_is() -> None:
    network = nn.SyncBatchNorm.convert_sync_batchnorm(create_network(SMALL))  # type: ignore[no-untyped-call]
    assert padded(network) is network


def test_a_network_that_was_moved_is_not_saved_as_if_it_were_trained() -> None:
    step = Step(create_network(SMALL), RECIPE, (32, 32), precision=torch.bfloat16)
    step.state()
    step.network.double()
    with pytest.raises(RuntimeError, match="is no longer what is trained"):
        step.state()
