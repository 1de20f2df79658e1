"""Sizes of attention: lengths that are no multiple of a tile, heads that share keys, and every dimension of kernels."""

_ODD = (
    {"b": 1, "s": 1, "hq": 1, "hk": 1, "d": 64},
    {"b": 2, "s": 7, "hq": 4, "hk": 2, "d": 64},
    {"b": 1, "s": 131, "hq": 3, "hk": 1, "d": 128},
    {"b": 1, "s": 65, "hq": 2, "hk": 2, "d": 256},
    {"b": 1, "s": 33, "hq": 1, "hk": 1, "d": 40},
)
_LARGE = (
    {"b": 2, "s": 1000, "hq": 8, "hk": 2, "d": 128},
    {"b": 1, "s": 2311, "hq": 4, "hk": 4, "d": 64},
    {"b": 3, "s": 515, "hq": 6, "hk": 3, "d": 256},
    {"b": 1, "s": 4096, "hq": 16, "hk": 16, "d": 128},
)
_COMPILED = (
    {"b": 2, "s": 256, "hq": 4, "hk": 2, "d": 64},
    {"b": 2, "s": 256, "hq": 4, "hk": 2, "d": 128},
    {"b": 2, "s": 256, "hq": 4, "hk": 2, "d": 256},
)
_VARLEN_ODD = (
    {"b": 1, "s": 1, "u": 1, "hq": 1, "hk": 1, "d": 64},
    {"b": 3, "s": 37, "u": 2, "hq": 4, "hk": 2, "d": 64},
    {"b": 5, "s": 67, "u": 1, "hq": 2, "hk": 1, "d": 128},
    {"b": 2, "s": 33, "u": 2, "hq": 1, "hk": 1, "d": 256},
)
_VARLEN_LARGE = (
    {"b": 7, "s": 500, "u": 3, "hq": 8, "hk": 2, "d": 128},
    {"b": 64, "s": 100, "u": 2, "hq": 4, "hk": 4, "d": 64},
    {"b": 3, "s": 900, "u": 2, "hq": 4, "hk": 1, "d": 256},
)
ODD = {"attention": _ODD, "causal_attention": _ODD, "varlen_attention": _VARLEN_ODD}
LARGE = {"attention": _LARGE, "causal_attention": _LARGE, "varlen_attention": _VARLEN_LARGE}
COMPILED = {
    "attention": _COMPILED,
    "causal_attention": _COMPILED,
    "varlen_attention": tuple(sizes | {"u": 1} for sizes in _COMPILED),
}
