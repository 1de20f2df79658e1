"""The Triton kernel of `matmul` with 576 configurations: to test and measure how long compiling a large tuning takes."""

from __future__ import annotations

from kernelviz.ops import Launch, variant

SPACE = {
    "bm": (128, 32, 64, 256),
    "bn": (128, 32, 64, 256),
    "bk": (32, 64, 128),
    "warps": (4, 8, 16),
    "stages": (3, 2, 4, 5),
}


@variant(op="matmul", backend="triton", needs=("triton", "cuda"), space=SPACE)
def triton_space(a_MK, b_KN, *, bm: int = 128, bn: int = 128, bk: int = 32, warps: int = 4, stages: int = 3) -> Launch:
    """Triton, one tile of the product per program, with every number left open."""
    import torch

    from kernelviz.ops.matmul.triton import GROUP, Tile, grouped_kernel

    tile = Tile(bm=bm, bn=bn, bk=bk, warps=warps, stages=stages)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    even = {"EVEN_M": m % bm == 0, "EVEN_N": n % bn == 0, "EVEN_K": k % bk == 0}

    def launch() -> torch.Tensor:
        grouped_kernel[(tile.grid(m, n),)](
            a_MK, b_KN, c_MN, m, n, k, BM=bm, BN=bn, BK=bk, GROUP=GROUP, PRECISION="ieee",
            num_warps=warps, num_stages=stages, **even,
        )  # fmt: skip
        return c_MN

    return launch
