"""Gated activations g(a) · b of two matrices, the middle of a transformer's feed-forward part, and their backward passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.op import Axis, Backward, Bound, Launch, Op, Preset, Tensors, TensorSpec, Variant, variant
from kernelviz.ops.gated.bounds import (
    backward_cost,
    bound_of_backward,
    bound_of_forward,
    cost,
    reference_of_backward,
)

if TYPE_CHECKING:
    from torch import Tensor


def swiglu(a_MN: Tensor, b_MN: Tensor) -> Tensor:
    """silu(a) b."""
    from torch.nn import functional

    return functional.silu(a_MN) * b_MN


def geglu(a_MN: Tensor, b_MN: Tensor) -> Tensor:
    """gelu(a) b with torch's approximation by tanh, as Liger defines it (and the models that use it)."""
    from torch.nn import functional

    return functional.gelu(a_MN, approximate="tanh") * b_MN


def _ladder(function: Callable[[Tensor, Tensor], Tensor], gate: str, stored_gate: str) -> tuple[Variant, ...]:
    """The variants of one gated activation, forward and backward. `gate`: its type in cuda.cu."""
    tanh = gate == "TanhGelu"

    def torch_eager_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        from kernelviz.ops.kernels.autograd import backward_of

        return backward_of(function, (a_MN, b_MN), (dy_MN,), (0, 1))

    @variant(backend="torch", backward=torch_eager_backward)
    def torch_eager(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """The gate and the product as two torch ops: the gate's values are written, rounded and read again."""
        return lambda: function(a_MN, b_MN)

    def torch_compile_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        from kernelviz.ops.kernels.inductor import compiled_backward

        return compiled_backward(function, (a_MN, b_MN), (dy_MN,), (0, 1))

    @variant(backend="inductor", needs=("inductor",), late=True, backward=torch_compile_backward)
    def torch_compile(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """torch.compile: inductor fuses gate and product into one kernel, and both gradients into another."""
        from kernelviz.ops.kernels.inductor import compiled

        return compiled(function, a_MN, b_MN)

    @variant(backend="library", needs=("liger", "triton", "cuda"))
    def liger(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """Liger-Kernel's forward kernel: one Triton program a row, which holds the whole row of both matrices."""
        from kernelviz.ops.gated import liger as kernels

        return kernels.bind_forward(a_MN, b_MN, stored_gate)

    @variant(
        backend="library",
        needs=("liger", "triton", "cuda"),
        directions=("backward",),
        mutates=("a_MN", "b_MN"),
    )
    def liger_in_place(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        """Liger-Kernel's backward kernel, one program a row: the gradients are written over a and b."""
        from kernelviz.ops.gated import liger as kernels

        return kernels.bind_backward(a_MN, b_MN, dy_MN, stored_gate)

    def triton_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        from kernelviz.ops.gated import triton as kernels

        return kernels.bind_gated_backward(a_MN, b_MN, dy_MN, tanh=tanh)

    @variant(backend="triton", needs=("triton", "cuda"), backward=triton_backward)
    def triton_block(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """Triton, 16 bytes of each input a thread, whatever the rows; the gate by a logistic function in fp32."""
        from kernelviz.ops.gated import triton as kernels

        return kernels.bind_gated(a_MN, b_MN, tanh=tanh)

    def cuda_scalar_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        from kernelviz.ops.gated import cuda as kernels

        return kernels.bind_scalar_backward(a_MN, b_MN, dy_MN, gate)

    @variant(backend="cuda", needs=("nvrtc", "cuda"), backward=cuda_scalar_backward)
    def cuda_scalar(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """CUDA C++, one element a thread: every load and store moves 4 bytes (2 in half precision)."""
        from kernelviz.ops.gated import cuda as kernels

        return kernels.bind_scalar(a_MN, b_MN, gate)

    def cuda_words_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Launch:
        from kernelviz.ops.gated import cuda as kernels

        return kernels.bind_words_backward(a_MN, b_MN, dy_MN, gate)

    @variant(backend="cuda", needs=("nvrtc", "cuda"), backward=cuda_words_backward)
    def cuda_vec16(a_MN: Tensor, b_MN: Tensor) -> Launch:
        """CUDA C++, 16 bytes of each input a thread; one power and one reciprocal an element."""
        from kernelviz.ops.gated import cuda as kernels

        return kernels.bind_words(a_MN, b_MN, gate)

    return torch_eager, torch_compile, liger, liger_in_place, triton_block, cuda_scalar, cuda_vec16


def _op(
    function: Callable[[Tensor, Tensor], Tensor],
    gate: str,
    module: str,
    *,
    summary: str,
    formula: str,
    presets: tuple[Preset, ...],
) -> Op:
    tanh = gate == "TanhGelu"

    def reference(a_MN: Tensor, b_MN: Tensor) -> Tensors:
        return (function(a_MN, b_MN),)

    def backward_reference(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor) -> Tensors:
        return reference_of_backward(a_MN, b_MN, dy_MN, tanh)

    def closed(of: Callable[[Problem, Tensors, Tensors, bool], Tensors]) -> Bound:
        return lambda problem, inputs, outputs: of(problem, inputs, outputs, tanh)

    inputs = (TensorSpec(name="a_MN", axes=("m", "n")), TensorSpec(name="b_MN", axes=("m", "n")))
    unit = "6 · 2⁻²⁴" if tanh else "8 σ 2⁻²⁴"
    error = f"E = 3 |w| σ (1 − σ) 2⁻²⁴ + {unit}"
    return Op(
        name=function.__name__,
        family="gated",
        summary=summary,
        formula=formula,
        axes=(
            Axis(name="m", caption="rows (tokens)", default="2^27/n", cpu_default="2^20/n"),
            Axis(name="n", caption="row length", default="2^11..2^16", cpu_default="2^8,2^10,2^12"),
        ),
        dtypes=("bf16", "fp16", "fp32"),
        inputs=inputs,
        outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
        cost=cost,
        reference=reference,
        bound=closed(bound_of_forward),
        rule=f"|error| ≤ |b| (|a| E + u |g|) + u |y|, {error}: in fp32, gate and product each rounded once",
        baseline="torch_eager",
        first=("torch_eager", "torch_compile", "liger", "triton_block", "cuda_vec16"),
        variants=_ladder(function, gate, module),
        presets=(
            *presets,
            Preset(
                name="rows",
                caption="2^27 elements in rows of 2048 to 131072: 768 MiB of traffic in 16 bits",
                sizes={"m": "2^27/n", "n": "2048,4096,8192,32768,131072"},
            ),
            Preset(
                name="large",
                caption="Far larger than any L2: 768 MiB and 1.5 GiB of traffic in 16 bits",
                sizes={"m": "32768,65536", "n": "4096"},
            ),
        ),
        slab="m",
        backward=Backward(
            inputs=(*inputs, TensorSpec(name="dy_MN", axes=("m", "n"))),
            outputs=(TensorSpec(name="da_MN", axes=("m", "n")), TensorSpec(name="db_MN", axes=("m", "n"))),
            cost=backward_cost,
            reference=backward_reference,
            bound=closed(bound_of_backward),
            rule=(
                f"da: |dy b| (E (1 + |a| w′) + 4 · 2⁻²⁴ (|a| w′ + |g′|)) + u |dy b g′| + u |da|; "
                f"db: |dy| (|a| E + u |g|) + u |db|; {error}"
            ),
            slab="m",
        ),
    )


def _model(name: str, caption: str, width: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"m": "1,16,64,512,4096,8192", "n": str(width)})


OPS = (
    _op(
        swiglu,
        "Swish",
        "swiglu",
        summary="Product of one matrix and silu of another, the gate of Llama's feed-forward part",
        formula="y = a σ(a) · b",
        presets=(
            _model("llama-3-8b", "Llama 3 8B, 14336 gates", 14336),
            _model("llama-3-70b", "Llama 3 70B, 28672 gates", 28672),
            _model("qwen2.5-7b", "Qwen2.5 7B, 18944 gates", 18944),
            _model("deepseek-v3", "DeepSeek-V3, 2048 gates of an expert", 2048),
        ),
    ),
    _op(
        geglu,
        "TanhGelu",
        "geglu",
        summary="Product of one matrix and gelu (by tanh, as Liger has it) of another",
        formula="y = a (1 + tanh(√(2/π) (a + 0.044715 a³))) / 2 · b",
        presets=(
            _model("llama-3-8b", "At the sizes of Llama 3 8B's gate (which is a SwiGLU)", 14336),
            _model("llama-3-70b", "At the sizes of Llama 3 70B's gate (which is a SwiGLU)", 28672),
        ),
    ),
)
