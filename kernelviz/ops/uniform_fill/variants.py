"""The variants of `uniform_fill` in the order of the ladder: libraries, a call of Philox per element, then one for several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import TARGETS, Launch, variant

if TYPE_CHECKING:
    from torch import Tensor

EVERY_TARGET = (*TARGETS, "sm_120")


@variant(backend="torch")
def torch_eager(like_1: Tensor, *, n: int) -> Launch:
    """Tensor.uniform_ of a buffer that was allocated before: on a GPU one kernel, Philox of four numbers a call."""
    import torch

    out_N = torch.empty(n, dtype=like_1.dtype, device=like_1.device)
    return lambda: out_N.uniform_()


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(like_1: Tensor, *, n: int) -> Launch:
    """torch.compile of torch.rand in fp32; half precision is cut in the same kernel, because torch.rand would round to 1."""
    import torch

    from kernelviz.ops.kernels.inductor import compiled
    from kernelviz.ops.uniform_fill.formats import bits_of

    steps = float(2 ** bits_of(like_1))

    def fill(like_1: Tensor) -> Tensor:
        y_N = torch.rand(n, dtype=torch.float32, device=like_1.device)
        if like_1.dtype == torch.float32:
            return y_N
        return (torch.floor(y_N * steps) / steps).to(like_1.dtype)

    return compiled(fill, like_1)


@variant(backend="triton", needs=("triton", "cuda"), targets=EVERY_TARGET)
def triton_rand(like_1: Tensor, *, n: int) -> Launch:
    """Triton, tl.rand of a seed and the index: three of the four numbers of each Philox call are not used."""
    from kernelviz.ops.uniform_fill import triton as kernels

    return kernels.bind_rand(like_1, n)


@variant(backend="triton", needs=("triton", "cuda"), targets=EVERY_TARGET)
def triton_philox(like_1: Tensor, *, n: int) -> Launch:
    """Triton, tl.randint4x: one Philox call for four elements, for eight in half precision."""
    from kernelviz.ops.uniform_fill import triton as kernels

    return kernels.bind_philox(like_1, n)


@variant(backend="cuda", needs=("nvrtc", "cuda"), targets=EVERY_TARGET)
def cuda_scalar(like_1: Tensor, *, n: int) -> Launch:
    """CUDA C++, one element per thread and Philox call: the arithmetic of ten rounds takes longer than writing its result."""
    from kernelviz.ops.uniform_fill import cuda as kernels

    return kernels.bind_scalar(like_1, n)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",), targets=EVERY_TARGET)
def cuda_philox(like_1: Tensor, *, n: int) -> Launch:
    """CUDA C++, one Philox call for 4 elements, 8 in fp16, 16 in bf16, by the bits that a format needs; 16-byte stores."""
    from kernelviz.ops.uniform_fill import cuda as kernels

    return kernels.bind_vec16(like_1, n)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",), targets=EVERY_TARGET)
def cuda_philox_7(like_1: Tensor, *, n: int) -> Launch:
    """CUDA C++, seven rounds, which pass BigCrush according to Philox's authors; up to 2^14 elements, each has a call."""
    from kernelviz.ops.uniform_fill import cuda as kernels

    return kernels.bind_by_size(like_1, n, rounds=7)


VARIANTS = (
    torch_eager,
    torch_compile,
    triton_rand,
    triton_philox,
    cuda_scalar,
    cuda_philox,
    cuda_philox_7,
)
