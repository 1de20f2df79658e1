"""The activations: memory-bound as long as the function takes few instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost
from kernelviz.ops.activation import best
from kernelviz.ops.activation.reference import (
    gelu_bound,
    relu_bound,
    sigmoid_bound,
    silu_bound,
)
from kernelviz.ops.activation.variants import gelu, ladder, relu, sigmoid, silu
from kernelviz.ops.catalog.op import Bound, CostModel, Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, Tensors, TensorSpec
from kernelviz.ops.catalog.variant import Variant

if TYPE_CHECKING:
    from torch import Tensor


def cost_of(flop: int) -> CostModel:
    """Every element read once and written once; `flop` operations an element.

    >>> cost_of(4)({"n": 1024}, 2)
    Cost(work_flop=4096, read_bytes=2048, written_bytes=2048)
    """

    def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
        n = sizes["n"]
        return Cost(work_flop=flop * n, read_bytes=n * itemsize_bytes, written_bytes=n * itemsize_bytes)

    return cost


def _op(
    function: Callable[[Tensor], Tensor],
    formula: str,
    bound: Bound,
    rule: str,
    *,
    summary: str,
    flop: int,
    variants: tuple[Variant, ...],
    presets: tuple[Preset, ...] = (),
) -> Op:
    def reference(x_N: Tensor) -> Tensors:
        return (function(x_N),)

    names = tuple(v.name for v in variants)
    return Op(
        name=function.__name__,
        family="elementwise",
        summary=summary,
        formula=formula,
        axes=(Axis(name="n", caption="elements", default="2^12..2^28", cpu_default="2^14,2^16,2^18,2^20,2^22"),),
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(TensorSpec(name="x_N", axes=("n",)),),
        outputs=(TensorSpec(name="y_N", axes=("n",)),),
        cost=cost_of(flop),
        reference=reference,
        bound=bound,
        rule=rule,
        baseline="torch_eager",
        best=best.activation,
        first=tuple(n for n in names if n not in ("cuda_scalar", "triton_erf", "triton_known_size")),
        variants=variants,
        presets=(
            *presets,
            Preset(name="large", caption="Far larger than any L2: 512 MiB to 4 GiB in bf16", sizes={"n": "2^27..2^30"}),
        ),
        slab="n",
    )


def _hidden(name: str, caption: str, width: int) -> Preset:
    rows = (1, 16, 64, 512, 4096, 8192)
    return Preset(name=name, caption=caption, sizes={"n": ",".join(str(m * width) for m in rows)})


OPS = (
    _op(
        relu,
        "y = max(x, 0)",
        relu_bound,
        "exact: y = x or 0, no rounding",
        summary="Rectified linear unit: max(x, 0) of each element",
        flop=1,
        variants=ladder(relu),
    ),
    _op(
        sigmoid,
        "y = 1 / (1 + exp(−x))",
        sigmoid_bound,
        "|error| ≤ y (8 + 2 |x| (1 − y)) 2⁻²⁴ + 1.01 u y: in fp32, rounded once to the output's format",
        summary="Logistic function of each element",
        flop=4,
        variants=ladder(sigmoid, fast="a power of two and a reciprocal of one instruction each"),
    ),
    _op(
        silu,
        "y = x / (1 + exp(−x))",
        silu_bound,
        "|error| ≤ |y| (8 + 2 |x| (1 − σ(x))) 2⁻²⁴ + 1.01 u |y|: in fp32, rounded once to the output's format",
        summary="Sigmoid linear unit (swish)",
        flop=5,
        variants=ladder(silu, fast="a power of two and a reciprocal of one instruction each"),
        presets=(
            _hidden("llama-3-8b", "Llama 3 8B, 1 to 8192 tokens of 14336 gates", 14336),
            _hidden("llama-3-70b", "Llama 3 70B, 1 to 8192 tokens of 28672 gates", 28672),
            _hidden("qwen2.5-7b", "Qwen2.5 7B, 1 to 8192 tokens of 18944 gates", 18944),
        ),
    ),
    _op(
        gelu,
        "y = x (1 + erf(x / √2)) / 2",
        gelu_bound,
        "|error| ≤ 8 |x| 2⁻²⁴ + 1.01 u |y|: the distribution in fp32, rounded once to the output's format",
        summary="Gaussian error linear unit, computed with erf (torch's default)",
        flop=8,
        variants=ladder(gelu, fast="max(x, 0) − |x| 2^Q(|x|), a polynomial instead of erf", triton_too="gelu_erf"),
        presets=(
            _hidden("gpt-2", "GPT-2, 1 to 8192 tokens of 3072 hidden units", 3072),
            _hidden("bert-base", "BERT base, 1 to 8192 tokens of 3072 hidden units", 3072),
        ),
    ),
)
