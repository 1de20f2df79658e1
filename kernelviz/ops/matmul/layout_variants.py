"""The variants of `matmul_nt` and `matmul_tt`, in ladder order. In both B is stored as (n, k)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Variant, variant
from kernelviz.ops.matmul.tiles import admits_descriptors
from kernelviz.ops.matmul.variants_triton import _DESCRIPTORS
from kernelviz.ops.matmul.wgmma_choice import SPACE, admits_layouts

if TYPE_CHECKING:
    from torch import Tensor


def product_nt(a_MK: Tensor, b_NK: Tensor) -> Tensor:
    """a bᵀ, for the compiler."""
    return a_MK @ b_NK.t()


def product_tt(a_KM: Tensor, b_NK: Tensor) -> Tensor:
    """aᵀ bᵀ, for the compiler."""
    return a_KM.t() @ b_NK.t()


def layout_ladder(*, a_transposed: bool, a_name: str, b_name: str) -> tuple[Variant, ...]:
    """The variants for A as (m, k), or as (k, m) if it is transposed. The names are those of the inputs, for messages."""

    @variant(backend="torch")
    def contiguous_then_matmul(a: Tensor, b: Tensor, *, compute: str | None = None) -> Launch:
        """.t().contiguous() of each transposed factor, then torch.mm: each copy reads and writes a factor once more."""
        import torch

        from kernelviz.ops.matmul.torch import bind_mm

        views = [a.t(), b.t()] if a_transposed else [b.t()]
        copies = [torch.empty(v.shape, dtype=v.dtype, device=v.device) for v in views]
        multiply = bind_mm(copies[0] if a_transposed else a, copies[-1], compute)

        def launch() -> Tensor:
            for copy, view in zip(copies, views, strict=True):
                copy.copy_(view)
            result = multiply()
            assert isinstance(result, torch.Tensor)
            return result

        return launch

    @variant(backend="torch")
    def torch_eager(a: Tensor, b: Tensor, *, compute: str | None = None) -> Launch:
        """torch.mm of transposed views: cuBLAS reads the factors as they are stored, because it takes their layout."""
        from kernelviz.ops.matmul.torch import bind_mm

        return bind_mm(a.t() if a_transposed else a, b.t(), compute)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(a: Tensor, b: Tensor, *, compute: str | None = None) -> Launch:
        """torch.compile of transposition and product: inductor gives cuBLAS the transposed view, so nothing is copied."""
        from kernelviz.ops.kernels.inductor import compiled
        from kernelviz.ops.kernels.torch_precision import in_precision, precision

        # torch.compile compiles again where a setting has changed.
        with precision(a, compute):
            run = compiled(product_tt if a_transposed else product_nt, a, b)
        return in_precision(run, a, compute)

    @variant(backend="triton", needs=("triton", "cuda"), techniques=("cp_async", "mma_sync", "wgmma"))
    def triton_strided(a: Tensor, b: Tensor, *, compute: str | None = None) -> Launch:
        """Triton, the grouped tiles of matmul through pointers with strides: each factor is read along its contiguous axis."""
        from kernelviz.ops.kernels.layout import require_contiguous
        from kernelviz.ops.matmul import triton_strided as kernels

        require_contiguous(**{a_name: a, b_name: b})
        return kernels.bind_strided(a.t() if a_transposed else a, b.t(), compute=compute)

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
        a: Tensor,
        b: Tensor,
        *,
        tile_m: int = 128,
        tile_n: int = 256,
        tile_k: int = 64,
        stages: int = 3,
        warps: int = 8,
        group: int = 16,
        parts: int = 1,
        flatten: int = 1,
    ) -> Launch:
        """Triton, persistent, with tensor descriptors: TMA loads tiles as they are stored, and wgmma reads them transposed."""
        from kernelviz.ops.kernels.layout import require_contiguous
        from kernelviz.ops.matmul import triton_layouts as kernels

        require_contiguous(**{a_name: a, b_name: b})
        tile = kernels.Tile(
            tile_m=tile_m,
            tile_n=tile_n,
            tile_k=tile_k,
            stages=stages,
            warps=warps,
            group=group,
            parts=parts,
            flatten=bool(flatten),
        )
        names = ("m" if a_transposed else "k", "k", "n")
        return kernels.bind_layouts(a, b, tile, a_transposed=a_transposed, b_transposed=True, names=names)

    @variant(
        backend="cuda",
        needs=("nvrtc", "cuda", "sm_90a"),
        dtypes=("bf16", "fp16"),
        techniques=("tma", "wgmma", "warp_specialised", "multicast"),
        space=SPACE,
        admits=admits_layouts,
    )
    def cuda_wgmma(
        a: Tensor,
        b: Tensor,
        *,
        rows: int = 0,
        columns: int = 0,
        cluster: int = 0,
        stages: int = 0,
    ) -> Launch:
        """CUDA C++, wgmma with a tile by the size and factors described as they are stored, so nothing is copied."""
        from kernelviz.ops.kernels.layout import require_contiguous
        from kernelviz.ops.matmul import wgmma_layouts

        require_contiguous(**{a_name: a, b_name: b})
        return (wgmma_layouts.bind_tt if a_transposed else wgmma_layouts.bind_nt)(
            a, b, (rows, columns, cluster, stages)
        )

    return contiguous_then_matmul, torch_eager, torch_compile, triton_strided, triton_descriptors, cuda_wgmma
