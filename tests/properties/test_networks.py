"""What must hold for every network, whatever its config."""

import dataclasses

import torch
from hypothesis import given, settings

from msdnet import MSDNetConfig, create_network
from msdnet.drawing import draw_svg, draw_text
from msdnet.plan import IMAGE, Grid
from tests.helpers import close, run_stages, settle
from tests.properties.strategies import configs
from tests.reference import reference_counts

thorough = settings(max_examples=150, deadline=None)
moderate = settings(max_examples=30, deadline=None)


@given(configs())
@thorough
def test_json_round_trip(config: MSDNetConfig) -> None:
    assert MSDNetConfig.from_json(config.to_json()) == config


@given(configs())
@thorough
def test_plan_computes_every_cell_once_and_finds_what_it_reads(config: MSDNetConfig) -> None:
    grid = Grid(config)
    for stages in (grid.lazy_stages, grid.whole_stages):
        computed = [cell for stage in stages for cell in stage.computes]
        assert len(computed) == len(set(computed))
        assert set(computed) == set(grid.cells), "every cell that is built serves some exit"
        at_hand = {IMAGE}
        for stage in stages:
            for cell, spent in zip(stage.computes, stage.forgets, strict=True):
                assert at_hand.issuperset(grid.cells[cell].reads)
                at_hand.add(cell)
                assert at_hand.issuperset(spent)
                at_hand -= set(spent)
            assert stage.exit in at_hand
            assert at_hand - {stage.exit} <= set(stage.hands_on) <= at_hand
            at_hand = set(stage.hands_on)
        assert not at_hand, "nothing is handed on by the last stage"


@given(configs())
@thorough
def test_lazy_stages_are_minimal(config: MSDNetConfig) -> None:
    """Whatever a stage computes is read within it, or is the exit's own cell."""
    grid = Grid(config)
    for stage in grid.lazy_stages:
        read = {source for cell in stage.computes for source in grid.cells[cell].reads}
        assert set(stage.computes) <= read | {stage.exit}
    done: set[object] = set()
    for k, stage in enumerate(grid.lazy_stages):
        done.update(stage.computes)
        later = {source for s in grid.lazy_stages[k + 1 :] for cell in s.computes for source in grid.cells[cell].reads}
        assert set(stage.hands_on) == later & done


@given(configs(ablations=False))
@moderate
def test_counts_equal_an_independent_derivation(config: MSDNetConfig) -> None:
    """Parameters, whole and lazy costs against a counter that was written from the paper, not from this code."""
    size = (config.smallest_side + 3, config.smallest_side + 8)
    network = create_network(config)
    values = dataclasses.asdict(config) | {"layers": config.depth}
    for switch in ("dense", "multi_scale", "intermediate_classifiers", "averaging"):
        del values[switch]
    values["head_width"] = None if config.head_width == "input" else config.head_width
    expected = reference_counts(**values, height=size[0], width=size[1])
    assert sum(parameter.numel() for parameter in network.parameters()) == expected.parameters
    assert network.costs(size, lazy=False) == expected.whole
    assert network.costs(size) == expected.lazy


@given(configs())
@moderate
def test_costs_increase_and_lazy_never_costs_more(config: MSDNetConfig) -> None:
    network = create_network(config)
    lazy, whole = (network.costs(config.smallest_side, lazy=lazy) for lazy in (True, False))
    assert list(lazy) == sorted(set(lazy))
    assert list(whole) == sorted(set(whole))
    assert all(a <= b for a, b in zip(lazy, whole, strict=True))
    assert lazy[-1] == whole[-1], "every cell that is built is needed by the last exit or by an earlier one"


@given(configs())
@moderate
def test_staged_equals_whole_and_keep_commutes_with_advance(config: MSDNetConfig) -> None:
    torch.manual_seed(0)
    side = config.smallest_side + 7
    network = settle(create_network(config), side)
    images = torch.randn(6, config.input_channels, side, side)
    rows = torch.randperm(6)[:3]
    with torch.inference_mode():
        whole = network(images)
        assert all(map(close, run_stages(network, images), whole))
        state = network.begin(images)
        for reference in whole:
            kept, _ = network.advance(network.keep(state, rows))  # keep, then advance
            logits, state = network.advance(state)  # advance, then keep
            assert close(kept, logits[rows], scale=reference)


@given(configs())
@moderate
def test_every_grid_can_be_drawn(config: MSDNetConfig) -> None:
    grid = Grid(config)
    assert draw_svg(grid).count("<title>") == len(grid.cells)
    assert len(draw_text(grid).splitlines()) == config.scales + 2  # nine layers fit into one band
