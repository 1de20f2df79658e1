"""The variants that `add`, `mul` and `div` share, rung by rung."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.op import Configuration, Launch, Variant, variant

if TYPE_CHECKING:
    from torch import Tensor


def plus(x_N: Tensor, y_N: Tensor) -> Tensor:
    return x_N + y_N


def times(x_N: Tensor, y_N: Tensor) -> Tensor:
    return x_N * y_N


def over(x_N: Tensor, y_N: Tensor) -> Tensor:
    return x_N / y_N


FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"add": plus, "mul": times, "div": over}

SPACE = {
    "block": (1024, 128, 256, 512, 2048, 4096, 8192),
    "warps": (4, 1, 2, 8, 16, 32),
    "parts": (1, 2, 4),
    "evict": (0, 1),
}
"""What `triton_tuned` may be given: elements a block, warps a program, blocks a program, and whether the caches are asked to
evict its lines first. 252 configurations, of which 216 make sense; 8192 elements of one warp are 256 a thread and spill."""


def admits(configuration: Configuration, problem: Problem) -> str | None:
    """No more threads than elements: Triton would let several do the same one."""
    threads = 32 * configuration["warps"]
    if configuration["block"] < threads:
        return f"{threads} threads for {configuration['block']} elements"
    return None


def ladder(operation: str) -> tuple[Variant, ...]:
    """The variants of one of the three ops, the plainest first."""

    @variant(backend="torch")
    def torch_eager(x_N: Tensor, y_N: Tensor) -> Launch:
        """torch's own kernel, into a buffer that is there already."""
        import torch

        out_N = torch.empty_like(x_N)
        function = getattr(torch, operation)
        return lambda: function(x_N, y_N, out=out_N)

    @variant(backend="inductor", needs=("inductor",), late=True)
    def torch_compile(x_N: Tensor, y_N: Tensor) -> Launch:
        """torch.compile: on a GPU one Triton kernel made by inductor, on a CPU vectorised C++."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(FUNCTIONS[operation], x_N, y_N)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_block(x_N: Tensor, y_N: Tensor) -> Launch:
        """Triton, 1024 elements a program whatever the size."""
        from kernelviz.ops.arithmetic import triton as kernels

        return kernels.bind_arithmetic(x_N, y_N, operation, block=1024)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_adaptive(x_N: Tensor, y_N: Tensor) -> Launch:
        """Triton, 256, 512 or 1024 elements a program by size, as published, so that small problems still fill the GPU."""
        from kernelviz.ops.arithmetic import triton as kernels

        return kernels.bind_arithmetic(x_N, y_N, operation, block=kernels.adaptive_block(x_N.numel()))

    @variant(backend="triton", needs=("triton", "cuda"), space=SPACE, admits=admits)
    def triton_tuned(
        x_N: Tensor, y_N: Tensor, *, block: int = 1024, warps: int = 4, parts: int = 1, evict: int = 0
    ) -> Launch:
        """Triton with four numbers left open, for a tuner to search; untuned it is triton_block."""
        from kernelviz.ops.arithmetic import triton as kernels

        return kernels.bind_tunable(x_N, y_N, operation, block=block, warps=warps, parts=parts, evict=evict)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_scalar(x_N: Tensor, y_N: Tensor) -> Launch:
        """CUDA C++, one element a thread: every load and store moves 4 bytes (2 in half precision)."""
        from kernelviz.ops.arithmetic import cuda as kernels

        return kernels.bind_scalar(x_N, y_N, operation)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_vec16(x_N: Tensor, y_N: Tensor) -> Launch:
        """CUDA C++, 16 bytes a load and store: a quarter of the instructions for the same traffic."""
        from kernelviz.ops.arithmetic import cuda as kernels

        return kernels.bind_vec16(x_N, y_N, operation)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_vec16_unrolled(x_N: Tensor, y_N: Tensor) -> Launch:
        """CUDA C++, four 16-byte loads of a thread in flight before its stores, streaming: ahead at 2^20, behind at 2^28."""
        from kernelviz.ops.arithmetic import cuda as kernels

        return kernels.bind_unrolled(x_N, y_N, operation)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_adaptive(x_N: Tensor, y_N: Tensor) -> Launch:
        """CUDA C++, one to four words a thread by size, streaming loads only as long as the L2 can keep what is written."""
        from kernelviz.ops.arithmetic import cuda as kernels

        return kernels.bind_adaptive(x_N, y_N, operation)

    return (
        torch_eager,
        torch_compile,
        triton_block,
        triton_adaptive,
        triton_tuned,
        cuda_scalar,
        cuda_vec16,
        cuda_vec16_unrolled,
        cuda_adaptive,
    )
