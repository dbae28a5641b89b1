"""Networks for ImageNet that torchvision has or can build: what MSDNet is compared with there."""

from collections.abc import Callable

import torchvision.models
from torch import nn
from torchvision.models.densenet import DenseNet
from torchvision.models.resnet import BasicBlock, ResNet

from msdnet.networks.chain import Chain
from msdnet.systems import TorchvisionConfig

__all__ = ["TorchvisionNetwork"]


def _resnet(blocks: int) -> Callable[..., nn.Module]:
    """A ResNet with so many blocks of two convolutions in each of its four groups: 8 blocks + 2 layers."""
    return lambda num_classes: ResNet(BasicBlock, [blocks] * 4, num_classes=num_classes)


def _densenet(*units: int) -> Callable[..., nn.Module]:
    """A DenseNet-BC with so many units of two convolutions in each of its four blocks: twice their sum + 5 layers."""
    return lambda num_classes: DenseNet(32, units, 64, num_classes=num_classes)


_BUILD: dict[str, Callable[..., nn.Module]] = {
    "alexnet": torchvision.models.alexnet,
    "googlenet": lambda num_classes: torchvision.models.googlenet(
        num_classes=num_classes, aux_logits=False, init_weights=True
    ),
    "resnet_10": _resnet(1),
    "resnet_18": torchvision.models.resnet18,
    "resnet_26": _resnet(3),
    "resnet_34": torchvision.models.resnet34,
    "resnet_50": torchvision.models.resnet50,
    "densenet_37": _densenet(2, 4, 6, 4),
    "densenet_57": _densenet(3, 6, 10, 7),
    "densenet_77": _densenet(4, 8, 14, 10),
    "densenet_99": _densenet(5, 10, 19, 13),
    "densenet_121": torchvision.models.densenet121,
}


class TorchvisionNetwork(Chain):
    """One of torchvision's networks as a network of one stage."""

    def __init__(self, config: TorchvisionConfig) -> None:
        super().__init__(config, [nn.Identity()], [_BUILD[config.name](num_classes=config.classes)])
