import torch
from torch import nn

from msdnet.cost import multiply_adds, on_meta


def test_counts_convolutions_and_linear_layers_only() -> None:
    layers = nn.Sequential(
        nn.Conv2d(3, 5, kernel_size=3, padding=1, bias=False),  # 8 x 8 x 5 outputs of 27 multiply-adds
        nn.BatchNorm2d(5),
        nn.ReLU(),
        nn.Conv2d(5, 10, kernel_size=1, stride=2, groups=5),  # 4 x 4 x 10 outputs of one
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(10, 7),  # the bias is added, not multiplied
    )
    cost, output = multiply_adds(on_meta(layers), torch.empty(1, 3, 8, 8, device="meta"))
    assert cost == 8 * 8 * 5 * 27 + 4 * 4 * 10 + 10 * 7
    assert output.shape == (1, 7)


def test_the_twin_on_meta_leaves_the_original_alone() -> None:
    shared = nn.Linear(3, 3)
    original = nn.Sequential(shared, nn.BatchNorm1d(3), shared).train()
    twin = on_meta(original)
    assert {tensor.device.type for tensor in twin.state_dict().values()} == {"meta"}
    assert {tensor.device.type for tensor in original.state_dict().values()} == {"cpu"}
    assert twin[0].weight is twin[2].weight, "weights that are shared stay shared"
    assert original.training
    assert not twin.training
