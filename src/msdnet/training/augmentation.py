"""What a recipe does to training images beside the cropping and mirroring that belong to the data.

Works on batches of any data set, on their device: one distortion of an image, a rectangle erased, another image
mixed in. All draws follow from seed, epoch and batch, so that a resumed run needs no state to go on with them.
Knows nothing of networks or losses.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice, starmap

import torch
from torch import Tensor
from torch.nn import functional

from msdnet.data.base import Batch, Epoch, ImageData, Normalisation, batches_at_once, in_runs
from msdnet.training.recipe import Augmentation, Recipe

__all__ = ["DISTORTIONS", "augmented_batches", "distort", "erase", "mix"]

# Of each image: whether to distort and how much; whether to erase and where; whether to mix, how much and where.
_DISTORT, _LEVEL, _ERASE, _ERASE_BOX, _MIX, _SHARE, _CENTRE = 0, 1, 2, slice(3, 7), 7, 8, slice(9, 11)
_DRAWS = 11


def augmented_batches(data: ImageData, recipe: Recipe, epoch: Epoch) -> Iterator[Batch]:
    """The batches of an epoch as the recipe wants them; as they come where it wants nothing.

    Several are augmented together, by as many operations as one would take. Such runs begin at the same batches
    wherever an epoch is taken up, since an image is mixed with its neighbour in the run.
    Where images may be mixed, labels are (N, classes) in every epoch: each class's share of the image.
    """
    augmentation = recipe.augmentation
    wanted = augmentation.distort or augmentation.erase or augmentation.mixes
    # Rounded, since 0.07 of 100 epochs is 7, and not a little more.
    active = wanted and epoch.number < round(augmentation.until * recipe.epochs, 9)
    most = max(math.prod(data.image_shape), len(data.classes))  # pixels, or shares of classes
    length = batches_at_once(epoch, most) if active else 1
    begin = epoch.first - epoch.first % length
    for first, run in zip(count(begin, length), in_runs(data.training_batches(replace(epoch, first=begin)), length)):
        images, labels = run[0] if len(run) == 1 else map(torch.cat, zip(*run, strict=True))
        made = Batch(images, _shares(labels, len(data.classes)) if augmentation.mixes else labels)
        if active:
            made = _augment(made, augmentation, data.normalisation, epoch, first)
        pieces = zip(made.images.chunk(len(run)), made.labels.chunk(len(run)), strict=True)
        yield from islice(starmap(Batch, pieces), max(0, epoch.first - first), None)


def _augment(batch: Batch, augmentation: Augmentation, normalisation: Normalisation, epoch: Epoch, first: int) -> Batch:
    images, labels = batch
    draws, turn = _draw(epoch, first, len(images), images.device)
    if augmentation.distort:
        chosen = draws[:, _DISTORT] < augmentation.distort
        pixels = distort(normalisation.undo(images), 2 * draws[:, _LEVEL] - 1, turn)
        images = torch.where(chosen[:, None, None, None], normalisation(255 * pixels), images)
    if augmentation.erase:
        images = erase(images, draws[:, _ERASE] < augmentation.erase, draws[:, _ERASE_BOX])
    if augmentation.mixes:
        return mix(Batch(images, labels), augmentation, draws[:, _MIX], draws[:, _SHARE], draws[:, _CENTRE])
    return Batch(images, labels)


def _draw(epoch: Epoch, first: int, rows: int, device: torch.device) -> tuple[Tensor, int]:
    """Numbers (rows, draws) between 0 and 1 for this process's share of a run, and whose turn it is among them."""
    seed = ((epoch.seed * 1_000_003 + epoch.number) * 1_000_003 + first) * 1_009 + epoch.shard.rank
    generator = torch.Generator(device).manual_seed(seed % 2**63)
    return torch.rand(rows, _DRAWS, generator=generator, device=device), seed


def _shares(labels: Tensor, classes: int) -> Tensor:
    """Labels (N) as shares (N, classes); an unreadable image has none of any class."""
    return (labels[:, None] == torch.arange(classes, device=labels.device)).float()


# --- another image mixed in


def mix(batch: Batch, augmentation: Augmentation, kind: Tensor, share: Tensor, centre: Tensor) -> Batch:
    """Blend images with their neighbours in the batch (mixup), or paste a rectangle of those into them (CutMix).

    A share of the images, chosen by `kind` (N), is blended, and another pasted into; `share` (N) is how much of
    the image itself stays, and `centre` (N, 2) the middle of the rectangle. Batches come shuffled, so that a
    neighbour is as good as any other image. Labels (N, classes) are mixed as the pixels are. An image that could not be
    read has none, and is mixed with nothing: it would count by its neighbour's, and its neighbour for less than one.
    """
    images, labels = batch
    height, width = images.shape[2:]
    side = (1 - share).sqrt()[:, None].expand(-1, 2)
    pasted = _rectangles(centre, side, height, width)
    readable = labels.any(dim=1)
    both = readable & readable.roll(1)
    pastes = both & (kind >= augmentation.mixup) & (kind < augmentation.mixup + augmentation.cutmix)
    blends = both & (kind < augmentation.mixup)
    stays = torch.where(blends, share, 1.0)[:, None, None, None] * ~(pasted & pastes[:, None, None, None])
    kept = stays.mean(dim=(1, 2, 3))[:, None]
    return Batch(
        torch.lerp(images.roll(1, 0), images, stays.to(images.dtype)),
        torch.lerp(labels.roll(1, 0), labels, kept),
    )


