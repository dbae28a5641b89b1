"""What a recipe does to training images: shapes and ranges stay, labels follow the pixels, draws follow the seed."""

import pytest
import torch
from torch import Tensor

from msdnet.data import UNREADABLE, Batch, Epoch, Normalisation, Shard
from msdnet.data.base import batches_at_once
from msdnet.training.augmentation import DISTORTIONS, augmented_batches, distort, erase, mix
from msdnet.training.recipe import Augmentation, Recipe
from tests.helpers import ColouredSquares

EVERYTHING = Augmentation(distort=0.8, erase=0.5, mixup=0.3, cutmix=0.5)
NAMES = [operation.__name__.strip("_") for operation in DISTORTIONS]


def recipe(augmentation: Augmentation, epochs: int = 4) -> Recipe:
    return Recipe(epochs=epochs, batch_size=16, augmentation=augmentation)


def batches(augmentation: Augmentation, epoch: Epoch) -> list[Batch]:
    return list(augmented_batches(ColouredSquares(), recipe(augmentation), epoch))


def same(ours: list[Batch], theirs: list[Batch]) -> bool:
    pairs = zip(ours, theirs, strict=True)
    return all(torch.equal(a.images, b.images) and torch.equal(a.labels, b.labels) for a, b in pairs)


def test_without_any_the_batches_are_those_of_the_data() -> None:
    epoch = Epoch(16, 1, seed=3)
    assert same(batches(Augmentation(), epoch), list(ColouredSquares().training_batches(epoch)))


@pytest.mark.parametrize("name", ["distort", "erase", "mixup", "cutmix"])
def test_each_changes_its_share_of_the_images(name: str) -> None:
    epoch = Epoch(96, 0)
    data = ColouredSquares()
    data._images.clamp_(-1, 1)  # what bytes can be: a distortion goes through them
    (plain,) = data.training_batches(epoch)
    for share in (0.25, 1.0):
        (made,) = augmented_batches(data, recipe(Augmentation(**{name: share})), epoch)
        assert made.images.shape == plain.images.shape
        assert made.images.dtype == plain.images.dtype
        changed = float((made.images != plain.images).flatten(1).any(dim=1).float().mean())
        assert share - 0.15 < changed <= min(1, share + 0.15)


def test_draws_follow_from_seed_epoch_and_step_alone() -> None:
    whole = batches(EVERYTHING, Epoch(16, 2, seed=5))
    assert same(whole, batches(EVERYTHING, Epoch(16, 2, seed=5)))
    assert same(whole[4:], batches(EVERYTHING, Epoch(16, 2, seed=5, first=4))), "resumed in the middle"
    images = torch.ones(16, 3, 12, 12)

    def holes(epoch: Epoch) -> list[Tensor]:
        """What is erased of images that are all alike, so that only the draws can differ."""
        data = ColouredSquares()
        data.training_batches = lambda _: iter([Batch(images, torch.zeros(16))] * 2)  # type: ignore[method-assign, assignment]
        return [batch.images for batch in augmented_batches(data, recipe(Augmentation(erase=1)), epoch)]

    first = holes(Epoch(16, 0))
    assert not torch.equal(first[0], first[1]), "steps differ"
    for other in (Epoch(16, 1), Epoch(16, 0, seed=1), Epoch(16, 0, shard=Shard(1, 2))):
        assert not torch.equal(first[0], holes(other)[0])


