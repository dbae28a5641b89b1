import pytest

from msdnet import MSDNetConfig, even, preset_config
from msdnet.plan import IMAGE, Cell, Grid


def cells(*pairs: tuple[int, int]) -> set[Cell]:
    return {Cell(*pair) for pair in pairs}


def test_first_stage_is_the_diagonal_block_of_the_paper() -> None:
    """Of layers 3 and 4, an exit at layer 4 needs neither the finest maps nor layer 4's middle one."""
    first = Grid(preset_config("cifar_anytime")).lazy_stages[0]
    assert set(first.computes) == {Cell(layer, scale) for layer in range(5) for scale in (1, 2, 3)} - cells(
        (3, 1), (4, 1), (4, 2)
    )
    assert first.exit == Cell(4, 3)


def test_second_stage_computes_what_the_first_left_out() -> None:
    second = Grid(preset_config("cifar_anytime")).lazy_stages[1]
    assert set(second.computes) == cells((3, 1), (4, 1), (4, 2), (5, 2), (5, 3), (6, 3))


def test_a_stage_hands_on_one_map_for_each_scale_still_in_use() -> None:
    stages = Grid(preset_config("cifar_anytime_7")).lazy_stages
    assert set(stages[0].hands_on) == cells((2, 1), (3, 2), (4, 3))
    assert set(stages[4].hands_on) == cells((11, 2), (12, 3))  # the finest scale was given up at layer 7
    assert set(stages[5].hands_on) == cells((14, 3))
    assert stages[6].hands_on == ()


def test_blocks_give_up_one_scale_each_and_halve_the_channels() -> None:
    grid = Grid(preset_config("cifar_anytime"))  # 24 layers in blocks of 8
    assert [len(grid.scales_of(layer)) for layer in (0, 1, 8, 9, 16, 17, 24)] == [3, 3, 3, 2, 2, 1, 1]
    first_after = grid.cells[Cell(9, 2)]
    assert first_after.strided == Cell(8, 1), "the layer that drops a scale still reads it"
    assert first_after.channels == 2 * ((16 + 9 * 6) // 2)
    assert {cell.layer for cell, wiring in grid.cells.items() if wiring.transition} == {9, 17}


def test_tail_shrinks_over_the_last_layers() -> None:
    grid = Grid(MSDNetConfig(exits=(4, 8, 12), reduction="tail"))
    assert [len(grid.scales_of(layer)) for layer in (0, 1, 10, 11, 12)] == [3, 3, 3, 2, 1]
    assert {cell.layer for cell, wiring in grid.cells.items() if wiring.transition} == {4, 8}


def test_tail_of_a_network_shallower_than_its_scales_still_seeds_them_all() -> None:
    grid = Grid(MSDNetConfig(exits=(1,), reduction="tail"))
    assert set(grid.cells) == cells((0, 1), (0, 2), (0, 3), (1, 3))


def test_cells_that_no_exit_reads_are_not_built() -> None:
    grid = Grid(MSDNetConfig(exits=(4,), reduction="none"))
    assert set(grid.cells) == {Cell(layer, scale) for layer in range(5) for scale in (1, 2, 3)} - cells(
        (3, 1), (4, 1), (4, 2)
    )


def test_layers_past_the_last_exit_only_stretch_the_blocks() -> None:
    grid = Grid(MSDNetConfig(exits=(2, 4), layers=12))
    assert max(cell.layer for cell in grid.cells) == 4
    assert len(grid.scales_of(4)) == 3


def test_without_dense_connections_a_layer_is_as_wide_as_its_growth() -> None:
    grid = Grid(MSDNetConfig(exits=even(4, 2, 3), dense=False))
    assert all(wiring.channels == 6 * 2 ** (cell.scale - 1) for cell, wiring in grid.cells.items() if cell.layer > 0)
    assert all(wiring.transition is None for wiring in grid.cells.values())


def test_one_scale_at_a_time_takes_a_strided_step_between_blocks() -> None:
    grid = Grid(MSDNetConfig(exits=(2, 4, 6), multi_scale=False))
    assert set(grid.cells) == cells((0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3))
    step = grid.cells[Cell(3, 2)]
    assert (step.regular, step.strided) == (None, Cell(2, 1))
    assert step.channels == 2 * ((16 + 3 * 6) // 2), "as wide as a multi-scale network after its transition"
    assert grid.exits == (Cell(2, 1), Cell(4, 2), Cell(6, 3))


def test_plain_network_is_one_chain() -> None:
    config = MSDNetConfig(exits=(2, 4, 6), multi_scale=False, dense=False, intermediate_classifiers=False)
    grid = Grid(config)
    chain = [IMAGE, *grid.cells]
    assert [wiring.reads for wiring in grid.cells.values()] == [(cell,) for cell in chain[:-1]]
    assert [wiring.channels for wiring in grid.cells.values()] == [16, 6, 6, 12, 12, 24, 24]
    assert grid.exits == (Cell(6, 3),)


def test_a_transition_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"transition_ratio must leave at least one channel, got 0.01 at layer 3"):
        MSDNetConfig(exits=(2, 6), transition_ratio=0.01)
