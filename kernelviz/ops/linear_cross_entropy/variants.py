"""The variants of `linear_cross_entropy`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, PublishedGain, variant
from kernelviz.ops.linear_cross_entropy.tiles import admits_descriptors
from kernelviz.ops.linear_cross_entropy.variants_backward import (
    chunked_backward,
    compile_backward,
    composed,
    composite_backward,
    eager_backward,
    fused,
    liger_backward,
    triton_backward,
)
from kernelviz.ops.linear_cross_entropy.variants_wgmma import WGMMA_VARIANTS

if TYPE_CHECKING:
    from torch import Tensor

# 8192 tokens of Gemma 2 2B (hidden size 2304, vocabulary 256000): 81.9 ms with logits in fp32, 49.9 compiled, 46.4 never stored.
_SOURCE = "github.com/apple/ml-cross-entropy"
_COMPILED = PublishedGain(factor=81.9 / 49.9, over="composite_eager", gpu="A100", source=_SOURCE)
_NEVER_STORED = PublishedGain(factor=49.9 / 46.4, over="torch_compile", gpu="A100", source=_SOURCE)
_DESCRIPTORS = {
    "tile_m": (128, 256, 64),
    "tile_n": (256, 128),
    "tile_k": (64, 128),
    "stages": (3, 4, 5, 6),
    "warps": (8, 4),
    "group": (16, 4, 8, 32),
    "flatten": (1, 0),
}


@variant(backend="torch", backward=composite_backward)
def composite_eager(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, *, compute: str | None = None) -> Launch:
    """Single torch ops: a product stores all logits; max, subtract, exp, sum and log each pass over them in float32."""
    from kernelviz.ops.kernels.torch_precision import in_precision

    return in_precision(lambda: composed(x_MH, w_VH, labels_M), x_MH, compute)


@variant(backend="torch", backward=eager_backward)
def torch_eager(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, *, compute: str | None = None) -> Launch:
    """Materialised: functional.linear stores the logits, and functional.cross_entropy their ln p, as many numbers again."""
    from kernelviz.ops.kernels.torch_precision import in_precision

    return in_precision(lambda: fused(x_MH, w_VH, labels_M), x_MH, compute)


@variant(backend="inductor", needs=("inductor",), slow_compile=True, published=_COMPILED, backward=compile_backward)
def torch_compile(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, *, compute: str | None = None) -> Launch:
    """torch.compile of both ops: the product stays cuBLAS's and stores the logits, which inductor reads without storing ln p."""
    from kernelviz.ops.kernels.inductor import compiled
    from kernelviz.ops.kernels.torch_precision import in_precision, precision

    # torch.compile compiles again where a setting has changed.
    with precision(x_MH, compute):
        run = compiled(fused, x_MH, w_VH, labels_M)
    return in_precision(run, x_MH, compute)


@variant(backend="torch", backward=chunked_backward)
def torch_chunked(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, *, compute: str | None = None) -> Launch:
    """Chunks of rows: product and log_softmax of as many rows at a time as have 128 MiB of logits, so that memory is bounded."""
    from kernelviz.ops.kernels.torch_precision import in_precision
    from kernelviz.ops.linear_cross_entropy import chunks

    return in_precision(chunks.bind_loss(x_MH, w_VH, labels_M), x_MH, compute)


@variant(backend="library", needs=("liger", "triton", "cuda"), backward=liger_backward)
def liger(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, *, compute: str | None = None) -> Launch:
    """Liger's fused linear cross-entropy, without the gradients that it can compute in its forward pass: chunks as large as x."""
    from kernelviz.ops.kernels.torch_precision import in_precision
    from kernelviz.ops.linear_cross_entropy import liger as kernels

    return in_precision(kernels.bind_loss(x_MH, w_VH, labels_M), x_MH, compute)


@variant(
    backend="library", needs=("cut_cross_entropy", "triton", "cuda"), dtypes=("bf16", "fp16"), published=_NEVER_STORED
)
def cut_cross_entropy(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor) -> Launch:
    """Apple's cut-cross-entropy: Triton tiles of logits that are never stored; ln Σ exp of each is added under a lock."""
    from kernelviz.ops.linear_cross_entropy import cut_cross_entropy as kernels

    return kernels.bind_loss(x_MH, w_VH, labels_M)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("cp_async", "mma_sync", "wgmma", "tcgen05"),
    published=_NEVER_STORED,
    backward=triton_backward,
)
def triton_tiles(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor) -> Launch:
    """Triton, logits never stored: a program reduces its tile to maximum, sum and label's logit; another kernel combines them."""
    from kernelviz.ops.linear_cross_entropy import triton as kernels

    return kernels.bind_loss(x_MH, w_VH, labels_M)


@variant(
    backend="triton",
    needs=("triton", "cuda", "sm_90"),
    targets=("sm_90",),
    dtypes=("bf16", "fp16"),
    techniques=("tma", "wgmma"),
    space=_DESCRIPTORS,
    admits=admits_descriptors,
)
def triton_descriptors(
    x_MH: Tensor,
    w_VH: Tensor,
    labels_M: Tensor,
    *,
    tile_m: int = 128,
    tile_n: int = 256,
    tile_k: int = 64,
    stages: int = 3,
    warps: int = 8,
    group: int = 16,
    flatten: int = 1,
) -> Launch:
    """Triton, persistent, with tensor descriptors: TMA loads the next tiles of x and w while a tile of logits is reduced."""
    from kernelviz.ops.linear_cross_entropy import triton_descriptors as kernels

    return kernels.bind_descriptors(
        x_MH,
        w_VH,
        labels_M,
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k=tile_k,
        stages=stages,
        warps=warps,
        group=group,
        flatten=flatten,
    )


VARIANTS = (
    composite_eager,
    torch_eager,
    torch_compile,
    torch_chunked,
    liger,
    cut_cross_entropy,
    triton_tiles,
    triton_descriptors,
    *WGMMA_VARIANTS,
)
