"""Synthetic JPEG files, a dataset that decodes and crops them, and loaders by variant.

The images are smooth (random pixels of an eighth of the size, enlarged) with some noise, because noise alone would make JPEG
files that are much larger than those of photographs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

try:
    from PIL import Image
except ImportError as error:
    raise ImportError(
        "images are decoded by Pillow, which is not installed; install it by `pip install pillow`"
    ) from error

_QUALITY = 90
_NOISE = 6


@dataclass(frozen=True, slots=True)
class Loading:
    """How a variant loads."""

    workers: int = 0
    persistent: bool = False
    prefetch: int | None = None
    pinned: bool = False
    threads: int | None = None
    """For operations of torch in this process; None: as many as it has by default."""


LOADINGS: Mapping[str, Loading] = {
    "workers_0": Loading(),
    "workers_0_one_thread": Loading(threads=1),
    **{f"workers_{count}": Loading(count) for count in (1, 2, 4, 8, 16)},
    "workers_4_persistent": Loading(4, persistent=True),
    "workers_4_prefetch_8": Loading(4, persistent=True, prefetch=8),
    "workers_4_pinned": Loading(4, persistent=True, pinned=True),
}


def write_images(folder: Path, files: int, pixels: int, seed: int) -> list[Path]:
    """Write so many JPEG files of pixels × pixels, and return their paths."""
    paths, numbers = [], np.random.default_rng(seed)
    for i in range(files):
        small = numbers.integers(0, 256, (max(1, pixels // 8), max(1, pixels // 8), 3), dtype=np.uint8)
        smooth = np.asarray(Image.fromarray(small).resize((pixels, pixels), Image.Resampling.BICUBIC), dtype=np.int16)
        noisy = smooth + numbers.integers(-_NOISE, _NOISE + 1, smooth.shape, dtype=np.int16)
        path = folder / f"{i:05d}.jpg"
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(path, quality=_QUALITY)
        paths.append(path)
    return paths


def decoded(path: Path, crop: int, seed: int) -> torch.Tensor:
    """A crop of a file at a place that the seed decides, as bytes of shape (3, crop, crop)."""
    with Image.open(path) as image:
        whole = image.convert("RGB")
    spare_x, spare_y = max(0, whole.width - crop), max(0, whole.height - crop)
    # A linear congruential step (Numerical Recipes) spreads neighbouring seeds over the places.
    place = (seed * 1_664_525 + 1_013_904_223) % 2**32
    x, y = place % (spare_x + 1), place // 7919 % (spare_y + 1)
    pixels = np.asarray(whole.crop((x, y, x + crop, y + crop)))
    # NumPy reorders in this thread. torch would use all cores here without workers and one core in a worker; on busy cores its
    # threads wait for each other (64 images of 112 pixels: 30 ms by one thread, 250 to 690 ms by two), which is no decoding.
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


class Images(Dataset[tuple[torch.Tensor, int]]):
    """Crops of files, with their numbers: image i is of file i modulo the number of files."""

    def __init__(self, paths: list[Path], images: int, crop: int) -> None:
        self._paths, self._images, self._crop = paths, images, crop

    def __len__(self) -> int:
        return self._images

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return decoded(self._paths[i % len(self._paths)], self._crop, i), i


PREFETCH = 2
"""Batches that DataLoader prefetches for each worker unless it is told otherwise."""
_MORE_BATCHES = 2
"""Besides those that are prefetched, one is used and one is on its way."""


def shared_bytes(how: Loading, batch: int, crop: int) -> int:
    """The most bytes of batches that workers hold in shared memory at once (images of three colours, a byte each).

    >>> shared_bytes(Loading(16), 64, 224), shared_bytes(Loading(), 64, 224)
    (327548928, 0)
    """
    batches = how.workers * (how.prefetch or PREFETCH) + _MORE_BATCHES if how.workers else 0
    return batches * batch * 3 * crop * crop


def loader(images: Images, batch: int, how: Loading) -> DataLoader[tuple[torch.Tensor, int]]:
    """The loader of a variant."""
    more: dict[str, Any] = {"persistent_workers": how.persistent} if how.workers else {}
    if how.prefetch is not None:
        more["prefetch_factor"] = how.prefetch
    return DataLoader(images, batch_size=batch, num_workers=how.workers, pin_memory=how.pinned, **more)


class WrongImages(Exception):
    """A loader gave other images than the dataset has. `wrong`: how many of them."""

    def __init__(self, wrong: int) -> None:
        self.wrong = wrong
        super().__init__(f"{wrong} images are missing, doubled or have other pixels")


def checksums(images: Images) -> list[int]:
    """The sum of the pixels of each image, decoded in this process."""
    return [int(images[i][0].sum(dtype=torch.int64)) for i in range(len(images))]


def check(batches: Any, expected: list[int]) -> None:
    """Errors: WrongImages unless the batches have each image exactly once, with its pixels."""
    wrong = dict.fromkeys(range(len(expected)), 0)
    seen = dict.fromkeys(wrong, 0)
    for pixels, numbers in batches:
        sums = pixels.flatten(1).sum(1, dtype=torch.int64).tolist()
        for number, total in zip(numbers.tolist(), sums, strict=True):
            seen[number] = seen.get(number, 0) + 1
            wrong[number] = wrong.get(number, 0) + (number >= len(expected) or total != expected[number])
    bad = sum(wrong[i] > 0 or seen[i] != 1 for i in wrong) + sum(n not in wrong for n in seen)
    if bad:
        raise WrongImages(bad)
