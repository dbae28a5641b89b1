import dataclasses
from pathlib import Path
from typing import Any

import pytest

from msdnet.tables import from_mapping
from msdnet.training import Recipe, load_recipe, recipe_names
from msdnet.training.schedule import learning_rate


def test_the_papers_recipe_is_section_5() -> None:
    recipe = load_recipe("paper")
    assert (recipe.epochs, recipe.batch_size, recipe.schedule.drop_epochs) == (300, 64, (150, 225))
    sgd = recipe.optimiser
    assert (sgd.learning_rate, sgd.momentum, sgd.nesterov, sgd.weight_decay) == (0.1, 0.9, True, 1e-4)
    assert sgd.decay_norms_and_biases
    plain = Recipe(epochs=1, batch_size=1)
    assert recipe.loss == plain.loss, "plain cross-entropy, all exits alike"
    assert recipe.augmentation == plain.augmentation, "cropped and mirrored, which is the data's, and no more"
    assert not plain.augmentation.mixes
    imagenet = load_recipe("paper_imagenet")
    assert (imagenet.epochs, imagenet.batch_size, imagenet.schedule.drop_epochs) == (90, 256, (30, 60))
    assert imagenet.optimiser == sgd


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_of_the_package_loads_and_round_trips(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert from_mapping(Recipe, dataclasses.asdict(recipe), "recipe") == recipe


def test_learning_rate_drops_where_the_paper_says() -> None:
    recipe = load_recipe("paper")
    rates = [learning_rate(recipe, epoch) for epoch in (0, 149.99, 150, 224.99, 225, 299.99)]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


@pytest.mark.parametrize("kind", ["cosine", "one_cycle"])
def test_learning_rate_rises_to_its_peak_and_falls_to_zero(kind: str) -> None:
    recipe = from_mapping(
        Recipe,
        {
            "epochs": 10,
            "batch_size": 1,
            "optimiser": {"learning_rate": 2.0},
            "schedule": {"kind": kind, "warmup_epochs": 2},
        },
        "recipe",
    )
    assert [learning_rate(recipe, epoch) for epoch in (0, 1, 2, 6, 10)] == pytest.approx([0, 1, 2, 1, 0])


def test_lasting_moves_the_schedule_along() -> None:
    schedule = load_recipe("paper").lasting(30).schedule
    assert schedule.drop_epochs == pytest.approx((15, 22.5))
    assert load_recipe("fast").lasting(30).schedule.warmup_epochs == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("epochs = 3", ValueError, "must have the field 'batch_size'"),
        ("epochs = 3\nbatch_size = 4\nbatchsize = 4", ValueError, "no field 'batchsize'; did you mean 'batch_size'?"),
        ("epochs = 3\nbatch_size = 4\n[optimizer]", ValueError, "no field 'optimizer'; did you mean 'optimiser'?"),
        (
            "epochs = 3\nbatch_size = 4\n[optimiser]\nmomentun = 1",
            ValueError,
            "optimiser: has no field 'momentun'; did you",
        ),
        (
            "epochs = 3\nbatch_size = 4\n[augmentation]\ncut_mix = 1",
            ValueError,
            "augmentation: has no field 'cut_mix'; did you mean 'cutmix'?",
        ),
        *(
            (
                f"epochs = 3\nbatch_size = 4\n[augmentation]\n{name} = 1.5",
                ValueError,
                f"augmentation: {name} must be at least 0 and at most 1, got 1.5",
            )
            for name in ("distort", "erase", "mixup", "cutmix", "until")
        ),
        (
            "epochs = 3\nbatch_size = 4\n[augmentation]\nmixup = 0.6\ncutmix = 0.5",
            ValueError,
            "mixup and cutmix must be at most 1 together, got 0.6 and 0.5",
        ),
        ("epochs = 3\nbatch_size = '4'", TypeError, "batch_size must be a whole number, got '4'"),
        ("epochs = 0\nbatch_size = 4", ValueError, "epochs must be at least 1, got 0"),
        ("epochs = 3\nbatch_size = 4\noptimiser = 3", TypeError, "optimiser: must be a table of fields, got int"),
        (
            "epochs = 3\nbatch_size = 4\n[schedule]\nkind = 'step'",
            ValueError,
            "kind must be one of steps, cosine, one_cycle",
        ),
        (
            "epochs = 3\nbatch_size = 4\n[schedule]\nkind = 'cosine'\ndrop_epochs = [1]",
            ValueError,
            "drop_epochs belong to",
        ),
        (
            "epochs = 3\nbatch_size = 4\n[optimiser]\nlearning_rate = nan",
            ValueError,
            "learning_rate must be above 0, got nan",
        ),
        (
            "epochs = 3\nbatch_size = 4\n[loss]\nlabel_smoothing = 2",
            ValueError,
            "label_smoothing must be at least 0 and at most 1",
        ),
        (
            "epochs = 3\nbatch_size = 4\n[loss.exit_weights]\ngiven = [1]\nuniform = {low=0, high=1}",
            ValueError,
            "in one way",
        ),
        (
            "epochs = 3\nbatch_size = 4\n[loss.exit_weights.exponential]\nmean = -1",
            ValueError,
            "mean must be above 0, got -1",
        ),
        ("epochs = 3\nbatch_size = ", ValueError, "Invalid value"),
        (
            "epochs = 3\nbatch_size = 4\naverage_decay = 1",
            ValueError,
            "average_decay must be at least 0 and below 1, got 1",
        ),
        (
            "epochs = 3\nbatch_size = 4\n[schedule]\nwarmup_epochs = 3",
            ValueError,
            "warmup_epochs must be below the 3 epochs",
        ),
        (
            "epochs = 3\nbatch_size = 4\n[loss.distillation]\nweight = -1",
            ValueError,
            "mine.toml: loss: distillation: weight",
        ),
    ],
)
def test_refuses(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(error, match=message.replace("?", r"\?")):
        load_recipe(path)


def test_an_unknown_recipe_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="unknown recipe 'papper'; did you mean 'paper'"):
        load_recipe("papper")


def test_exit_weights_can_be_written_as_budgets(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("epochs = 1\nbatch_size = 1\n[loss.exit_weights.exponential]\nmean = 3e7")
    weights: Any = load_recipe(path).loss.exit_weights
    assert weights.budgets.mean == 3e7
