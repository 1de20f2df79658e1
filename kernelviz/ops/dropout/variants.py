"""The variants of `dropout`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.dropout.reference import KEEP_PROBABILITY, P

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def composite_eager(x_N: Tensor) -> Launch:
    """Single torch ops: random numbers, a mask, two products; each writes a vector that the next one reads."""
    import torch

    def launch() -> Tensor:
        keep_N = torch.rand_like(x_N, dtype=torch.float32) >= P
        return x_N * keep_N * (1 / KEEP_PROBABILITY)

    return launch


@variant(backend="torch")
def torch_eager(x_N: Tensor) -> Launch:
    """torch.nn.functional.dropout: on a GPU one kernel, which also writes an unused mask of one byte per element."""
    from torch.nn import functional

    return lambda: functional.dropout(x_N, P, training=True)


@variant(backend="torch")
def torch_saved_mask(x_N: Tensor) -> Launch:
    """torch.native_dropout, which stores the mask for a backward pass: a quarter more bytes in half precision."""
    import torch

    saved: list[Tensor] = []

    def launch() -> Tensor:
        y_N, mask_N = torch.native_dropout(x_N, P, True)
        saved[:] = [mask_N]
        return y_N

    return launch


def dropout(x_N: Tensor) -> Tensor:
    """What is compiled."""
    from torch.nn import functional

    return functional.dropout(x_N, P, training=True)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_N: Tensor) -> Launch:
    """torch.compile: Philox inside one Triton kernel made by inductor, no mask stored; a second kernel draws its seed."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(dropout, x_N)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_rand(x_N: Tensor) -> Launch:
    """Triton, tl.rand of a seed and the index: no mask is stored, but three of four numbers of each Philox call are not used."""
    from kernelviz.ops.dropout import triton as kernels

    return kernels.bind_rand(x_N, P)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_philox(x_N: Tensor) -> Launch:
    """Triton, tl.randint4x: one Philox call for four elements, for eight in half precision; compared as integers."""
    from kernelviz.ops.dropout import triton as kernels

    return kernels.bind_philox(x_N, P)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_scalar(x_N: Tensor) -> Launch:
    """CUDA C++, one element per thread and Philox call, which runs while the element is loaded: for few elements."""
    from kernelviz.ops.dropout import cuda as kernels

    return kernels.bind_scalar(x_N, P)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_philox(x_N: Tensor) -> Launch:
    """CUDA C++, one Philox call for each 16-byte vector gives 32 random bits per element, 16 in half precision."""
    from kernelviz.ops.dropout import cuda as kernels

    return kernels.bind_philox(x_N, P)
