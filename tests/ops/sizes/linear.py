"""Sizes of linear layers: odd ones, and some whose rows TMA can address (multiples of 16 bytes)."""

_SIZES = (
    {"m": 1, "n": 1, "k": 1},
    {"m": 7, "n": 5, "k": 131},
    {"m": 131, "n": 136, "k": 72},
    {"m": 1, "n": 264, "k": 8},
)
_LARGE = ({"m": 1000, "n": 1032, "k": 520}, {"m": 65, "n": 4096, "k": 4096}, {"m": 4097, "n": 520, "k": 2056})
_OPS = ("linear_relu", "linear_gelu", "linear_silu")
ODD = dict.fromkeys(_OPS, _SIZES)
LARGE = dict.fromkeys(_OPS, _LARGE)
COMPILED = dict.fromkeys(
    _OPS, ({"m": 2048, "n": 2048, "k": 4096}, {"m": 512, "n": 512, "k": 512}, {"m": 16, "n": 136, "k": 72})
)
