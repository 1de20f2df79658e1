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
class Product:
    """A dimension that is as long as the product of the sizes of these axes.

    >>> str(Product(("g", "m")))
    'g·m'
    """

    axes: tuple[str, ...]

    def __str__(self) -> str:
        return "·".join(self.axes)

    def size(self, sizes: Sizes) -> int:
        return prod(sizes[axis] for axis in self.axes)


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorSpec:
    """A tensor of a problem: its dimensions as names of axes, products of axes or whole numbers, and its dtype (None: that of the
    problem).

    `below` and `ids`: the tensor holds whole numbers from 0 to below the size of the axis `below`, drawn as `ids` says.
    `data`: the kind of data that it always holds, whatever the problem asks for. `values`: the whole numbers that it always
    holds, as a function of the sizes.

    >>> TensorSpec(name="x_MN", axes=("m", "n")).shape({"m": 2, "n": 3})
    (2, 3)
    >>> TensorSpec(name="counts", axes=(256,), dtype="int64").shape({"n": 3})
    (256,)
    >>> TensorSpec(name="x_TK", axes=(Product(("g", "m")), "k")).shape({"g": 2, "m": 3, "k": 5})
    (6, 5)
    """

    name: str
    axes: tuple[str | int | Product, ...]
    dtype: str | None = None
    below: str | None = None
    ids: Ids = "permutation"
    data: Data | None = None
    values: Callable[[Sizes], Sequence[int]] | None = None

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        def size(axis: str | int | Product) -> int:
            match axis:
                case int():
                    return axis
                case str():
                    return sizes[axis]
                case Product():
                    return axis.size(sizes)

        return tuple(map(size, self.axes))

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
