"""The variants that `add`, `mul` and `div` share, in ladder order, and those of `add` that were published."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration, Launch, PublishedGain, Staged, Variant, variant

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
"""What `triton_tuned` may be given: elements a block, warps a program, blocks a program, and whether the caches
evict its lines first. 252 configurations, of which 216 make sense; 8192 elements of one warp are 256 a thread and spill."""


def admits(configuration: Configuration, problem: Problem) -> str | None:
    """Refuse more threads than elements: Triton would compute an element in several threads."""
    threads = 32 * configuration["warps"]
    if configuration["block"] < threads:
        return f"{threads} threads for {configuration['block']} elements"
    return None


def ladder(operation: str) -> tuple[Variant, ...]:
    """The variants of one of the three ops, the simplest first."""

    @variant(backend="torch")
    def torch_eager(x_N: Tensor, y_N: Tensor) -> Launch:
        """torch's own kernel, into a buffer that was allocated before."""
        import torch

        out_N = torch.empty_like(x_N)
        function = getattr(torch, operation)
        return lambda: function(x_N, y_N, out=out_N)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_N: Tensor, y_N: Tensor) -> Launch:
        """torch.compile: on a GPU one Triton kernel made by inductor, on a CPU vectorised C++."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(FUNCTIONS[operation], x_N, y_N)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_block(x_N: Tensor, y_N: Tensor) -> Launch:
        """Triton, 1024 elements per program at every size."""
        from kernelviz.ops.arithmetic import triton as kernels

        return kernels.bind_arithmetic(x_N, y_N, operation, block=1024)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_adaptive(x_N: Tensor, y_N: Tensor) -> Launch:
        """Triton, 256, 512 or 1024 elements per program by size, as published, so that small problems still fill the GPU."""
        from kernelviz.ops.arithmetic import triton as kernels

        return kernels.bind_arithmetic(x_N, y_N, operation, block=kernels.adaptive_block(x_N.numel()))

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_known_size(x_N: Tensor, y_N: Tensor) -> Launch:
        """Triton, up to 2^20 elements, or 2^25 of whole vectors, compiled for their number: no mask; others as triton_block."""
        from kernelviz.ops.arithmetic import triton_known_size as kernels

        return kernels.bind_known_size(x_N, y_N, operation)

    @variant(backend="triton", needs=("triton", "cuda"), space=SPACE, admits=admits)
    def triton_tuned(
        x_N: Tensor, y_N: Tensor, *, block: int = 1024, warps: int = 4, parts: int = 1, evict: int = 0
    ) -> Launch:
        """Triton with four parameters for a tuner to search; without tuning it is triton_block."""
        from kernelviz.ops.arithmetic import triton as kernels

        return kernels.bind_tunable(x_N, y_N, operation, block=block, warps=warps, parts=parts, evict=evict)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_scalar(x_N: Tensor, y_N: Tensor) -> Launch:
        """CUDA C++, one element per thread: every load and store moves 4 bytes (2 in half precision)."""
        from kernelviz.ops.arithmetic import cuda as kernels

        return kernels.bind_scalar(x_N, y_N, operation)

    @variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
    def cuda_vec16(x_N: Tensor, y_N: Tensor) -> Launch:
        """CUDA C++, 16 bytes per load and store: a quarter of the instructions for the same traffic."""
        from kernelviz.ops.arithmetic import cuda as kernels

        return kernels.bind_vec16(x_N, y_N, operation)

    @variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
    def cuda_vec16_unrolled(x_N: Tensor, y_N: Tensor) -> Launch:
        """CUDA C++, four streaming 16-byte loads of a thread in flight before its stores: faster at 2^20, slower at 2^28."""
        from kernelviz.ops.arithmetic import cuda as kernels

        return kernels.bind_unrolled(x_N, y_N, operation)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_adaptive(x_N: Tensor, y_N: Tensor) -> Launch:
        """CUDA C++, one to four 16-byte vectors per thread by size; loads stream only while the L2 can hold the output."""
        from kernelviz.ops.arithmetic import cuda as kernels

        return kernels.bind_adaptive(x_N, y_N, operation)

    return (
        torch_eager,
        torch_compile,
        triton_block,
        triton_adaptive,
        triton_known_size,
        triton_tuned,
        cuda_scalar,
        cuda_vec16,
        cuda_vec16_unrolled,
        cuda_adaptive,
    )


LEAST_COLUMNS = 32
"""128 bytes of fp32. A matrix of fewer columns, in the published layout, would be read beyond its end."""


def rows_of(n: int) -> int:
    """Rows of the most nearly square matrix of n elements: the published layout is one of matrices.

    >>> rows_of(10**8), rows_of(2**13), rows_of(13)
    (10000, 64, 1)
    """
    return next(rows for rows in range(isqrt(n), 0, -1) if n % rows == 0)


def _aligned(x_RC: Tensor) -> Tensor:
    """The published view: rows begin 128 bytes apart, however long they are, so all but the first are other elements."""
    import torch

    apart = 128 // x_RC.element_size()
    return x_RC.contiguous().view(torch.float32).as_strided(x_RC.size(), [apart] + [1] * (x_RC.dim() - 1))


def _matrices(x_N: Tensor, y_N: Tensor) -> tuple[Tensor, Tensor]:
    n = x_N.numel()
    rows = rows_of(n)
    if rows > 1 and n // rows < LEAST_COLUMNS:
        raise BadField("size n", n, f"as a {rows} × {n // rows} matrix its published layout reads beyond its end")
    return x_N.view(rows, n // rows), y_N.view(rows, n // rows)


def _published_gain(factor: float) -> PublishedGain:
    """A gain over 12.5 ms for 10000 × 10000 numbers (source 1)."""
    return PublishedGain(factor=factor, over="torch_eager", gpu="a card of the RTX 5090 series", source="source 1")


@variant(backend="torch", dtypes=("fp32",), only_when_named=True, published=_published_gain(12.5 / 10.8))
def torch_aligned(x_N: Tensor, y_N: Tensor) -> Launch:
    """Published as 128-byte alignment, 1.16 times as fast. Its rows overlap, so it does not add the elements that it is given."""
    x_RC, y_RC = _matrices(x_N, y_N)
    return lambda: (_aligned(x_RC) + _aligned(y_RC)).view(-1)


@variant(backend="torch", dtypes=("fp32",), only_when_named=True, published=_published_gain(12.5 / 6.8))
def torch_fp16_compute(x_N: Tensor, y_N: Tensor) -> Launch:
    """Published as mixed precision, 1.84 times as fast. It converts to fp16 and back: four passes over memory instead of one."""
    return lambda: x_N.half().add_(y_N.half()).float()


@variant(backend="torch", dtypes=("fp32",), only_when_named=True)
def torch_fp16_storage(x_N: Tensor, y_N: Tensor) -> Launch:
    """Published with half the memory: inputs converted to fp16 before timing starts, so 8 bytes instead of 12 an element."""
    import torch

    x16_N, y16_N = torch.empty_like(x_N, dtype=torch.float16), torch.empty_like(y_N, dtype=torch.float16)
    out_N = torch.empty_like(x_N)

    def forward() -> None:
        x16_N.copy_(x_N)
        y16_N.copy_(y_N)

    return Staged(forward, lambda: torch.add(x16_N, y16_N, out=out_N))


@variant(backend="torch", needs=("cuda",), only_when_named=True, published=_published_gain(12.5 / 3.2))
def torch_graph(x_N: Tensor, y_N: Tensor) -> Launch:
    """Published as a CUDA graph of x + y, 3.9 times as fast. It saves time of the host; that of the device is the same."""
    from kernelviz.ops.arithmetic import graph

    return graph.bind_sum(x_N, y_N)


@variant(backend="torch", dtypes=("fp32",), only_when_named=True, published=_published_gain(12.5 / 2.1))
def torch_combined(x_N: Tensor, y_N: Tensor) -> Launch:
    """Published as everything at once, 5.95 times as fast: the overlapping rows, added in fp16, on a GPU as a CUDA graph."""
    from kernelviz.ops.arithmetic import graph

    x_RC, y_RC = _matrices(x_N, y_N)
    return graph.bind_half_sum(lambda: (_aligned(x_RC), _aligned(y_RC)), x_N)


PUBLISHED = (torch_aligned, torch_fp16_compute, torch_fp16_storage, torch_combined)