def erase(images: Tensor, chosen: Tensor, box: Tensor) -> Tensor:
    """Chosen images (N) with a rectangle at their mean colour; its centre and sides are drawn (N, 4)."""
    height, width = images.shape[2:]
    hole = _rectangles(box[:, :2], (1 + box[:, 2:]) / 4, height, width)
    return images * ~(hole & chosen[:, None, None, None])


def _rectangles(centre: Tensor, sides: Tensor, height: int, width: int) -> Tensor:
    """Masks (N, 1, height, width) of rectangles, cut off at the border; all measures in parts of the image."""
    inside = []
    for axis, size in enumerate((height, width)):
        middles = (torch.arange(size, device=centre.device) + 0.5) / size
        inside.append((middles - centre[:, axis, None]).abs() < sides[:, axis, None] / 2)
    return inside[0][:, None, :, None] & inside[1][:, None, None, :]


# --- one distortion of each image, as in TrivialAugment: a random one, by a random amount


def distort(pixels: Tensor, level: Tensor, turn: int = 0) -> Tensor:
    """One distortion of each image (N, channels, height, width) of numbers between 0 and 1, by levels (N) from -1 to 1.

    Images take the distortions in turn: they come shuffled, so that this is as random as a draw, and each
    distortion is computed for its own images alone.
    """
    result = torch.empty_like(pixels)
    for k in range(min(len(DISTORTIONS), len(pixels))):
        mine = slice(k, None, len(DISTORTIONS))
        operation = DISTORTIONS[(k + turn) % len(DISTORTIONS)]
        result[mine] = operation(pixels[mine], level[mine, None, None, None])
    return result.clamp_(0, 1)


def _identity(pixels: Tensor, level: Tensor) -> Tensor:  # noqa: ARG001
    return pixels


def _brightness(pixels: Tensor, level: Tensor) -> Tensor:
    return pixels * (1 + 0.9 * level)


def _saturation(pixels: Tensor, level: Tensor) -> Tensor:
    return torch.lerp(_grey(pixels), pixels, 1 + 0.9 * level)


def _contrast(pixels: Tensor, level: Tensor) -> Tensor:
    return torch.lerp(_grey(pixels).mean(dim=(2, 3), keepdim=True), pixels, 1 + 0.9 * level)


def _sharpness(pixels: Tensor, level: Tensor) -> Tensor:
    padded = functional.pad(pixels, (1, 1, 1, 1), mode="replicate")
    return torch.lerp(functional.avg_pool2d(padded, 3, stride=1), pixels, 1 + 0.9 * level)


def _posterise(pixels: Tensor, level: Tensor) -> Tensor:
    shades = 2 ** (8 - (6 * level.abs()).floor())
    return (pixels * shades).floor() / shades


def _solarise(pixels: Tensor, level: Tensor) -> Tensor:
    return torch.where(pixels >= 1 - level.abs(), 1 - pixels, pixels)


def _stretch(pixels: Tensor, level: Tensor) -> Tensor:  # noqa: ARG001
    """Each channel from its darkest to its brightest value over the whole range."""
    low, high = pixels.amin(dim=(2, 3), keepdim=True), pixels.amax(dim=(2, 3), keepdim=True)
    return torch.where(high > low, (pixels - low) / (high - low).clamp(min=1e-6), pixels)


def _rotate(pixels: Tensor, level: Tensor) -> Tensor:
    angle, (height, width) = level.flatten() * math.radians(45), pixels.shape[2:]
    # Across is measured in halves of the width, down in halves of the height.
    return _move(pixels, angle.cos(), -angle.sin() * height / width, angle.sin() * width / height, angle.cos())


def _shear_across(pixels: Tensor, level: Tensor) -> Tensor:
    return _move(pixels, across_by_down=0.5 * level.flatten())


def _shear_down(pixels: Tensor, level: Tensor) -> Tensor:
    return _move(pixels, down_by_across=0.5 * level.flatten())


def _shift_across(pixels: Tensor, level: Tensor) -> Tensor:
    return _move(pixels, across=0.8 * level.flatten())


def _shift_down(pixels: Tensor, level: Tensor) -> Tensor:
    return _move(pixels, down=0.8 * level.flatten())


DISTORTIONS: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    _identity,
    _brightness,
    _rotate,
    _saturation,
    _shear_across,
    _contrast,
    _shift_across,
    _sharpness,
    _shear_down,
    _posterise,
    _shift_down,
    _solarise,
    _stretch,
)


def _grey(pixels: Tensor) -> Tensor:
    """Brightness (N, 1, height, width), by the eye's weights for red, green and blue where there are three."""
    if pixels.shape[1] != 3:
        return pixels.mean(dim=1, keepdim=True)
    red, green, blue = pixels.unbind(dim=1)
    return (0.299 * red + 0.587 * green + 0.114 * blue)[:, None]


def _move(
    pixels: Tensor,
    across_by_across: Tensor | float = 1.0,
    across_by_down: Tensor | float = 0.0,
    down_by_across: Tensor | float = 0.0,
    down_by_down: Tensor | float = 1.0,
    *,
    across: Tensor | float = 0.0,
    down: Tensor | float = 0.0,
) -> Tensor:
    """Images seen through an affine map of coordinates from -1 to 1; grey where nothing was."""
    entries = (across_by_across, across_by_down, across, down_by_across, down_by_down, down)
    columns = [x if isinstance(x, Tensor) else pixels.new_full((len(pixels),), x) for x in entries]
    grid = functional.affine_grid(torch.stack(columns, dim=1).view(-1, 2, 3), list(pixels.shape), align_corners=False)
    return functional.grid_sample(pixels - 0.5, grid, align_corners=False) + 0.5
