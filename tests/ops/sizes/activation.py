"""Sizes of the activations. Blocks of both widths of a thread, and tails that are no whole 16-byte vector."""

_ODD = (
    *({"n": 1}, {"n": 7}, {"n": 60}, {"n": 1021}, {"n": 1024}, {"n": 4099}, {"n": 32771}),
    *({"n": 8200}, {"n": 40002}, {"n": 65537}, {"n": 65544}),
)
_LARGE = ({"n": 67108867}, {"n": 8388608}, {"n": 1140088}, {"n": 1810140})
_COMPILED = ({"n": 4096}, {"n": 65537}, {"n": 65540}, {"n": 1981900}, {"n": 8388609})
NAMES = ("relu", "sigmoid", "silu", "gelu")
ODD = dict.fromkeys(NAMES, _ODD)
LARGE = dict.fromkeys(NAMES, _LARGE)
COMPILED = dict.fromkeys(NAMES, _COMPILED)
