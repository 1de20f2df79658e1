"""The op `cross_entropy_with_grad`: losses and the logits' gradient in one call, as training needs both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Axis, Launch, Op, Preset, Sizes, Tensors, TensorSpec, variant
from kernelviz.ops.cross_entropy import formulas
from kernelviz.ops.cross_entropy.bounds import with_grad_bound

if TYPE_CHECKING:
    from torch import Tensor

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
    _preset("gpt-2", "GPT-2, vocabulary of 50257: odd, so rows start anywhere in a 16-byte word", 50257),
    Preset(
        name="large", caption="2^29 logits: 1 GiB in half precision", sizes={"m": "2^29/v", "v": "32768,65536,131072"}
    ),
)


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Six operations an element (compare, subtract, exp, add, multiply, subtract); logits and labels read, gradient and a loss
    a row written.

    >>> cost({"m": 2, "v": 1024}, 4)
    Cost(work_flop=12288, read_bytes=8208, written_bytes=8200)
    """
    m, v = sizes["m"], sizes["v"]
    return Cost(
        work_flop=6 * m * v,
        read_bytes=m * v * itemsize_bytes + 8 * m,
        written_bytes=(m * v + m) * itemsize_bytes,
    )


def reference(logits_MV: Tensor, labels_M: Tensor) -> Tensors:
    """ln Σ exp x - x of the label, and p - 1(label): the gradient of the sum of the losses."""
    loss_M = -logits_MV.log_softmax(-1).gather(-1, labels_M[:, None]).squeeze(-1)
    return (loss_M, formulas.gradient(logits_MV, labels_M))


@variant(backend="torch")
def composite_eager(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: the losses and, with the powers at hand, the gradient's formula."""
    return lambda: formulas.composed_with_grad(logits_MV, labels_M)


@variant(backend="torch")
def torch_eager(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Eager as in training: functional.cross_entropy, then autograd, which reads the ln p that log_softmax has stored."""
    import torch

    ones_M = torch.ones(labels_M.shape, dtype=logits_MV.dtype, device=logits_MV.device)

    def launch() -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            leaf_MV = logits_MV.detach().requires_grad_()
            loss_M = formulas.fused(leaf_MV, labels_M)
        (gradient_MV,) = torch.autograd.grad(loss_M, leaf_MV, ones_M)
        return loss_M.detach(), gradient_MV

    return launch


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """torch.compile of the formulas of loss and gradient: one function, so inductor may share what they read."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(formulas.composed_with_grad, logits_MV, labels_M)


@variant(backend="library", needs=("liger", "triton", "cuda"), mutates=("logits_MV",))
def liger(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Liger's Triton kernel: the gradient takes the place of the logits, so no second matrix; a row is read twice."""
    from kernelviz.ops.cross_entropy import library

    return library.bind_with_grad(logits_MV, labels_M)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_online(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Triton, maximum and sum in one pass over chunks of the row; a second pass, served by L2, writes the gradient."""
    from kernelviz.ops.cross_entropy import triton as kernels

    return kernels.bind_online_with_grad(logits_MV, labels_M)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_block_per_row(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Triton, a row of up to 64 KiB is read once, kept in registers until the sum is known, and written as the gradient."""
    from kernelviz.ops.cross_entropy import triton as kernels

    return kernels.bind_block_per_row_with_grad(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_row(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, a block a row: up to 64 KiB in registers as 16-byte words, longer rows twice, in chunks."""
    from kernelviz.ops.cross_entropy import cuda as kernels

    return kernels.bind_row_with_grad(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"))
def cuda_cluster(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, long rows in registers and shared memory of one SM or a cluster: each is read once, whatever its length."""
    from kernelviz.ops.cross_entropy import cuda as kernels

    return kernels.bind_cluster_with_grad(logits_MV, labels_M)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
)
def cuda_columns(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, clusters that stay: while a row's gradient is written the next row is summed and the one after asked for."""
    from kernelviz.ops.cross_entropy import columns as kernels

    return kernels.bind_columns_with_grad(logits_MV, labels_M)


WITH_GRAD = Op(
    name="cross_entropy_with_grad",
    family="loss",
    summary="Cross-entropy loss of each row of logits, and the gradient of their sum",
    formula="loss = ln Σ exp(x) − x[label], dx = softmax(x) − 1[label]",
    axes=AXES,
    dtypes=("bf16", "fp16", "fp32"),
    inputs=(formulas.LOGITS, formulas.LABELS),
    outputs=(TensorSpec(name="loss_M", axes=("m",)), TensorSpec(name="dlogits_MV", axes=("m", "v"))),
    cost=cost,
    reference=reference,
    bound=with_grad_bound,
    rule=(
        "loss as in cross_entropy; |error of dx| ≤ 1.01 u |dx| + p (exp(1.01 u (|ln p| + 1 + ln S) + units 2⁻²⁴) − 1): ln p may "
        "have been stored in the input's format, everything else in fp32"
    ),
    baseline="torch_eager",
    first=("torch_eager", "torch_compile", "liger", "triton_online", "cuda_cluster"),
    variants=(
        composite_eager,
        torch_eager,
        torch_compile,
        liger,
        triton_online,
        triton_block_per_row,
        cuda_row,
        cuda_cluster,
        cuda_columns,
    ),
    presets=PRESETS,
    slab="m",
)