@pytest.mark.parametrize("length", [1, 2, 4, 6])
def test_an_epoch_can_be_taken_up_at_any_batch_of_a_run(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msdnet.data.base.NUMBERS_AT_ONCE", length * 16 * 3 * 12 * 12)
    assert batches_at_once(Epoch(16, 0), 3 * 12 * 12) == length
    whole = batches(EVERYTHING, Epoch(16, 2, seed=5))
    assert len(whole) == 6
    for first in range(6):
        assert same(whole[first:], batches(EVERYTHING, Epoch(16, 2, seed=5, first=first)))
    runs = [whole[k] for k in range(0, 6, length)]
    assert len({batch.images.sum().item() for batch in runs}) == len(runs), "each run has draws of its own"


def test_the_last_epochs_may_be_plain() -> None:
    augmentation = Augmentation(distort=1, mixup=1, until=0.5)
    for number in range(4):
        plain = list(ColouredSquares().training_batches(Epoch(16, number)))
        made = batches(augmentation, Epoch(16, number))
        assert torch.equal(plain[0].images, made[0].images) == (number >= 2)
        assert made[0].labels.shape == (16, 3), "labels keep their form, as a captured step needs"
    assert torch.equal(made[0].labels.argmax(dim=1), plain[0].labels)


@pytest.mark.parametrize(("share", "epochs"), [(0.07, 100), (0.55, 100), (0.14, 50), (0.28, 25)])
def test_a_share_of_the_epochs_is_no_epoch_more(share: float, epochs: int) -> None:
    data, first_plain = ColouredSquares(), round(share * epochs)
    wanted = recipe(Augmentation(erase=1.0, until=share), epochs)
    for number, plain in ((first_plain - 1, False), (first_plain, True)):
        epoch = Epoch(16, number)
        assert same(list(augmented_batches(data, wanted, epoch)), list(data.training_batches(epoch))) == plain


def test_many_classes_are_mixed_in_fewer_images_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    data = ColouredSquares(train=512)
    data.classes = tuple(map(str, range(5_000)))
    monkeypatch.setattr("msdnet.data.base.NUMBERS_AT_ONCE", 32 * 5_000)
    made = []

    def noted(batch: Batch, *_: object) -> Batch:
        made.append(batch.labels.shape)
        return batch

    monkeypatch.setattr("msdnet.training.augmentation.mix", noted)
    list(augmented_batches(data, recipe(Augmentation(mixup=0.5)), Epoch(16, 0)))
    assert set(made) == {(32, 5_000)}


def test_images_that_are_not_square_keep_their_angles() -> None:
    """A line across the middle, turned by 45 degrees, goes as far down as it goes to the side."""
    image = torch.full((1, 1, 16, 64), 0.5)
    image[:, :, 7:9] = 1.0
    rotate = DISTORTIONS.index(next(one for one in DISTORTIONS if one.__name__ == "_rotate"))
    turned = DISTORTIONS[rotate](image, torch.ones(1, 1, 1, 1))[0, 0]
    bright = [(row - 7.5, turned[row].argmax().item() - 31.5) for row in (3, 5, 10, 12)]
    assert [abs(across) for _, across in bright] == pytest.approx([abs(down) for down, _ in bright], abs=1.01)


def test_labels_are_mixed_as_the_pixels_are() -> None:
    """Images of one value each: the mean of the pixels is then the mixture."""
    values = torch.arange(8.0)
    batch = Batch(values[:, None, None, None].expand(8, 3, 10, 10).clone(), torch.eye(8))
    kind, share, centre = torch.linspace(0, 0.99, 8), torch.linspace(0.05, 0.95, 8), torch.rand(8, 2)
    for augmentation in (Augmentation(mixup=1), Augmentation(cutmix=1), Augmentation(mixup=0.3, cutmix=0.3)):
        images, labels = mix(batch, augmentation, kind, share, centre)
        assert torch.allclose(labels.sum(dim=1), torch.ones(8))
        assert torch.allclose(labels @ values, images.mean(dim=(1, 2, 3)), atol=1e-5)
    blended = mix(batch, Augmentation(mixup=1), kind, share, centre)
    assert torch.allclose(blended.labels.diagonal(), share)
    assert (blended.images == blended.images[:, :, :1, :1]).all(), "mixup is the same everywhere"
    pasted = mix(batch, Augmentation(cutmix=1), kind, share, centre)
    assert all(len(image.unique()) <= 2 for image in pasted.images), "CutMix pastes and never blends"
    few = mix(batch, Augmentation(mixup=0.3, cutmix=0.3), kind, share, centre)
    assert torch.equal(few.labels[kind >= 0.6], batch.labels[kind >= 0.6])


def test_a_pasted_rectangle_takes_the_area_drawn_where_it_fits() -> None:
    batch = Batch(torch.cat([torch.zeros(1, 3, 40, 40), torch.ones(1, 3, 40, 40)]), torch.eye(2))
    middle = torch.full((2, 2), 0.5)
    _, labels = mix(batch, Augmentation(cutmix=1), torch.zeros(2), torch.tensor([0.75, 0.36]), middle)
    assert labels.diagonal().tolist() == pytest.approx([0.75, 0.36], abs=0.01)


@pytest.mark.parametrize("augmentation", [Augmentation(mixup=1), Augmentation(cutmix=1)])
def test_an_unreadable_image_has_no_share_of_any_class(augmentation: Augmentation) -> None:
    """And takes none from the image that it would have been mixed with."""
    data = ColouredSquares()
    data._labels[::4] = UNREADABLE
    plain = [batch.labels for batch in data.training_batches(Epoch(16, 0))]
    mixed = [batch.labels for batch in augmented_batches(data, recipe(augmentation), Epoch(16, 0))]
    for before, after in zip(plain, mixed, strict=True):
        assert 0 < (before == UNREADABLE).sum() < 16
        assert after.sum(dim=1).tolist() == pytest.approx((before != UNREADABLE).float().tolist())


def test_erasing_blanks_one_rectangle_of_the_chosen() -> None:
    chosen = torch.tensor([True, False])
    images = erase(torch.ones(2, 3, 32, 32), chosen, torch.full((2, 4), 0.5))
    assert bool((images[1] == 1).all())
    assert float((images[0] == 0).float().mean()) == pytest.approx(0.375**2)
    assert not images[0, :, 10:22, 10:22].any()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_distorted_images_keep_their_form_and_range(channels: int) -> None:
    pixels = torch.rand(40, channels, 16, 12).to(memory_format=torch.channels_last)
    made = distort(pixels, torch.linspace(-1, 1, 40), turn=5)
    assert made.shape == pixels.shape
    assert made.is_contiguous(memory_format=torch.channels_last)
    assert float(made.min()) >= 0
    assert float(made.max()) <= 1


@pytest.mark.parametrize("k", range(len(DISTORTIONS)), ids=NAMES)
def test_each_distortion_grows_with_its_level(k: int) -> None:
    """At level 0 nothing changes; at either end something does, unless the distortion is none or has no level."""
    pixels = torch.rand(1, 3, 16, 16) * 0.8 + 0.1

    def change(level: float) -> float:
        return float((distort(pixels, torch.tensor([level]), turn=k) - pixels).abs().mean())

    small, large = (max(change(-level), change(level)) for level in (0.0, 1.0))
    if NAMES[k] == "stretch":
        assert small == large > 0
    elif NAMES[k] == "identity":
        assert small == large == 0
    else:
        assert small < 0.01 < large


def test_images_take_the_distortions_in_turn() -> None:
    pixels = torch.rand(1, 3, 8, 8).expand(2 * len(DISTORTIONS), 3, 8, 8)
    level = torch.full((len(pixels),), 0.7)
    first, second = distort(pixels, level), distort(pixels, level, turn=1)
    assert torch.allclose(first[1:], second[:-1], atol=1e-6)
    assert torch.allclose(first[: len(DISTORTIONS)], first[len(DISTORTIONS) :], atol=1e-6)
    assert len({tuple(image.flatten().tolist()) for image in first[: len(DISTORTIONS)]}) == len(DISTORTIONS)


def test_shapes_move_as_their_names_say() -> None:
    pixels = torch.full((1, 3, 9, 9), 0.5)
    pixels[:, :, 4, 4] = 1

    def brightest(name: str, level: float) -> tuple[int, int]:
        made = distort(pixels, torch.tensor([level]), turn=NAMES.index(name))[0, 0]
        row, column = divmod(int(made.argmax()), 9)
        return row - 4, column - 4

    assert brightest("shift_across", 5 / 9) == (0, -2)
    assert brightest("shift_down", -5 / 9) == (2, 0)
    assert brightest("rotate", 1) == brightest("shear_down", 1) == (0, 0)


def test_normalising_can_be_undone() -> None:
    normalisation, pixels = Normalisation((0.5, 0.4, 0.3), (0.2, 0.25, 0.3)), torch.rand(2, 3, 4, 4)
    assert torch.allclose(normalisation.undo(normalisation(255 * pixels)), pixels, atol=1e-6)
