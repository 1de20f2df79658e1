"""The op `linear_cross_entropy`: its cost, its presets and its variants."""

from __future__ import annotations

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Backward, Op
from kernelviz.ops.catalog.tensors import Axis, Preset, Sizes, TensorSpec
from kernelviz.ops.linear_cross_entropy import best
from kernelviz.ops.linear_cross_entropy.reference import (
    BACKWARD_RULE,
    RULE,
    backward_bound,
    backward_reference,
    bound,
    reference,
)
from kernelviz.ops.linear_cross_entropy.variants import VARIANTS

LABEL_BYTES = 8
X = TensorSpec(name="x_MH", axes=("m", "h"))
W = TensorSpec(name="w_VH", axes=("v", "h"))
INPUTS = (X, W, TensorSpec(name="labels_M", axes=("m",), dtype="int64", below="v", ids="labels"))


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """The product's 2MHV and four operations a logit (compare, subtract, exp, add); x, w and labels (8 bytes) read once, a loss
    a row written. Logits need not be in memory, so they are not counted.

    >>> cost({"m": 2, "h": 3, "v": 5}, 2)
    Cost(work_flop=100, read_bytes=58, written_bytes=4)
    """
    m, h, v = sizes["m"], sizes["h"], sizes["v"]
    return Cost(
        work_flop=2 * m * h * v + 4 * m * v,
        read_bytes=(m * h + v * h) * itemsize_bytes + LABEL_BYTES * m,
        written_bytes=m * itemsize_bytes,
    )


def backward_cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """The two products of the gradients, 4MHV, and four operations a logit (subtract, exp, subtract, multiply); x, w, labels
    and the gradients of the losses read once, those of x and w written once.

    This is the least work of any variant: one that finds the logits in memory, where its forward pass left them. A variant that
    computes them again does 6MHV, so at the peak rate its work counts as two thirds of the peak.

    >>> backward_cost({"m": 2, "h": 3, "v": 5}, 2)
    Cost(work_flop=160, read_bytes=62, written_bytes=42)
    """
    m, h, v = sizes["m"], sizes["h"], sizes["v"]
    factors = (m * h + v * h) * itemsize_bytes
    return Cost(
        work_flop=4 * m * h * v + 4 * m * v,
        read_bytes=factors + (LABEL_BYTES + itemsize_bytes) * m,
        written_bytes=factors,
    )


def _preset(name: str, caption: str, h: int, v: int) -> Preset:
    return Preset(name=name, caption=caption, sizes={"m": "2^10..2^14", "h": str(h), "v": str(v)})


OPS = (
    Op(
        name="linear_cross_entropy",
        family="loss",
        summary="Cross-entropy of a linear layer: the loss of each hidden state against a vocabulary",
        formula="loss = ln Σ exp(x wᵀ) − (x wᵀ)[label]",
        axes=(
            Axis(name="m", caption="tokens", default="2^10..2^13", cpu_default="64"),
            Axis(name="h", caption="hidden size", default="4096", cpu_default="128"),
            Axis(name="v", caption="vocabulary", default="128256", cpu_default="1000,4096"),
        ),
        dtypes=("bf16", "fp16", "fp32"),
        computes={"fp32": ("ieee",)},
        inputs=INPUTS,
        outputs=(TensorSpec(name="loss_M", axes=("m",)),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule=RULE,
        baseline="torch_eager",
        best=best.loss,
        first=(
            "torch_eager",
            "torch_compile",
            "torch_chunked",
            "liger",
            "triton_tiles",
            "triton_descriptors",
            "cuda_wgmma",
            "cuda_wgmma_cluster",
        ),
        variants=VARIANTS,
        presets=(
            _preset("llama-3-8b", "Llama 3 8B, vocabulary of 128256", 4096, 128256),
            _preset("qwen2.5-7b", "Qwen2.5 7B, vocabulary of 152064", 3584, 152064),
            _preset("gemma-2-2b", "Gemma 2 2B, vocabulary of 256000", 2304, 256000),
            _preset("gpt-2", "GPT-2, vocabulary of 50257, which is odd", 768, 50257),
            _preset("deepseek-v3", "DeepSeek-V3, vocabulary of 129280", 7168, 129280),
        ),
        slab="m",
        backward=Backward(
            inputs=(*INPUTS, TensorSpec(name="dloss_M", axes=("m",))),
            outputs=(
                TensorSpec(name="dx_MH", axes=("m", "h")),
                TensorSpec(name="dw_VH", axes=("v", "h")),
            ),
            cost=backward_cost,
            reference=backward_reference,
            bound=backward_bound,
            rule=BACKWARD_RULE,
        ),
    ),
)
