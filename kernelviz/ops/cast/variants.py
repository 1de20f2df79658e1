"""The variants that the casts share, in ladder order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Variant, variant

if TYPE_CHECKING:
    from torch import Tensor


def to_fp16(x_N: Tensor) -> Tensor:
    import torch

    return x_N.to(torch.float16)


def to_bf16(x_N: Tensor) -> Tensor:
    import torch

    return x_N.to(torch.bfloat16)


def to_fp8(x_N: Tensor) -> Tensor:
    import torch

    return x_N.to(torch.float8_e4m3fn)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {"float16": to_fp16, "bfloat16": to_bf16, "float8_e4m3fn": to_fp8}


def ladder(name: str, triton_targets: tuple[str, ...]) -> tuple[Variant, ...]:
    """The variants of the cast to the torch dtype called `name`, the simplest first.

    `triton_targets`: what Triton can convert to that format on.
    """

    @variant(backend="torch")
    def torch_eager(x_N: Tensor) -> Launch:
        """Tensor.copy_ into a buffer of the other format that was allocated before."""
        import torch

        out_N = torch.empty_like(x_N, dtype=getattr(torch, name))
        return lambda: out_N.copy_(x_N)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_N: Tensor) -> Launch:
        """torch.compile of Tensor.to: on a GPU one Triton kernel made by inductor, on a CPU vectorised C++."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(FUNCTIONS[name], x_N)

    @variant(backend="triton", needs=("triton", "cuda"), targets=triton_targets)
    def triton_block(x_N: Tensor) -> Launch:
        """Triton, 2048 elements per program at every size."""
        import torch

        from kernelviz.ops.cast import triton as kernels

        return kernels.bind_cast(x_N, getattr(torch, name), block=2048)

    @variant(backend="triton", needs=("triton", "cuda"), targets=triton_targets)
    def triton_known_size(x_N: Tensor) -> Launch:
        """Triton, up to 2^20 elements, or 2^25 of whole vectors, compiled for their number: no mask; others as triton_block."""
        import torch

        from kernelviz.ops.cast import triton_known_size as kernels

        return kernels.bind_known_size(x_N, getattr(torch, name))

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_scalar(x_N: Tensor) -> Launch:
        """CUDA C++, one element per thread: a warp's store fills only 64 bytes of a 128-byte line, 32 bytes in fp8."""
        import torch

        from kernelviz.ops.cast import cuda as kernels

        return kernels.bind_scalar(x_N, getattr(torch, name))

    @variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
    def cuda_vec16(x_N: Tensor) -> Launch:
        """CUDA C++, 16 bytes per load, two conversions per instruction; stores are narrower in proportion to the format."""
        import torch

        from kernelviz.ops.cast import cuda as kernels

        return kernels.bind_vec16(x_N, getattr(torch, name))

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_wide_store(x_N: Tensor) -> Launch:
        """CUDA C++, 16 bytes per store and several loads for it: each load of a warp leaves gaps, which its next load fills."""
        import torch

        from kernelviz.ops.cast import cuda as kernels

        return kernels.bind_wide_store(x_N, getattr(torch, name))

    @variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
    def cuda_vec16_unrolled(x_N: Tensor) -> Launch:
        """CUDA C++, four streaming 16-byte loads of a thread in flight before its stores: slower at 2^28."""
        import torch

        from kernelviz.ops.cast import cuda as kernels

        return kernels.bind_unrolled(x_N, getattr(torch, name))

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_adaptive(x_N: Tensor) -> Launch:
        """CUDA C++, one to four 16-byte vectors per thread by size; loads stream only while the L2 can hold the output."""
        import torch

        from kernelviz.ops.cast import cuda as kernels

        return kernels.bind_adaptive(x_N, getattr(torch, name))

    return (
        torch_eager,
        torch_compile,
        triton_block,
        triton_known_size,
        cuda_scalar,
        cuda_vec16,
        cuda_wide_store,
        cuda_vec16_unrolled,
        cuda_adaptive,
    )
