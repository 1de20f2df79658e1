"""Sizes of `cross_entropy` and `cross_entropy_with_grad`. Rows in a warp, in registers, in chunks; more long
rows than clusters that stay."""

_ODD = (
    {"m": 1, "v": 1},
    {"m": 3, "v": 7},
    {"m": 5, "v": 128},
    {"m": 67, "v": 33},
    {"m": 3, "v": 1031},
    {"m": 2, "v": 16400},
    {"m": 9, "v": 4099},
    {"m": 2, "v": 33001},
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
)
_COMPILED = (
    {"m": 64, "v": 128},
    {"m": 16, "v": 4096},
    {"m": 3, "v": 32000},
    {"m": 2, "v": 128256},
    {"m": 3, "v": 131071},
)
ODD = {"cross_entropy": _ODD, "cross_entropy_with_grad": _ODD}
LARGE = {"cross_entropy": _LARGE, "cross_entropy_with_grad": _LARGE}
COMPILED = {"cross_entropy": _COMPILED, "cross_entropy_with_grad": _COMPILED}
