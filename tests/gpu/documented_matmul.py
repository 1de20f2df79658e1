"""What the tables of docs/kernels.md show of matrix products: the ops, sizes and variants of each run."""

from __future__ import annotations

from documented_plan import ENERGY, LIBRARY, SUSTAINED, Documented

BEST = (
    LIBRARY,
    "cuda_wgmma_tma_store",
    "cuda_wgmma_hilbert",
    "cuda_wgmma_by_size",
    "triton_descriptors",
    "gluon_warp_specialised",
    "cutlass_builder",
)
BF16_LADDER = (
    *(LIBRARY, "cuda_wgmma", "cuda_wgmma_two_warpgroups", "cuda_wgmma_specialised", "cuda_wgmma_wide"),
    *("cuda_wgmma_persistent", "cuda_wgmma_cluster", "cuda_wgmma_tma_store", "cuda_wgmma_hilbert"),
    "cuda_wgmma_by_size",
)
FP32_LADDER = (
    *(LIBRARY, "cuda_rows_across_threads", "cuda_naive", "cuda_tiled", "cuda_register_column", "cuda_register_tile"),
    *("cuda_register_vec16", "cuda_warp_tile", "cuda_double_buffer", "cuda_async_copy", "cuda_larger_thread_tile"),
)
FEW_ROWS = (
    *(LIBRARY, "cuda_gemv", "cuda_skinny", "cuda_wgmma_skinny"),
    *("cuda_wgmma_hilbert", "cuda_wgmma_by_size", "gluon_warp_specialised"),
    *("triton_descriptors", "triton_tile_by_size"),
)
GROUPED = (
    *(LIBRARY, "torch_grouped_mm", "triton_descriptors"),
    *("cuda_wgmma_tma_store", "cuda_wgmma_halves", "cuda_wgmma_cluster"),
)


def cube(side: int) -> dict[str, str]:
    return dict.fromkeys("mnk", str(side))


def rows(n: int, k: int) -> dict[str, str]:
    return {"m": "1,16,64,512,4096", "n": str(n), "k": str(k)}


MATRIX_PRODUCTS = {
    "matmul-bf16-ladder": Documented("matmul", cube(4096), BF16_LADDER),
    "matmul-fp32-ladder": Documented("matmul", cube(4096), FP32_LADDER, "fp32", "ieee"),
    "matmul-bf16-4096": Documented("matmul", cube(4096), BEST),
    "matmul-bf16-8192": Documented("matmul", cube(8192), BEST),
    "matmul-bf16-16384x4096x4096": Documented("matmul", {"m": "16384", "n": "4096", "k": "4096"}, BEST),
    "matmul-tf32-8192": Documented(
        "matmul", cube(8192), (LIBRARY, "cuda_wgmma_tf32", "triton_persistent"), "fp32", "tf32"
    ),
    "scaled-matmul-fast-8192": Documented("scaled_matmul", cube(8192), None, "fp8", "fast_accumulation"),
    "scaled-matmul-fp32-8192": Documented("scaled_matmul", cube(8192), None, "fp8", "fp32_accumulation"),
    "block-scaled-matmul-8192": Documented("block_scaled_matmul", cube(8192), None, "fp8"),
    "matmul-rows-14336x4096": Documented("matmul", rows(14336, 4096), FEW_ROWS),
    "matmul-rows-6144x4096": Documented("matmul", rows(6144, 4096), FEW_ROWS),
    "matmul-rows-4096x14336": Documented("matmul", rows(4096, 14336), FEW_ROWS),
    "matmul-rows-28672x4096": Documented("matmul", rows(28672, 4096), FEW_ROWS),
    "read-of-as-many-bytes": Documented("sum", {"n": "25165824,58720256,117440512"}, (LIBRARY, "cuda_persistent")),
    "linear-gelu-4096": Documented("linear_gelu", cube(4096)),
    "grouped-matmul": Documented(
        "grouped_matmul", {"g": "8", "m": "256,1024", "n": "4096", "k": "4096", "s": "1,2"}, GROUPED
    ),
    "matmul-as-many-rows": Documented("matmul", {"m": "2048,8192", "n": "4096", "k": "4096"}, (LIBRARY,)),
    "transpose-matmul-4096": Documented("transpose_matmul", cube(4096)),
    "matmul-nt-4096": Documented("matmul_nt", cube(4096)),
    "matmul-tt-4096": Documented("matmul_tt", cube(4096)),
    "matmul-backward-4096": Documented("matmul", cube(4096), direction="backward"),
    "w4a16-28672x4096": Documented("w4a16_matmul", {"m": "1,4,8,16,64,512,4096", "n": "28672", "k": "4096"}),
    "w4a16-8192x8192": Documented("w4a16_matmul", {"m": "1,8,16,64", "n": "8192", "k": "8192"}),
    "matmul-one-row-28672x4096": Documented(
        "matmul", {"m": "1", "n": "28672", "k": "4096"}, (LIBRARY, "cuda_gemv", "cuda_wgmma_skinny")
    ),
    "matmul-one-row-8192x8192": Documented(
        "matmul", {"m": "1", "n": "8192", "k": "8192"}, (LIBRARY, "cuda_gemv", "cuda_wgmma_skinny")
    ),
    "burst-8192": Documented("matmul", cube(8192), (LIBRARY, "cuda_wgmma_tma_store"), method=ENERGY),
    "sustained-8192": Documented("matmul", cube(8192), (LIBRARY, "cuda_wgmma_tma_store"), method=SUSTAINED),
}
