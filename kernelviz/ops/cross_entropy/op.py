"""The ops `cross_entropy` and `cross_entropy_with_grad`: losses of a language model, with or without their gradient."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Backward, Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.cross_entropy import best
from kernelviz.ops.cross_entropy.reference import (
    backward_bound,
    backward_reference,
    bound,
    reference,
    with_grad_bound,
    with_grad_reference,
)
from kernelviz.ops.cross_entropy.variants import (
    composite_eager,
    cuda_cluster,
    cuda_row,
    liger,
    torch_compile,
    torch_eager,
    triton_block_per_row,
    triton_online,
)
from kernelviz.ops.cross_entropy.variants_by_length import (
    cuda_known_length,
    cuda_slab,
    cuda_slab_stages,
    cuda_split,
    triton_known_size,
)
from kernelviz.ops.cross_entropy.variants_cross_entropy_with_grad import WITH_GRAD_VARIANTS

LOGITS = TensorSpec(name="logits_MV", axes=("m", "v"))


LABELS = TensorSpec(name="labels_M", axes=("m",), dtype="int64", below="v", ids="labels")


def backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Three operations an element (subtract, exp, subtract): logits, labels and gradients of the losses read, theirs written.

    >>> backward_cost({"m": 2, "v": 1024}, 4)
    Cost(work_flop=6144, read_bytes=8216, written_bytes=8192)
    """
    m, v = sizes["m"], sizes["v"]
    read_bytes = (m * v + m) * itemsize_bytes + 8 * m
    return Cost(work_flop=3 * m * v, read_bytes=read_bytes, written_bytes=m * v * itemsize_bytes)


BACKWARD = Backward(
    inputs=(LOGITS, LABELS, TensorSpec(name="dloss_M", axes=("m",))),
    outputs=(TensorSpec(name="dlogits_MV", axes=("m", "v")),),
    cost=backward_cost,
    reference=backward_reference,
    bound=backward_bound,
    rule=(
        "|error| ≤ 1.01 u |dx| + |dloss| p (exp(1.01 u (|ln p| + 1 + ln S) + units 2⁻²⁴) − 1): ln p may have been stored in "
        "the input's format, everything else in fp32"
    ),
    slab="m",
)


AXES = (
    Axis(name="m", caption="tokens", default="4096", cpu_default="64"),
    Axis(name="v", caption="vocabulary", default="32000,50257,128256,152064", cpu_default="1000,4096,16384"),
)


def _preset(name: str, caption: str, vocabulary: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"m": "1,16,512,8192", "v": str(vocabulary)})


PRESETS = (
    _preset("llama-2", "Llama 2, vocabulary of 32000", 32000),
    _preset("llama-3", "Llama 3, vocabulary of 128256", 128256),
    _preset("qwen2.5", "Qwen2.5, vocabulary of 152064", 152064),
    _preset("gpt-2", "GPT-2, vocabulary of 50257: odd, so rows start anywhere in a 16-byte vector", 50257),
    Preset(
        name="large", caption="2^29 logits: 1 GiB in half precision", sizes={"m": "2^29/v", "v": "32768,65536,131072"}
    ),
)


def with_grad_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Six operations an element (compare, subtract, exp, add, multiply, subtract); logits and labels read, gradient and a loss
    a row written.

    >>> with_grad_cost({"m": 2, "v": 1024}, 4)
    Cost(work_flop=12288, read_bytes=8208, written_bytes=8200)
    """
    m, v = sizes["m"], sizes["v"]
    return Cost(
        work_flop=6 * m * v,
        read_bytes=m * v * itemsize_bytes + 8 * m,
        written_bytes=(m * v + m) * itemsize_bytes,
    )


WITH_GRAD = Op(
    name="cross_entropy_with_grad",
    family="loss",
    summary="Cross-entropy loss of each row of logits, and the gradient of their sum",
    formula="loss = ln Σ exp(x) − x[label], dx = softmax(x) − 1[label]",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=(LOGITS, LABELS),
    outputs=(TensorSpec(name="loss_M", axes=("m",)), TensorSpec(name="dlogits_MV", axes=("m", "v"))),
    cost=with_grad_cost,
    reference=with_grad_reference,
    bound=with_grad_bound,
    rule=(
        "loss as in cross_entropy; |error of dx| ≤ 1.01 u |dx| + p (exp(1.01 u (|ln p| + 1 + ln S) + units 2⁻²⁴) − 1): ln p may "
        "have been stored in the input's format, everything else in fp32"
    ),
    baseline="torch_eager",
    best=best.with_grad,
    first=("torch_eager", "torch_compile", "liger", "triton_online", "cuda_cluster"),
    variants=WITH_GRAD_VARIANTS,
    presets=PRESETS,
    slab="m",
)


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Four operations an element (compare, subtract, exp, add); logits and labels (8 bytes) read, a loss a row written.

    >>> cost({"m": 2, "v": 1024}, 4)
    Cost(work_flop=8192, read_bytes=8208, written_bytes=8)
    """
    m, v = sizes["m"], sizes["v"]
    return Cost(work_flop=4 * m * v, read_bytes=m * v * itemsize_bytes + 8 * m, written_bytes=m * itemsize_bytes)


OPS = (
    Op(
        name="cross_entropy",
        family="loss",
        summary="Cross-entropy loss of each row of logits",
        formula="loss = ln Σ exp(x) − x[label]",
        axes=AXES,
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(LOGITS, LABELS),
        outputs=(TensorSpec(name="loss_M", axes=("m",)),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule=(
            "|error| ≤ 1.01 u (loss + 1 + ln S) + 2⁻²⁴ (16 + √V + 2.5 Σ p (max − x) + 2 (|max| + |ln Σ exp x| + |x[label]|)), "
            "S = Σ exp(x − max): in fp32; S, ln S and the loss rounded"
        ),
        baseline="torch_eager",
        best=best.cross_entropy,
        first=("torch_eager", "torch_compile", "liger", "triton_online", "cuda_row"),
        variants=(
            composite_eager,
            torch_eager,
            torch_compile,
            liger,
            triton_block_per_row,
            triton_online,
            triton_known_size,
            cuda_row,
            cuda_cluster,
            cuda_slab,
            cuda_slab_stages,
            cuda_known_length,
            cuda_split,
        ),
        presets=PRESETS,
        slab="m",
        backward=BACKWARD,
    ),
    WITH_GRAD,
)
