"""The axes, tensors and named sizes of an op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal, TypeAlias

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Data

if TYPE_CHECKING:
    from torch import Tensor

Sizes = Mapping[str, int]
"""The size of each axis by its name."""
Tensors: TypeAlias = "tuple[Tensor, ...]"
Ids = Literal["permutation", "labels"]
"""How whole numbers below the size of an axis are drawn. ``permutation``: all of them in random order, repeated if more are
needed, so that exactly min(count, size) different numbers occur (in ascending order if the data are ``sorted``). ``labels``: each
number is drawn independently."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """A named dimension. `default`: the sweep that a page offers first; `cpu_default`: the one on a machine without a GPU."""

    name: str
    caption: str
    default: str
    cpu_default: str


@dataclass(frozen=True, slots=True)
class Blocks:
    """A dimension with one element for each block of `size` elements of an axis, of which the last may be smaller.

    >>> str(Blocks("k", 128)), Blocks("k", 128).count({"k": 300})
    ('k/128', 3)
    """

    axis: str
    size: int

    def __str__(self) -> str:
        return f"{self.axis}/{self.size}"

    def count(self, sizes: Sizes) -> int:
        return -(-sizes[self.axis] // self.size)


@dataclass(frozen=True, slots=True)
class Product:
    """A dimension that is as long as the product of the sizes of these axes, or of their numbers of blocks.

    >>> str(Product(("g", "m"))), Product(("g", "m")).count({"g": 2, "m": 3})
    ('g·m', 6)
    >>> pages = Product(("b", Blocks("l", 16)))
    >>> str(pages), pages.count({"b": 2, "l": 33})
    ('b·l/16', 6)
    """

    axes: tuple[str | Blocks, ...]

    def __str__(self) -> str:
        return "·".join(map(str, self.axes))

    def count(self, sizes: Sizes) -> int:
        return prod(sizes[axis] if isinstance(axis, str) else axis.count(sizes) for axis in self.axes)


@dataclass(frozen=True, slots=True)
class Strided:
    """A dimension with one element for each position of a filter that is moved along an axis.

    `filter` and `stride` are axes: the side of the filter, and the step from one position to the next. The axis is padded by
    half the filter on either side, so that a filter of an odd side has a position for each element if the stride is 1.

    >>> [Strided("h", "r", "s").count({"h": 7, "r": r, "s": s}) for r, s in ((3, 1), (3, 2), (1, 2), (2, 1))]
    [7, 4, 4, 8]
    >>> str(Strided("h", "r", "s"))
    'h∗r/s'
    """

    axis: str
    filter: str
    stride: str

    def __str__(self) -> str:
        return f"{self.axis}∗{self.filter}/{self.stride}"

    def count(self, sizes: Sizes) -> int:
        side = sizes[self.filter]
        return (sizes[self.axis] + side // 2 * 2 - side) // sizes[self.stride] + 1


Dimension = str | int | Blocks | Product | Strided
"""The name of an axis, a whole number, or what is counted from sizes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorSpec:
    """A tensor of a problem: its dimensions and its dtype (None: that of the problem).

    `below` and `ids`: the tensor holds whole numbers from 0 to below the size of the axis (or product) `below`, drawn as `ids`
    says. `data`: the kind of data that it always holds, whatever the problem asks for. `values`: the whole numbers that it always
    holds, as a function of the sizes. `scales`: the tensor always holds scales of quantised numbers, uniform from 1/256 to
    3/256, as they are where 448 stands for a number from 2 to 5. `as_stored`: the reference gets the tensor
    in its own dtype, not in float64, because it reads a part of it for each slab. `offset`: the axis whose size is the number of
    bytes by which the tensor begins after an address that is aligned as torch's allocator aligns it.

    >>> TensorSpec(name="x_MN", axes=("m", "n")).shape({"m": 2, "n": 3})
    (2, 3)
    >>> TensorSpec(name="counts", axes=(256,), dtype="int64").shape({"n": 3})
    (256,)
    >>> TensorSpec(name="scales_GM", axes=(Blocks("k", 128), "m"), dtype="fp32").shape({"m": 2, "k": 256})
    (2, 2)
    """

    name: str
    axes: tuple[Dimension, ...]
    dtype: str | None = None
    below: str | Product | None = None
    ids: Ids = "permutation"
    data: Data | None = None
    values: Callable[[Sizes], Sequence[int]] | None = None
    scales: bool = False
    as_stored: bool = False
    offset: str | None = None

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        def count(dimension: Dimension) -> int:
            match dimension:
                case int():
                    return dimension
                case str():
                    return sizes[dimension]
                case Blocks() | Product() | Strided():
                    return dimension.count(sizes)

        return tuple(map(count, self.axes))

    def below_number(self, sizes: Sizes) -> int | None:
        """The number that all whole numbers of the tensor are below; None if it holds no such numbers.

        >>> TensorSpec(name="t", axes=("m",), below=Product(("m", "n"))).below_number({"m": 2, "n": 3})
        6
        """
        return self.below.count(sizes) if isinstance(self.below, Product) else sizes[self.below] if self.below else None

    def offset_bytes(self, sizes: Sizes) -> int:
        """The bytes by which the tensor begins after an aligned address; 0 where the problem does not state an offset.

        >>> spec = TensorSpec(name="x_N", axes=("n",), offset="o")
        >>> spec.offset_bytes({"n": 4, "o": 8}), spec.offset_bytes({"n": 4})
        (8, 0)
        """
        return 0 if self.offset is None else sizes.get(self.offset, 0)

    def elements(self, sizes: Sizes) -> int:
        return prod(self.shape(sizes))

    def size_bytes(self, sizes: Sizes, dtype: str) -> int:
        return self.elements(sizes) * dtype_named(self.dtype or dtype).itemsize_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """Named sizes, for example those of a model: the text that a person would type for each axis."""

    name: str
    caption: str
    sizes: Mapping[str, str]
