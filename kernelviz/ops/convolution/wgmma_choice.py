"""The tile of the wgmma kernel by the sizes of a convolution. Imports neither torch nor CUDA."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration
from kernelviz.ops.convolution.geometry import Geometry
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, PTX_NAMES

DEPTH, BOX, CONSUMERS, THREADS = 64, 64, 2, 384
ROW_BYTES = 2 * DEPTH
ALIGNMENT_BYTES = 1024
SPACE = {
    "filters": (0, 128, 64),
    "pixels": (0, 256, 192, 128),
    "stages": (0, 4, 3, 5, 6),
    "boxes": (0, 2, 1, 4),
    "parts": (0, 1, 2, 3, 4, 6, 8),
}
"""What may be tuned; 0, in all of them, is the choice by size, which may also keep filters in shared memory."""
LEAST_STAGES = 3
TILES = ((128, 256), (128, 192), (128, 128), (64, 256))
"""Filters and pixels of a tile. wgmma with fewer than 128 columns is slower, so a warpgroup has 128 pixels or more."""
FLOP_PER_S = 6.0e12
"""Of a multiprocessor of an H200 with wgmma."""
BYTES_PER_S = 75e9
"""What a multiprocessor of an H200 copies from L2 while all others copy as well."""
STORE_S = 1.0e-6
"""After the products of a tile of 128 × 256, until the next ones begin."""

SHORT_STEPS, SHORT_PIXELS = 2, 192
"""With so few steps, stores take most of the time, and tiles of 192 pixels overlap them better: 148 µs on an H200 where 256
pixels took 156 (1×1, 64 to 256 channels, 56×56, 256 images)."""
ADDED_S = 1.0e-6
"""For sums of one part of a tile of 128 × 256 to be written to L2 or read there."""
MOST_PARTS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The definitions of wgmma.cu, which explains them."""

    filters: int = 128
    pixels: int = 256
    stages: int = 4
    boxes: int = 2
    resident: int = 0
    parts: int = 1

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory: filters that stay, stages, boxes of y, barriers, two words, and an alignment."""
        stage = ROW_BYTES * (self.pixels + (0 if self.resident else self.filters))
        filters = ROW_BYTES * self.filters * self.resident
        boxes = CONSUMERS * self.boxes * BOX * ROW_BYTES
        return ALIGNMENT_BYTES + filters + self.stages * (stage + 16) + boxes + 8 + 4 * CONSUMERS

    def defines(self, element: str, *, bias_relu: bool) -> dict[str, str]:
        """The macros, for elements of this C++ type."""
        return {
            "FILTERS": str(self.filters),
            "PIXELS": str(self.pixels),
            "STAGES": str(self.stages),
            "BOXES": str(self.boxes),
            "RESIDENT": str(self.resident),
            "PARTS": str(self.parts),
            "BIAS_RELU": str(int(bias_relu)),
            "ELEMENT": element,
            "ELEMENT_PTX": f'"{PTX_NAMES[element]}"',
        }


def steps(g: Geometry) -> int:
    """Copies of 64 channels of a tap that a tile needs."""
    return g.r * g.r * -(-g.c // DEPTH)


def tiles(g: Geometry, options: Options) -> int:
    """Tiles of the result."""
    return -(-g.pixels // options.pixels) * -(-g.k // options.filters)


def expected_s(g: Geometry, options: Options, processors: int) -> float:
    """A rough time: rounds of tiles or their parts, each as long as its products or its copies take, and then its stores."""
    flop = 2 * options.filters * options.pixels * DEPTH
    copied_bytes = ROW_BYTES * (options.filters + options.pixels)
    step_s = max(flop / FLOP_PER_S, copied_bytes / BYTES_PER_S)
    store_s = STORE_S * options.filters * options.pixels / (128 * 256)
    rounds = -(-tiles(g, options) * options.parts // processors)
    added_s = ADDED_S * (1 + options.parts) * store_s / STORE_S if options.parts > 1 else 0.0
    return rounds * (-(-steps(g) // options.parts) * step_s + store_s) + added_s


def with_most_stages(options: Options) -> Options:
    """As many stages as fit shared memory, at most 8."""
    fitting = (replace(options, stages=stages) for stages in range(8, LEAST_STAGES - 1, -1))
    return next((o for o in fitting if o.shared_bytes <= MOST_SHARED_BYTES), options)


def choose(g: Geometry, processors: int) -> Options:
    """The tile with the shortest expected time; for few steps, with fewer pixels.

    >>> def tile(h, c, k, r=3):
    ...     options = choose(Geometry(n=256, h=h, w=h, c=c, k=k, r=r, s=1), 132)
    ...     return options.filters, options.pixels
    >>> tile(56, 64, 64), tile(14, 256, 256), tile(7, 512, 512), tile(56, 64, 256, r=1)
    ((64, 256), (128, 256), (128, 192), (128, 192))
    """
    candidates = [Options(filters=filters, pixels=pixels) for filters, pixels in _tiles_for(g)]
    return with_most_stages(min(candidates, key=lambda o: expected_s(g, o, processors)))


def choose_parts(g: Geometry, processors: int) -> Options:
    """The tile and the number of parts of its steps with the shortest expected time.

    >>> def tile(n, h, c, k):
    ...     options = choose_parts(Geometry(n=n, h=h, w=h, c=c, k=k, r=3, s=1), 132)
    ...     return options.filters, options.pixels, options.parts
    >>> tile(256, 14, 256, 256), tile(2, 16, 1280, 1280)
    ((128, 256, 1), (128, 128, 3))
    """
    most = min(MOST_PARTS, steps(g))
    candidates = [
        Options(filters=filters, pixels=pixels, parts=parts)
        for filters, pixels in _tiles_for(g)
        for parts in range(1, most + 1)
    ]
    return with_most_stages(min(candidates, key=lambda o: expected_s(g, o, processors)))


def _tiles_for(g: Geometry) -> tuple[tuple[int, int], ...]:
    short = steps(g) <= SHORT_STEPS
    return tuple((f, p) for f, p in TILES if not short or f < 128 or p <= SHORT_PIXELS)


def with_resident_filters(g: Geometry, options: Options) -> Options:
    """The same tile with all filters in shared memory, if there is one tile of filters and they leave room for the pixels."""
    resident = with_most_stages(replace(options, resident=steps(g)))
    fits = g.k <= options.filters and options.parts == 1 and resident.shared_bytes <= MOST_SHARED_BYTES
    return resident if fits else options


def admits(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: no such tile, shared memory, more parts than steps, or a tile that is mostly empty."""
    c = configuration
    if not all(c.values()):
        return "0 is the choice by size, in all parameters or in none"
    options = Options(**c)
    if (options.filters, options.pixels) not in TILES:
        return "a warpgroup would have fewer than 128 pixels" if options.pixels < 256 else "there is no such tile"
    if options.shared_bytes > MOST_SHARED_BYTES:
        return f"needs {options.shared_bytes:,} bytes of shared memory"
    g = Geometry(**problem.sizes)
    if options.parts > steps(g):
        return f"a tile has {steps(g)} steps"
    if options.filters > max(2 * g.k, 64):
        return "filters is more than twice the number of filters"
    return None
