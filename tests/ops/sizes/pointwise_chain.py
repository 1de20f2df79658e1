"""Sizes of the chains. Rows that are whole 16-byte vectors and rows that are not, narrower and wider than a block."""

ODD = {
    "pointwise_chain": (
        {"m": 1, "n": 1, "k": 1},
        {"m": 3, "n": 7, "k": 2},
        {"m": 37, "n": 40, "k": 3},
        {"m": 5, "n": 1031, "k": 1},
        {"m": 9, "n": 2056, "k": 8},
        {"m": 1031, "n": 3, "k": 2},
    ),
    "pointwise_chain_scalar": (
        {"n": 1, "k": 1},
        {"n": 7, "k": 2},
        {"n": 1024, "k": 1},
        {"n": 4099, "k": 3},
        {"n": 16389, "k": 8},
    ),
}
LARGE = {
    "pointwise_chain": (
        {"m": 16383, "n": 4096, "k": 4},
        {"m": 8191, "n": 1031, "k": 2},
        {"m": 65537, "n": 768, "k": 1},
        {"m": 1021, "n": 32776, "k": 2},
        {"m": 21, "n": 662578, "k": 1},
        {"m": 2, "n": 181569, "k": 1},
        {"m": 3000001, "n": 3, "k": 2},
    ),
    "pointwise_chain_scalar": (
        {"n": 67108867, "k": 4},
        {"n": 1048576, "k": 1},
    ),
}
COMPILED = {
    "pointwise_chain": (
        {"m": 64, "n": 4096, "k": 4},
        {"m": 2056, "n": 4096, "k": 1},
        {"m": 3, "n": 1031, "k": 2},
        {"m": 8191, "n": 1031, "k": 2},
    ),
    "pointwise_chain_scalar": (
        {"n": 4096, "k": 4},
        {"n": 8388609, "k": 1},
    ),
}
