"""Sizes of `uniform_fill`. Several blocks of each kernel, tails that are no whole 16-byte vector, vectors shorter than one."""

ODD = {
    "uniform_fill": (
        {"n": 1},
        {"n": 7},
        {"n": 1021},
        {"n": 4099},
        {"n": 32771},
    )
}
LARGE = {
    "uniform_fill": (
        {"n": 67108867},
        {"n": 8388608},
        {"n": 2147483661},
    )
}
COMPILED = {
    "uniform_fill": (
        {"n": 65536},
        {"n": 4096},
        {"n": 8388609},
    )
}
