"""Sizes of `grouped_matmul`: one group, no row in the first, a middle or the last one, groups of less and more than a tile."""

ODD = {
    "grouped_matmul": (
        {"g": 1, "m": 1, "n": 1, "k": 1, "s": 1},
        {"g": 2, "m": 3, "n": 13, "k": 5, "s": 2},
        {"g": 3, "m": 31, "n": 67, "k": 129, "s": 2},
        {"g": 4, "m": 64, "n": 64, "k": 64, "s": 1},
        {"g": 7, "m": 1, "n": 72, "k": 40, "s": 4},
        {"g": 37, "m": 5, "n": 24, "k": 16, "s": 2},
        {"g": 4, "m": 131, "n": 264, "k": 136, "s": 2},  # rows that TMA can address, no whole tiles
        {"g": 2, "m": 256, "n": 512, "k": 128, "s": 1},  # nothing but whole tiles
    )
}
LARGE = {
    "grouped_matmul": (
        {"g": 8, "m": 1024, "n": 4096, "k": 4096, "s": 1},
        {"g": 8, "m": 256, "n": 4096, "k": 4096, "s": 2},
        {"g": 128, "m": 64, "n": 1536, "k": 2048, "s": 2},
        {"g": 300, "m": 7, "n": 520, "k": 264, "s": 3},
        {"g": 5, "m": 1025, "n": 1536, "k": 2056, "s": 4},
    )
}
COMPILED = {
    "grouped_matmul": (
        {"g": 4, "m": 128, "n": 256, "k": 128, "s": 2},
        {"g": 4, "m": 32, "n": 256, "k": 128, "s": 2},
        {"g": 4, "m": 8, "n": 264, "k": 136, "s": 2},
    )
}
