"""The Triton and Gluon variants of attention, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Variant, variant

if TYPE_CHECKING:
    from torch import Tensor


def triton_variants(*, causal: bool) -> tuple[Variant, ...]:
    """Each adds one idea to the one before it."""

    @variant(backend="triton", needs=("triton", "cuda"), only_when_named=True)
    def triton_published(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """The published kernel (source 3), Triton: whole rows of scores in registers, so only short sequences fit."""
        from kernelviz.ops.attention import triton as kernels

        return kernels.bind_published(q_BSHD, k_BSHD, v_BSHD, causal=causal)

    def flash_backward(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor) -> Launch:
        """A pass over tiles of keys for dk and dv, another over queries for dq; the same results each time."""
        from kernelviz.ops.attention import triton_backward as kernels

        return kernels.bind_two_passes(q_BSHD, k_BSHD, v_BSHD, do_BSHD, causal=causal)

    @variant(
        backend="triton",
        needs=("triton", "cuda"),
        techniques=("cp_async", "mma_sync", "wgmma", "tcgen05"),
        backward=flash_backward,
    )
    def triton_flash(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """Triton, online softmax: keys in tiles, scores stay on the SM. Backward: passes for dk, dv and for dq, deterministic."""
        from kernelviz.ops.attention import triton as kernels

        return kernels.bind_flash(q_BSHD, k_BSHD, v_BSHD, causal=causal)

    def descriptors_backward(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor) -> Launch:
        """As that of triton_flash, with tiles loaded by TMA; the same results each time."""
        from kernelviz.ops.attention import triton_descriptors_backward as kernels

        return kernels.bind_two_passes(q_BSHD, k_BSHD, v_BSHD, do_BSHD, causal=causal)

    @variant(
        backend="triton",
        needs=("triton", "cuda", "sm_90"),
        techniques=("tma", "wgmma", "tcgen05"),
        backward=descriptors_backward,
    )
    def triton_descriptors(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """Triton, persistent, TMA: a program of an SM computes exponentials, another multiplies. Backward: passes, by TMA."""
        from kernelviz.ops.attention import triton_descriptors as kernels

        return kernels.bind_descriptors(q_BSHD, k_BSHD, v_BSHD, causal=causal)

    @variant(
        backend="gluon",
        needs=("triton", "gluon", "cuda", "sm_90a"),
        techniques=("tma", "wgmma", "warp_specialised"),
    )
    def gluon_warp_specialised(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Launch:
        """Gluon, persistent: one warp loads; two warpgroups compute exponentials of a tile while the one before is multiplied."""
        from kernelviz.ops.attention import gluon as kernels

        return kernels.bind_warp_specialised(q_BSHD, k_BSHD, v_BSHD, causal=causal)

    return (triton_published, triton_flash, triton_descriptors, gluon_warp_specialised)
