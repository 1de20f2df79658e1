"""Sizes of `scaled_matmul` and `block_scaled_matmul`."""

_OPS = ("scaled_matmul", "block_scaled_matmul")
ODD = dict.fromkeys(
    _OPS,
    (
        {"m": 1, "n": 1, "k": 1},
        {"m": 7, "n": 13, "k": 5},
        {"m": 31, "n": 67, "k": 129},
        {"m": 64, "n": 64, "k": 64},
        {"m": 1, "n": 272, "k": 1040},
        {"m": 37, "n": 53, "k": 131},
        {"m": 130, "n": 264, "k": 272},  # rows that TMA can address, no whole tiles, no whole blocks of scales
        {"m": 144, "n": 400, "k": 512},  # sizes that torch's product with blocks of scales takes
    ),
)
LARGE = dict.fromkeys(
    _OPS,
    (
        {"m": 2048, "n": 2048, "k": 4096},
        {"m": 1025, "n": 1544, "k": 2064},
        {"m": 16, "n": 4096, "k": 4096},
        {"m": 512, "n": 4096, "k": 16384},
    ),
)
COMPILED = dict.fromkeys(_OPS, ({"m": 64, "n": 256, "k": 256}, {"m": 37, "n": 53, "k": 131}))
