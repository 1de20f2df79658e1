"""Sizes of `column_sum`: columns of every remainder of a 16-byte vector, narrow and wide, one part of the rows and several."""

ODD = {
    "column_sum": (
        {"m": 1, "n": 1},
        {"m": 7, "n": 131},
        {"m": 67, "n": 33},
        {"m": 1031, "n": 3},
        {"m": 9001, "n": 2},
        {"m": 300, "n": 136},
        {"m": 129, "n": 1031},
        {"m": 8, "n": 1028},
        {"m": 17, "n": 262},
        {"m": 20011, "n": 1},
    )
}
LARGE = {
    "column_sum": (
        {"m": 4099, "n": 4096},
        {"m": 65537, "n": 129},
        {"m": 16777259, "n": 1},
        {"m": 2, "n": 16777259},
        {"m": 7, "n": 2598897},
        {"m": 1765, "n": 9361},
        {"m": 262147, "n": 511},
        {"m": 131072, "n": 16411},
    )
}
COMPILED = {
    "column_sum": (
        {"m": 4096, "n": 4096},
        {"m": 4096, "n": 4097},
        {"m": 65536, "n": 16},
        {"m": 2, "n": 1555024},
    )
}
