"""`norm_activation`, gelu of a layer normalisation, and `batchnorm_relu`: an activation fused into the pass of the normalisation.

`batchnorm_relu` is batch normalisation at inference: the running statistics give one factor and one summand a channel, so one
pass over the matrix is enough (2 N e). At training the statistics of the batch cost another pass, so that is another op.
"""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.model_sizes import AXES, presets
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.tensors import Preset, Sizes, TensorSpec
from kernelviz.ops.norm_activation import best
from kernelviz.ops.norm_activation.fusion import BATCHNORM_RELU as BATCHNORM_RELU_FUSION
from kernelviz.ops.norm_activation.fusion import LAYERNORM_GELU
from kernelviz.ops.norm_activation.reference import (
    batchnorm_relu_bound,
    batchnorm_relu_reference,
    layernorm_gelu_bound,
    layernorm_gelu_reference,
)
from kernelviz.ops.norm_activation.variants import batchnorm_relu_variants, layernorm_gelu_variants


def layernorm_gelu_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Fifteen operations an element: layernorm's seven, and gelu by a polynomial of degree 6 with a power of two.

    >>> layernorm_gelu_cost({"m": 2, "n": 1024}, 4)
    Cost(work_flop=30720, read_bytes=16384, written_bytes=8192)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=15 * m * n, read_bytes=(m * n + 2 * n) * itemsize_bytes, written_bytes=m * n * itemsize_bytes)


def batchnorm_relu_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Three operations an element (product, sum, maximum); four numbers a channel, in fp32 whatever x is, read once.

    >>> batchnorm_relu_cost({"m": 2, "n": 1024}, 2)
    Cost(work_flop=6144, read_bytes=20480, written_bytes=4096)
    """
    m, n = sizes["m"], sizes["n"]
    return Cost(work_flop=3 * m * n, read_bytes=m * n * itemsize_bytes + 16 * n, written_bytes=m * n * itemsize_bytes)


NORM_ACTIVATION = Op(
    name="norm_activation",
    family="normalisation",
    summary="gelu of the layer normalisation of each row, with weight and bias",
    formula="y = gelu((x − mean x) / √(var x + 10⁻⁵) · w + b)",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=(
        TensorSpec(name="x_MN", axes=("m", "n")),
        TensorSpec(name="w_N", axes=("n",)),
        TensorSpec(name="b_N", axes=("n",)),
    ),
    outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
    cost=layernorm_gelu_cost,
    reference=layernorm_gelu_reference,
    bound=layernorm_gelu_bound,
    rule=(
        "|error| ≤ max |gelu(z ± e) − y| + 8 |z| 2⁻²⁴ + u |y|, z = layernorm(x), e = u |z| + |w| (s (r mean|x| + |x̂| (1 + "
        "(mean(x²) + μ²) / v)) + 4 r (|x| + |μ|) 2⁻²⁴) + 2 (|x̂ w| + |b|) 2⁻²⁴, s = (8 + √N / 2) 2⁻²⁴, v = var + 10⁻⁵, r = 1 / √v"
    ),
    baseline="torch_eager",
    best=best.layernorm_gelu,
    first=("torch_eager", "torch_compile", "triton_erf", "triton_fused", "cuda_fused"),
    variants=layernorm_gelu_variants(),
    presets=presets("gpt-2", "bert-base", "llama-3-8b"),
    slab="m",
    fusion=LAYERNORM_GELU,
)

BATCHNORM_RELU = Op(
    name="batchnorm_relu",
    family="normalisation",
    summary="relu of batch normalisation at inference: running statistics, weight and bias of each channel",
    formula="y = max((x − mean) / √(|variance| + 10⁻⁵) · w + b, 0)",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=(
        TensorSpec(name="x_MN", axes=("m", "n")),
        TensorSpec(name="mean_N", axes=("n",), dtype="fp32"),
        TensorSpec(name="variance_N", axes=("n",), dtype="fp32"),
        TensorSpec(name="w_N", axes=("n",), dtype="fp32"),
        TensorSpec(name="b_N", axes=("n",), dtype="fp32"),
    ),
    outputs=(TensorSpec(name="y_MN", axes=("m", "n")),),
    cost=batchnorm_relu_cost,
    reference=batchnorm_relu_reference,
    bound=batchnorm_relu_bound,
    rule=(
        "|error| ≤ 8 ((|x| + |mean|) |a| + |b|) 2⁻²⁴ + 2 u |z|, a = w / √(|variance| + 10⁻⁵), z before relu: in fp32, "
        "at most two roundings to the output's format"
    ),
    baseline="torch_eager",
    best=best.batchnorm_relu,
    first=("torch_eager", "torch_compile", "triton_fused", "cuda_columns"),
    variants=batchnorm_relu_variants(),
    presets=(
        Preset(
            name="resnet-50",
            caption="ResNet-50 at batch 256, NHWC: the positions of each stage and its channels",
            sizes={"m": "802816,200704,50176,12544", "n": "64,256,512,2048"},
        ),
        *presets(),
    ),
    slab="m",
    fusion=BATCHNORM_RELU_FUSION,
)
