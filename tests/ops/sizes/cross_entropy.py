"""Sizes of `cross_entropy` and `cross_entropy_with_grad`. Rows in a thread, in a warp, in registers, in chunks, in parts;
more long rows than clusters that stay; more short rows than the threads, blocks or slabs that run at once."""

_ODD = (
    {"m": 1, "v": 1},
    {"m": 3, "v": 7},
    {"m": 5, "v": 128},
    {"m": 67, "v": 33},
    {"m": 3, "v": 1031},
    {"m": 2, "v": 16400},
    {"m": 9, "v": 4099},
    {"m": 2, "v": 33001},
    {"m": 131, "v": 3},
    {"m": 67, "v": 20},
    {"m": 5, "v": 16},
)
_LARGE = (
    {"m": 512, "v": 32000},
    {"m": 300, "v": 50257},
    {"m": 67, "v": 128256},
    {"m": 5, "v": 262143},
    {"m": 2049, "v": 16384},
    {"m": 1, "v": 152064},
    {"m": 140, "v": 152064},
    {"m": 143, "v": 131071},
    {"m": 2000003, "v": 1},
    {"m": 1000003, "v": 3},
    {"m": 300001, "v": 16},
    {"m": 300001, "v": 91},
    {"m": 100003, "v": 333},
    {"m": 65537, "v": 128},
    {"m": 1624, "v": 1128},
    {"m": 2, "v": 8388608},
    {"m": 10, "v": 1181881},
    {"m": 6027, "v": 9},
    {"m": 1373, "v": 6626},
)
_COMPILED = (
    {"m": 64, "v": 128},
    {"m": 16, "v": 4096},
    {"m": 3, "v": 32000},
    {"m": 2, "v": 128256},
    {"m": 3, "v": 131071},
    {"m": 67, "v": 3},
)
ODD = {"cross_entropy": _ODD, "cross_entropy_with_grad": _ODD}
LARGE = {"cross_entropy": _LARGE, "cross_entropy_with_grad": _LARGE}
COMPILED = {"cross_entropy": _COMPILED, "cross_entropy_with_grad": _COMPILED}
