"""Cross-entropy of logits and labels: one read of the largest matrix of a language model, and its gradient on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Launch, Op, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.cross_entropy import formulas
from kernelviz.ops.cross_entropy.bounds import bound
from kernelviz.ops.cross_entropy.with_grad import AXES, PRESETS, WITH_GRAD

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Four operations an element (compare, subtract, exp, add); logits and labels (8 bytes) read, a loss a row written.

    >>> cost({"m": 2, "v": 1024}, 4)
    Cost(work_flop=8192, read_bytes=8208, written_bytes=8)
    """
    m, v = sizes["m"], sizes["v"]
    return Cost(work_flop=4 * m * v, read_bytes=m * v * itemsize_bytes + 8 * m, written_bytes=m * itemsize_bytes)


def reference(logits_MV: Tensor, labels_M: Tensor) -> Tensors:
    """ln Σ exp x - x of the label, a row each."""
    return (-logits_MV.log_softmax(-1).gather(-1, labels_M[:, None]).squeeze(-1),)


@variant(backend="torch", backward=formulas.composite)
def composite_eager(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: max, subtract, exp, sum and log, each a pass over the whole matrix."""
    return lambda: formulas.composed(logits_MV, labels_M)


@variant(backend="torch", backward=formulas.eager)
def torch_eager(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Eager: functional.cross_entropy, which is log_softmax (writes as much as it reads) and then the label's entry."""
    return lambda: formulas.fused(logits_MV, labels_M)


@variant(backend="inductor", needs=("inductor",), late=True, backward=formulas.compiled)
def torch_compile(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """torch.compile of cross_entropy: inductor reads the logits twice and stores no ln p."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(formulas.fused, logits_MV, labels_M)


@variant(backend="library", needs=("liger", "triton", "cuda"))
def liger(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Liger's Triton kernel without its gradient: a program of 1024 threads a row, online, in blocks of up to 32768."""
    from kernelviz.ops.cross_entropy import library

    return library.bind_loss(logits_MV, labels_M)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_block_per_row(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Triton, a program a row in one piece: nothing else is under way while it is reduced. Rows beyond 64 KiB in chunks."""
    from kernelviz.ops.cross_entropy import triton as kernels

    return kernels.bind_block_per_row(logits_MV, labels_M)


@variant(backend="triton", needs=("triton", "cuda"), backward=formulas.triton)
def triton_online(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Triton, maximum and sum in one pass over chunks of the row, several of them under way: one read, nothing kept."""
    from kernelviz.ops.cross_entropy import triton as kernels

    return kernels.bind_online(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda"), backward=formulas.cuda)
def cuda_row(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, a block a row: four 16-byte words a thread on their way while four others are summed, maxima two at a time."""
    from kernelviz.ops.cross_entropy import cuda as kernels

    return kernels.bind_loss(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"))
def cuda_cluster(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, as cuda_row, but up to eight SMs share a row where there are fewer rows than places for blocks."""
    from kernelviz.ops.cross_entropy import cuda as kernels

    return kernels.bind_loss_cluster(logits_MV, labels_M)


OPS = (
    Op(
        name="cross_entropy",
        family="loss",
        summary="Cross-entropy loss of each row of logits",
        formula="loss = ln Σ exp(x) − x[label]",
        axes=AXES,
        dtypes=("bf16", "fp16", "fp32"),
        inputs=(formulas.LOGITS, formulas.LABELS),
        outputs=(TensorSpec(name="loss_M", axes=("m",)),),
        cost=cost,
        reference=reference,
        bound=bound,
        rule=(
            "|error| ≤ 1.01 u (loss + 1 + ln S) + 2⁻²⁴ (16 + √V + 2.5 Σ p (max − x) + 2 (|max| + |ln Σ exp x| + |x[label]|)), "
            "S = Σ exp(x − max): in fp32; S, ln S and the loss rounded"
        ),
        baseline="torch_eager",
        first=("torch_eager", "torch_compile", "liger", "triton_online", "cuda_row"),
        variants=(
            composite_eager,
            torch_eager,
            torch_compile,
            liger,
            triton_block_per_row,
            triton_online,
            cuda_row,
            cuda_cluster,
        ),
        presets=PRESETS,
        slab="m",
        backward=formulas.BACKWARD,
    ),
    WITH_GRAD,
)
