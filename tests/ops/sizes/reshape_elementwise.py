"""Sizes of `reshape_elementwise`. Whole tiles and parts of them; rows of x or y that are not whole 16-byte vectors."""

ODD = {
    "reshape_elementwise": (
        {"m": 1, "n": 1},
        {"m": 1, "n": 131},
        {"m": 131, "n": 1},
        {"m": 67, "n": 33},
        {"m": 64, "n": 64},
        {"m": 72, "n": 200},
        {"m": 129, "n": 257},
        {"m": 3, "n": 16900},
        {"m": 16901, "n": 2},
        {"m": 10, "n": 3333},
        {"m": 2047, "n": 37},
    )
}
LARGE = {
    "reshape_elementwise": (
        {"m": 4096, "n": 8192},
        {"m": 8200, "n": 4104},
        {"m": 4097, "n": 8191},
        {"m": 524288, "n": 64},
        {"m": 2, "n": 28290330},
        {"m": 3, "n": 2829527},
        {"m": 22330, "n": 10},
        {"m": 8388613, "n": 7},
        {"m": 5000, "n": 3000},
    )
}
COMPILED = {
    "reshape_elementwise": (
        {"m": 256, "n": 512},
        {"m": 131, "n": 129},
        {"m": 2048, "n": 1024},
        {"m": 3, "n": 1048579},
        {"m": 22330, "n": 10},
    )
}
