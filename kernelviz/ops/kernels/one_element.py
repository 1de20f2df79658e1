"""Launch shapes of kernels with one element a thread, which are for few elements and for views that no vectors fit."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

Index = ctypes.c_uint | ctypes.c_longlong
"""An argument of a kernel: a number of elements, or an index."""
MANY_THREADS = 256
SMALL_INDEX = 2**31
"""Elements up to which the indexes of all threads, also of those without an element, fit into 32 bits."""


@dataclass(frozen=True, slots=True)
class OneElement:
    """A launch for n elements: what `one_element.cuh` is compiled with, the grid, and the index of the last element."""

    n: int
    stride: int = 1
    """Elements of an input from one that is read to the next."""

    @property
    def threads(self) -> int:
        """Threads of a block: few for few elements, so that they reach many multiprocessors.

        Up to 2^16 elements, a multiprocessor of an H200 gets at most one block. There 128 to 256 threads are the fastest for
        300 to 3,000 elements, and 512 for 40,000.

        >>> [OneElement(n).threads for n in (1, 33, 3000, 20_000, 40_000, 2**20)]
        [32, 128, 128, 256, 512, 256]
        """
        if self.n <= 32:
            return 32
        limits = {2**14: 128, 2**15: 256, 2**16: 512}
        return next((threads for most, threads in limits.items() if self.n <= most), MANY_THREADS)

    @property
    def blocks(self) -> int:
        return -(-self.n // self.threads)

    @property
    def defines(self) -> dict[str, str]:
        """
        >>> OneElement(3000).defines, OneElement(2**20, stride=4096).defines["INDEX"]
        ({'INDEX': 'unsigned', 'BLOCK_THREADS': '128'}, 'long long')
        """
        return {"INDEX": "unsigned" if self._small else "long long", "BLOCK_THREADS": str(self.threads)}

    @property
    def last(self) -> Index:
        """The index of the last element, as the kernel's INDEX."""
        return self.index(self.n - 1)

    def index(self, value: int) -> Index:
        """A number as the kernel's INDEX."""
        return ctypes.c_uint(value) if self._small else ctypes.c_longlong(value)

    @property
    def _small(self) -> bool:
        return self.n * self.stride <= SMALL_INDEX
