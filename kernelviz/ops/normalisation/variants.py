"""The ladders of `rmsnorm`, `layernorm` and `add_rmsnorm`. Most variants are declared once for all three."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Staged, Variant, variant
from kernelviz.ops.normalisation.reference import EPS

if TYPE_CHECKING:
    from torch import Tensor

INPUTS: Mapping[str, tuple[str, ...]] = {
    "rmsnorm": ("x_MN", "w_N"),
    "layernorm": ("x_MN", "w_N", "b_N"),
    "add_rmsnorm": ("x_MN", "r_MN", "w_N"),
}
"""The inputs of each op in their order, by the names that the binds of the kernels give them."""
GRADIENTS: Mapping[str, tuple[str, ...]] = {
    "rmsnorm": ("dy_MN",),
    "layernorm": ("dy_MN",),
    "add_rmsnorm": ("ds_MN", "dy_MN"),
}
"""The gradients of the outputs, which a backward pass gets after the inputs."""
DIFFERENTIATED: Mapping[str, tuple[int, ...]] = {"rmsnorm": (0, 1), "layernorm": (0, 1, 2), "add_rmsnorm": (0, 2)}
"""Positions of the inputs whose gradients are computed; the residual has the gradient of x."""


def _rmsnorm_composite(x_MN: Tensor, w_N: Tensor) -> Tensor:
    wide_MN = x_MN.float()
    scale_M1 = (wide_MN.pow(2).mean(-1, keepdim=True) + EPS).rsqrt()
    return (wide_MN * scale_M1 * w_N.float()).to(x_MN.dtype)


def _rmsnorm_fused(x_MN: Tensor, w_N: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.rms_norm(x_MN, tuple(w_N.shape), w_N, EPS)


def _layernorm_composite(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensor:
    wide_MN = x_MN.float()
    away_MN = wide_MN - wide_MN.mean(-1, keepdim=True)
    scale_M1 = (away_MN.pow(2).mean(-1, keepdim=True) + EPS).rsqrt()
    return (away_MN * scale_M1 * w_N.float() + b_N.float()).to(x_MN.dtype)


def _layernorm_fused(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensor:
    from torch.nn import functional

    return functional.layer_norm(x_MN, tuple(w_N.shape), w_N, b_N, EPS)


def _layernorm_fused_in_fp32(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensor:
    return _layernorm_fused(x_MN.float(), w_N.float(), b_N.float()).to(x_MN.dtype)


def _add_rmsnorm_composite(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> tuple[Tensor, Tensor]:
    s_MN = x_MN + r_MN
    wide_MN = s_MN.float()
    scale_M1 = (wide_MN.pow(2).mean(-1, keepdim=True) + EPS).rsqrt()
    return s_MN, (wide_MN * scale_M1 * w_N.float()).to(x_MN.dtype)


def _add_rmsnorm_fused(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> tuple[Tensor, Tensor]:
    from torch.nn import functional

    s_MN = x_MN + r_MN
    return s_MN, functional.rms_norm(s_MN, tuple(w_N.shape), w_N, EPS)


COMPOSITES: Mapping[str, Callable[..., Tensor | tuple[Tensor, ...]]] = {
    "rmsnorm": _rmsnorm_composite,
    "layernorm": _layernorm_composite,
    "add_rmsnorm": _add_rmsnorm_composite,
}


def named_inputs(op: str, tensors: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """The inputs of the op by name, from the inputs of a forward or a backward pass."""
    return dict(zip(INPUTS[op], tensors, strict=False))


def named_gradients(op: str, tensors: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """The gradients of the outputs by name, from the inputs of a backward pass."""
    return dict(zip(GRADIENTS[op], tensors[len(INPUTS[op]) :], strict=True))


def rmsnorm_variants() -> tuple[Variant, ...]:
    """The variants of `rmsnorm`."""

    def eager_backward(x_MN: Tensor, w_N: Tensor, dy_MN: Tensor) -> Staged:
        from kernelviz.ops.kernels.autograd import backward_of

        return backward_of(_rmsnorm_fused, (x_MN, w_N), (dy_MN,), DIFFERENTIATED["rmsnorm"])

    @variant(backend="torch", backward=eager_backward)
    def torch_eager(x_MN: Tensor, w_N: Tensor) -> Launch:
        """Fused eager: torch.nn.functional.rms_norm, one kernel on a GPU."""
        return lambda: _rmsnorm_fused(x_MN, w_N)

    def liger_backward(x_MN: Tensor, w_N: Tensor, dy_MN: Tensor) -> Staged:
        from kernelviz.ops.normalisation import liger as kernels

        return kernels.bind_rmsnorm_backward(x_MN, w_N, dy_MN, eps=EPS)

    @variant(backend="library", needs=("liger", "triton", "cuda"), backward=liger_backward)
    def liger(x_MN: Tensor, w_N: Tensor) -> Launch:
        """Liger Kernel's RMSNorm in Llama's casting: Triton, one program per row of at most 65536 elements."""
        from kernelviz.ops.normalisation import liger as kernels

        return kernels.bind_rmsnorm(x_MN, w_N, eps=EPS)

    return _ladder("rmsnorm", torch_eager, liger)


def layernorm_variants() -> tuple[Variant, ...]:
    """The variants of `layernorm`."""

    def eager_backward(x_MN: Tensor, w_N: Tensor, b_N: Tensor, dy_MN: Tensor) -> Staged:
        from kernelviz.ops.kernels.autograd import backward_of

        # On a CPU torch sums db in the format of dy, for which 16 bits are too few.
        function = _layernorm_fused_in_fp32 if x_MN.device.type == "cpu" else _layernorm_fused
        return backward_of(function, (x_MN, w_N, b_N), (dy_MN,), DIFFERENTIATED["layernorm"])

    @variant(backend="torch", backward=eager_backward)
    def torch_eager(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """Fused eager: torch.nn.functional.layer_norm, one kernel on a GPU."""
        return lambda: _layernorm_fused(x_MN, w_N, b_N)

    def liger_backward(x_MN: Tensor, w_N: Tensor, b_N: Tensor, dy_MN: Tensor) -> Staged:
        from kernelviz.ops.normalisation import liger as kernels

        return kernels.bind_layernorm_backward(x_MN, w_N, b_N, dy_MN, eps=EPS)

    @variant(backend="library", needs=("liger", "triton", "cuda"), backward=liger_backward)
    def liger(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Launch:
        """Liger Kernel's LayerNorm: Triton, one program per row of at most 65536 elements."""
        from kernelviz.ops.normalisation import liger as kernels

        return kernels.bind_layernorm(x_MN, w_N, b_N, eps=EPS)

    return _ladder("layernorm", torch_eager, liger)


