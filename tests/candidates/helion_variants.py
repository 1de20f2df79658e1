"""Variants of `matmul` in Helion, as a plug-in that has not passed the GPU suite:

    kernelviz run matmul --with tests/candidates/helion_variants.py --variants torch_eager,helion_descriptors --size m=4096

On an H200 with torch 2.11 (2026-11-26), binding ends in an ImportError, because Helion 1.5.1 imports a name from inductor that
torch 2.11 does not have. To finish: move both files to `kernelviz/ops/matmul` (`helion.py`, `variants_helion.py`), add
HELION_VARIANTS to the op, and run the part `kernels` of the GPU suite where a torch is installed that Helion takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration, Launch, variant

if TYPE_CHECKING:
    from torch import Tensor

MOST_SHARED_BYTES = 232_448
"""Of a block on an H100 or H200."""
_HELION: dict[str, Any] = {"op": "matmul", "backend": "helion", "dtypes": ("bf16", "fp16"), "slow_compile": True}
_SPACE = {
    "tile_m": (128, 64, 256),
    "tile_n": (256, 128, 64),
    "tile_k": (64, 32, 128),
    "stages": (3, 4, 2),
    "warps": (8, 4),
    "group": (8, 4, 16),
}


def admits(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: its sums do not fit into registers, or its tiles into shared memory."""
    rows, columns, depth = (configuration[f"tile_{axis}"] for axis in "mnk")
    if rows * columns > 128 * 32 * configuration["warps"]:
        return f"the sums of {rows}×{columns} do not fit into the registers of {configuration['warps']} warps"
    shared_bytes = 2 * configuration["stages"] * depth * (rows + columns)
    if shared_bytes > MOST_SHARED_BYTES:
        return f"needs {shared_bytes:,} bytes of shared memory"
    return None


@variant(**_HELION, needs=("helion", "triton", "cuda"), space=_SPACE, admits=admits)
def helion_pointers(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    tile_m: int = 128,
    tile_n: int = 256,
    tile_k: int = 64,
    stages: int = 3,
    warps: int = 8,
    group: int = 8,
) -> Launch:
    """Helion, which writes a Triton kernel of two loops over tiles; in a fixed configuration, with plain pointers."""
    import helion_matmul as kernels

    return kernels.bind(
        a_MK,
        b_KN,
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k=tile_k,
        stages=stages,
        warps=warps,
        group=group,
        descriptors=False,
    )


@variant(**_HELION, needs=("helion", "triton", "cuda", "sm_90"), space={**_SPACE, "flatten": (1, 0)}, admits=admits)
def helion_descriptors(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    tile_m: int = 128,
    tile_n: int = 256,
    tile_k: int = 64,
    stages: int = 3,
    warps: int = 8,
    group: int = 8,
    flatten: int = 1,
) -> Launch:
    """Helion, as helion_pointers, persistent and with tensor descriptors: TMA loads and stores the tiles."""
    import helion_matmul as kernels

    return kernels.bind(
        a_MK,
        b_KN,
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k=tile_k,
        stages=stages,
        warps=warps,
        group=group,
        descriptors=True,
        flatten=bool(flatten),
    )


HELION_VARIANTS = (helion_pointers, helion_descriptors)
