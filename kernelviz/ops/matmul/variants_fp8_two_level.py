"""The variants of `scaled_matmul` and `block_scaled_matmul` with an operand in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelviz.ops.catalog.variant import Launch, Variant, variant
from kernelviz.ops.matmul import wgmma_fp8_two_level as kernels
from kernelviz.ops.matmul.reference_fp8 import PRECISE
from kernelviz.ops.matmul.wgmma_fp8_two_level import TwoLevelOptions

if TYPE_CHECKING:
    from torch import Tensor

_CUDA: dict[str, Any] = {
    "backend": "cuda",
    "needs": ("nvrtc", "cuda", "sm_90a"),
    "techniques": ("tma", "wgmma", "warp_specialised", "multicast"),
    "space": kernels.SPACE,
    "admits": kernels.admits,
}


def _scaled() -> Variant:
    @variant(**_CUDA, computes=(PRECISE,))
    def cuda_wgmma_registers(
        a_MK: Tensor,
        b_NK: Tensor,
        a_scale: Tensor,
        b_scale: Tensor,
        *,
        columns: int = 256,
        stages: int = 4,
        cluster: int = 2,
        c_boxes: int = 2,
        group: int = 0,
        a_registers: int = 1,
    ) -> Launch:
        """CUDA C++, as cuda_wgmma_two_level, with A in registers, read from shared memory once for both halves of a tile."""
        options = TwoLevelOptions(
            columns=columns, stages=stages, cluster=cluster, c_boxes=c_boxes, group=group, a_registers=a_registers
        )
        return kernels.bind(a_MK, b_NK, a_scale, b_scale, options)

    return cuda_wgmma_registers


def _block_scaled() -> Variant:
    @variant(**_CUDA)
    def cuda_wgmma_registers(
        a_MK: Tensor,
        b_NK: Tensor,
        a_scale: Tensor,
        b_scale: Tensor,
        *,
        columns: int = 256,
        stages: int = 4,
        cluster: int = 2,
        c_boxes: int = 2,
        group: int = 0,
        a_registers: int = 1,
    ) -> Launch:
        """CUDA C++, as cuda_wgmma, with A in registers, and scales that are loaded a whole block of K before they are needed."""
        options = TwoLevelOptions(
            columns=columns,
            stages=stages,
            cluster=cluster,
            c_boxes=c_boxes,
            group=group,
            a_registers=a_registers,
            blocks=True,
        )
        return kernels.bind(a_MK, b_NK, a_scale, b_scale, options)

    return cuda_wgmma_registers


SCALED_REGISTERS, BLOCK_SCALED_REGISTERS = _scaled(), _block_scaled()