def add_rmsnorm_variants() -> tuple[Variant, ...]:
    """The variants of `add_rmsnorm`."""

    def eager_backward(x_MN: Tensor, r_MN: Tensor, w_N: Tensor, ds_MN: Tensor, dy_MN: Tensor) -> Staged:
        from kernelviz.ops.kernels.autograd import backward_of

        return backward_of(_add_rmsnorm_fused, (x_MN, r_MN, w_N), (ds_MN, dy_MN), DIFFERENTIATED["add_rmsnorm"])

    @variant(backend="torch", backward=eager_backward)
    def torch_eager(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
        """Plain torch: the sum, then torch.nn.functional.rms_norm; s is written and read again."""
        return lambda: _add_rmsnorm_fused(x_MN, r_MN, w_N)

    def liger_backward(x_MN: Tensor, r_MN: Tensor, w_N: Tensor, ds_MN: Tensor, dy_MN: Tensor) -> Staged:
        from kernelviz.ops.normalisation import liger as kernels

        return kernels.bind_add_rmsnorm_backward(x_MN, r_MN, w_N, ds_MN, dy_MN, eps=EPS)

    @variant(backend="library", needs=("liger", "triton", "cuda"), backward=liger_backward)
    def liger(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Launch:
        """Liger Kernel's fused_add_rms_norm in Llama's casting: Triton, one program per row of at most 65536 elements."""
        from kernelviz.ops.normalisation import liger as kernels

        return kernels.bind_add_rmsnorm(x_MN, r_MN, w_N, eps=EPS)

    return _ladder("add_rmsnorm", torch_eager, liger)


def _ladder(op: str, torch_eager: Variant, liger: Variant) -> tuple[Variant, ...]:
    """All variants of an op in the order of its ladder, with the two of its own."""

    def composite_backward(*tensors: Tensor) -> Staged:
        from kernelviz.ops.kernels.autograd import backward_of

        count = len(INPUTS[op])
        return backward_of(COMPOSITES[op], tensors[:count], tensors[count:], DIFFERENTIATED[op])

    @variant(backend="torch", backward=composite_backward)
    def composite_eager(*tensors: Tensor) -> Launch:
        """Single torch ops in float32, rounded at the end: every step is a kernel that reads and writes the whole matrix."""
        return lambda: COMPOSITES[op](*tensors)

    def compiled_composite_backward(*tensors: Tensor) -> Staged:
        from kernelviz.ops.kernels.inductor import compiled_backward

        count = len(INPUTS[op])
        return compiled_backward(COMPOSITES[op], tensors[:count], tensors[count:], DIFFERENTIATED[op])

    @variant(backend="inductor", needs=("inductor",), slow_compile=True, backward=compiled_composite_backward)
    def torch_compile(*tensors: Tensor) -> Launch:
        """torch.compile of the composite: inductor fuses its steps into one kernel."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(COMPOSITES[op], *tensors)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_two_passes(*tensors: Tensor) -> Launch:
        """Triton, one program per row, read twice instead of kept in registers; up to 16 KiB the second read comes from L1."""
        from kernelviz.ops.normalisation import triton as kernels

        return kernels.bind_two_passes(kernels.NormInputs(**named_inputs(op, tensors)), eps=EPS)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_block_per_row(*tensors: Tensor) -> Launch:
        """Triton, one program per row; a row of up to 64 KiB is read once and kept in registers."""
        from kernelviz.ops.normalisation import triton as kernels

        return kernels.bind_block_per_row(kernels.NormInputs(**named_inputs(op, tensors)), eps=EPS)

    def triton_backward(*tensors: Tensor) -> Staged:
        from kernelviz.ops.normalisation import triton_backward as kernels

        inputs = kernels.BackwardInputs(**named_inputs(op, tensors), **named_gradients(op, tensors))
        return kernels.bind(inputs, eps=EPS)

    @variant(
        backend="triton",
        needs=("triton", "cuda"),
        backward=triton_backward,
    )
    def triton_persistent(*tensors: Tensor) -> Launch:
        """Triton, a few persistent programs per SM: weight (and bias) stay in registers, the next row is prefetched."""
        from kernelviz.ops.normalisation import triton as kernels

        return kernels.bind_persistent(kernels.NormInputs(**named_inputs(op, tensors)), eps=EPS)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_known_size(*tensors: Tensor) -> Launch:
        """Triton, compiled for one size of the matrix: several short rows or one per program; those above 8192 as before."""
        from kernelviz.ops.normalisation import triton_known_size as kernels
        from kernelviz.ops.normalisation.triton import NormInputs

        return kernels.bind_known_size(NormInputs(**named_inputs(op, tensors)), eps=EPS)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_registers(*tensors: Tensor) -> Launch:
        """CUDA C++, one block per row of up to 64 KiB in registers, 16-byte loads at any alignment; longer ones read twice."""
        from kernelviz.ops.normalisation import cuda as kernels

        return kernels.bind_rows(kernels.NormInputs(**named_inputs(op, tensors), eps=EPS))

    def cuda_backward(*tensors: Tensor) -> Staged:
        from kernelviz.ops.normalisation import cuda_backward as kernels
        from kernelviz.ops.normalisation.cuda import NormInputs

        inputs = NormInputs(**named_inputs(op, tensors), eps=EPS)
        return kernels.bind(kernels.BackwardInputs(inputs, **named_gradients(op, tensors)))

    @variant(
        backend="cuda",
        needs=("nvrtc", "cuda", "sm_90"),
        backward=cuda_backward,
    )
    def cuda_cluster(*tensors: Tensor) -> Launch:
        """CUDA C++, rows of more than 16 KiB in the registers of a cluster of blocks, so that each is read only once."""
        from kernelviz.ops.normalisation import cuda as kernels

        return kernels.bind_cluster(kernels.NormInputs(**named_inputs(op, tensors), eps=EPS))

    @variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), techniques=("cp_async",))
    def cuda_async(*tensors: Tensor) -> Launch:
        """CUDA C++, persistent blocks: a thread prefetches vectors of its next row by cp.async as it stores those of this row."""
        from kernelviz.ops.normalisation import cuda as kernels

        return kernels.bind_async(kernels.NormInputs(**named_inputs(op, tensors), eps=EPS))

    @variant(
        backend="cuda",
        needs=("nvrtc", "cuda", "sm_90"),
    )
    def cuda_columns(*tensors: Tensor) -> Launch:
        """CUDA C++, persistent clusters with fixed columns: weight (and bias) stay in registers; short rows of known length."""
        from kernelviz.ops.normalisation import cuda_known_rows as kernels
        from kernelviz.ops.normalisation.cuda import NormInputs

        return kernels.bind(NormInputs(**named_inputs(op, tensors), eps=EPS))

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_slab(*tensors: Tensor) -> Launch:
        """CUDA C++, many short rows as one piece through shared memory, a few threads each; longer ones as `cuda_registers`."""
        from kernelviz.ops.normalisation import cuda_slab as kernels
        from kernelviz.ops.normalisation.cuda import NormInputs

        return kernels.bind_slab(NormInputs(**named_inputs(op, tensors), eps=EPS))

    def slab_backward(*tensors: Tensor) -> Staged:
        from kernelviz.ops.normalisation import cuda_slab_backward as kernels
        from kernelviz.ops.normalisation.cuda import NormInputs
        from kernelviz.ops.normalisation.cuda_backward import BackwardInputs

        inputs = NormInputs(**named_inputs(op, tensors), eps=EPS)
        return kernels.bind(BackwardInputs(inputs, **named_gradients(op, tensors)))

    @variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), techniques=("bulk_copy",), backward=slab_backward)
    def cuda_slab_stages(*tensors: Tensor) -> Launch:
        """CUDA C++ for Hopper: `cuda_slab` with persistent blocks, slabs in flight by bulk copies; tiny rows in registers."""
        from kernelviz.ops.kernels.row_slabs import RING
        from kernelviz.ops.normalisation import cuda_slab as kernels
        from kernelviz.ops.normalisation.cuda import NormInputs

        return kernels.bind_slab(NormInputs(**named_inputs(op, tensors), eps=EPS), ring=RING)

    def split_backward(*tensors: Tensor) -> Staged:
        from kernelviz.ops.normalisation import cuda_split_backward as kernels
        from kernelviz.ops.normalisation.cuda import NormInputs
        from kernelviz.ops.normalisation.cuda_backward import BackwardInputs

        inputs = NormInputs(**named_inputs(op, tensors), eps=EPS)
        return kernels.bind(BackwardInputs(inputs, **named_gradients(op, tensors)))

    @variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), backward=split_backward)
    def cuda_split(*tensors: Tensor) -> Launch:
        """CUDA C++, several blocks for each of a few long rows, in two launches; other rows as `cuda_registers`."""
        from kernelviz.ops.normalisation import cuda_split as kernels
        from kernelviz.ops.normalisation.cuda import NormInputs

        return kernels.bind_split(NormInputs(**named_inputs(op, tensors), eps=EPS))

    return (
        composite_eager,
        torch_eager,
        torch_compile,
        liger,
        triton_two_passes,
        triton_block_per_row,
        triton_persistent,
        triton_known_size,
        cuda_registers,
        cuda_cluster,
        cuda_async,
        cuda_columns,
        cuda_slab,
        cuda_slab_stages,
        cuda_split,
    )
