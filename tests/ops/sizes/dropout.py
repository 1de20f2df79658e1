"""Sizes of `dropout`. Blocks of both widths of a thread, tails that are no whole 16-byte vector, vectors shorter than one."""

ODD = {
    "dropout": (
        {"n": 1},
        {"n": 7},
        {"n": 1021},
        {"n": 4099},
        {"n": 32771},
    )
}
LARGE = {
    "dropout": (
        {"n": 67108867},
        {"n": 8388608},
    )
}
COMPILED = {
    "dropout": (
        {"n": 4096},
        {"n": 8388609},
    )
}
