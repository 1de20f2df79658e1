"""Sizes of `copy` and `strided_copy`, of `copy` also at addresses that are not aligned. Two blocks of the unrolled and persistent kernels, a tail of less than 16 bytes."""

ODD = {
    "copy": (
        {"n": 1},
        {"n": 7},
        {"n": 255},
        {"n": 1021},
        {"n": 1023},
        {"n": 1024},
        {"n": 1025},
        {"n": 4099},
        {"n": 32767},
        {"n": 3, "o": 4},
        {"n": 1025, "o": 16},
        {"n": 16389},
        {"n": 16385, "o": 12},
    ),
    "strided_copy": (
        {"n": 1, "s": 1},
        {"n": 7, "s": 3},
        {"n": 1023, "s": 2},
        {"n": 1025, "s": 8},
        {"n": 4099, "s": 1},
        {"n": 2051, "s": 5},
        {"n": 517, "s": 64},
    ),
}
LARGE = {
    "copy": (
        {"n": 67108867},
        {"n": 8388613},
        {"n": 1048576},
        {"n": 2147483661},
        {"n": 67108867, "o": 4},
        {"n": 8388613, "o": 16},
    ),
    "strided_copy": (
        {"n": 16777259, "s": 7},
        {"n": 1048576, "s": 64},
        {"n": 67108867, "s": 33},
    ),
}
COMPILED = {
    "copy": (
        {"n": 4096},
        {"n": 4194305},
        {"n": 4099, "o": 8},
        {"n": 4096, "o": 32},
    ),
    "strided_copy": (
        {"n": 4096, "s": 16},
        {"n": 4099, "s": 1},
        {"n": 1031, "s": 7},
    ),
}
