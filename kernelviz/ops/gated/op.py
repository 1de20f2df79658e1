"""The ops `swiglu` and `geglu`, g(a) · b of two matrices: the middle of a transformer's feed-forward part."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Backward, Bound, Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, Tensors, TensorSpec
from kernelviz.ops.gated import best
from kernelviz.ops.gated.reference import bound_of_backward, bound_of_forward, reference_of_backward
from kernelviz.ops.gated.variants import geglu, ladder, swiglu

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Two matrices read once, one written; about six operations an element (power, sum, reciprocal, products).

    >>> cost({"m": 2, "n": 1024}, 2)
    Cost(work_flop=12288, read_bytes=8192, written_bytes=4096)
    """
    size_bytes = sizes["m"] * sizes["n"] * itemsize_bytes
    return Cost(work_flop=6 * sizes["m"] * sizes["n"], read_bytes=2 * size_bytes, written_bytes=size_bytes)


def backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """a, b and the gradient of y read once, two gradients written; about twelve operations an element.

    >>> backward_cost({"m": 2, "n": 1024}, 2)
    Cost(work_flop=24576, read_bytes=12288, written_bytes=8192)
    """
    size_bytes = sizes["m"] * sizes["n"] * itemsize_bytes
    return Cost(work_flop=12 * sizes["m"] * sizes["n"], read_bytes=3 * size_bytes, written_bytes=2 * size_bytes)


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
        best=best.gated,
        first=("torch_eager", "torch_compile", "liger", "triton_block", "cuda_vec16"),
        variants=ladder(function, gate, module),
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
