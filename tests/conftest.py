"""Fixtures of all tests. One thread for torch: the tests are small, and threads hinder each other on a busy machine."""

import signal
from pathlib import Path

import pytest
import torch

from msdnet import preset_config
from msdnet.bundle import Bundle
from msdnet.networks import MSDNet, create_network
from tests.helpers import settle, tiny_bundle

torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell takes from what it runs in the background


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def small_network() -> MSDNet:
    """Three scales, three exits, a few thousand parameters, BN statistics away from where they start."""
    sizes = {"seed_channels": 4, "growth": 2, "head_width": 8, "classes": 7}
    return settle(create_network(preset_config("cifar_anytime"), exits=(1, 3, 5), **sizes))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A bundle of three exits; tests that harm one make a copy."""
    return tiny_bundle(Path(tmp_path_factory.mktemp("bundles")) / "tiny")
