"""Sizes of the gated activations. Blocks of both widths of a thread, and tails that are no whole 16-byte vector."""

_ODD = (
    {"m": 1, "n": 1},
    {"m": 3, "n": 7},
    {"m": 5, "n": 128},
    {"m": 2, "n": 129},
    {"m": 67, "n": 33},
    {"m": 3, "n": 4099},
    {"m": 6, "n": 6667},
    {"m": 3, "n": 21847},
    {"m": 8, "n": 8193},
)
_LARGE = ({"m": 4095, "n": 14336}, {"m": 8191, "n": 1031}, {"m": 67, "n": 65535})
_COMPILED = ({"m": 16, "n": 4096}, {"m": 3, "n": 21847}, {"m": 4, "n": 16385}, {"m": 2049, "n": 4096})
NAMES = ("swiglu", "geglu")
ODD = dict.fromkeys(NAMES, _ODD)
LARGE = dict.fromkeys(NAMES, _LARGE)
COMPILED = dict.fromkeys(NAMES, _COMPILED)
