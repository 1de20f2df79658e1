"""CUDA C++ kernels of `uniform_fill`, bound to tensors."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.flat_launch import FlatLaunch, one_element
from kernelviz.ops.uniform_fill.formats import bits_of

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
THREADS = 256
"""Of a block; cuda.cu has the same number."""
ROUNDS = 10
FEW_ELEMENTS = 2**14
"""Up to which the latency of one call sets the time, and an element takes the shortest way from it. H200, bf16: 1,024 elements
take 0.80 us so and 0.95 with 16 elements a call and seven rounds, 7,533 take 0.86 and 0.89, 16,384 take 0.97 and 0.95."""
CALL_BITS = 128
"""What one call of Philox gives."""


def bind_scalar(like_1: Tensor, n: int, *, rounds: int = ROUNDS) -> Launch:
    """An element a thread, of the format and device of `like_1`.

    Each call of the launch uses a new seed; a captured call keeps the seed of its capture.
    """
    out_N = like_1.new_empty(n)
    return _bind("fill_scalar", out_N, one_element(out_N), rounds)


def bind_vec16(like_1: Tensor, n: int, *, rounds: int = ROUNDS) -> Launch:
    """As many elements a thread as a call of Philox gives; the rest as `bind_scalar`."""
    blocks = -(-n // (elements_of_call(bits_of(like_1)) * THREADS))
    return _bind("fill_vec16", like_1.new_empty(n), FlatLaunch(blocks, THREADS, ctypes.c_longlong(n), {}), rounds)


def bind_by_size(like_1: Tensor, n: int, *, rounds: int = ROUNDS) -> Launch:
    """Up to 2^14 elements as `bind_scalar`, more as `bind_vec16`."""
    return (bind_scalar if n <= FEW_ELEMENTS else bind_vec16)(like_1, n, rounds=rounds)


def elements_of_call(bits: int) -> int:
    """Elements that 128 bits are enough for, in slots of 8, 16 or 32 bits.

    >>> [elements_of_call(bits) for bits in (24, 11, 8)]
    [4, 8, 16]
    """
    return CALL_BITS // next(slot for slot in (8, 16, 32) if slot >= bits)


def defines(like_1: Tensor, rounds: int) -> dict[str, str]:
    """What the kernels are compiled with."""
    return {"ELEMENT": nvrtc.element_type(like_1.dtype), "BITS": str(bits_of(like_1)), "ROUNDS": str(rounds)}


def _bind(name: str, out_N: Tensor, flat: FlatLaunch, rounds: int) -> Launch:
    kernel, seeds = nvrtc.kernel(SOURCE, name, {**defines(out_N, rounds), **flat.defines}), itertools.count(1)

    def launch() -> Tensor:
        seed = ctypes.c_ulonglong(next(seeds))
        nvrtc.launch(kernel, flat.blocks, flat.threads, out_N.data_ptr(), flat.size, seed)
        return out_N

    return launch
