"""Sizes of products with transposed factors. TMA needs rows of a multiple of 16 bytes: m and n, and k where it is contiguous."""

_ODD = (
    {"m": 1, "n": 1, "k": 1},
    {"m": 7, "n": 13, "k": 5},
    {"m": 31, "n": 67, "k": 129},
    {"m": 64, "n": 64, "k": 64},
    {"m": 8, "n": 264, "k": 72},  # one box of A, most of which is outside
    {"m": 37, "n": 53, "k": 131},
    {"m": 136, "n": 264, "k": 136},  # rows that TMA can address, no whole tiles
)
_LARGE = (
    {"m": 2048, "n": 2048, "k": 4096},
    {"m": 1025, "n": 1537, "k": 2049},
    {"m": 4096, "n": 4096, "k": 16},
    {"m": 1544, "n": 1544, "k": 520},
)
_COMPILED = (
    {"m": 8, "n": 128, "k": 256},
    {"m": 64, "n": 256, "k": 128},
    {"m": 2048, "n": 4096, "k": 64},
    {"m": 2048, "n": 2048, "k": 4096},
    {"m": 37, "n": 53, "k": 131},
)
_K_STRIDED = ({"m": 136, "n": 264, "k": 129},)
_OPS = ("transpose_matmul", "matmul_nt", "matmul_tt")
ODD = dict.fromkeys(_OPS, _ODD) | {"transpose_matmul": (*_ODD, *_K_STRIDED)}
LARGE = dict.fromkeys(_OPS, _LARGE)
COMPILED = dict.fromkeys(_OPS, _COMPILED)
