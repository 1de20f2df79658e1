"""Sizes of `attention_decode` and its paged form: one token, lengths beside multiples of a page and a tile, groups of 1 to 16."""

_ODD = (
    {"b": 1, "l": 1, "hq": 1, "hk": 1, "d": 64},
    {"b": 2, "l": 17, "hq": 8, "hk": 1, "d": 64},
    {"b": 3, "l": 127, "hq": 14, "hk": 2, "d": 128},
    {"b": 1, "l": 1031, "hq": 16, "hk": 2, "d": 128},
    {"b": 5, "l": 33, "hq": 12, "hk": 3, "d": 256},
    {"b": 2, "l": 160, "hq": 16, "hk": 1, "d": 64},
)
_LARGE = (
    {"b": 1, "l": 8192, "hq": 64, "hk": 8, "d": 128},
    {"b": 3, "l": 8191, "hq": 32, "hk": 8, "d": 128},
    {"b": 16, "l": 4099, "hq": 28, "hk": 4, "d": 128},
    {"b": 2, "l": 65537, "hq": 64, "hk": 8, "d": 128},
    {"b": 300, "l": 129, "hq": 8, "hk": 8, "d": 64},
    {"b": 4, "l": 2053, "hq": 16, "hk": 1, "d": 256},
    {"b": 429, "l": 13, "hq": 16, "hk": 2, "d": 64},
    {"b": 300, "l": 45, "hq": 32, "hk": 4, "d": 128},
    {"b": 300, "l": 176, "hq": 16, "hk": 4, "d": 64},
    {"b": 300, "l": 140, "hq": 16, "hk": 8, "d": 128},
    {"b": 1100, "l": 176, "hq": 8, "hk": 1, "d": 64},
)
_COMPILED = (
    {"b": 2, "l": 1024, "hq": 64, "hk": 8, "d": 128},
    {"b": 2, "l": 77, "hq": 14, "hk": 2, "d": 64},
    {"b": 1, "l": 100, "hq": 16, "hk": 1, "d": 256},
    {"b": 3, "l": 13, "hq": 16, "hk": 2, "d": 64},
)
_OPS = ("attention_decode", "paged_attention_decode")
ODD = dict.fromkeys(_OPS, _ODD)
LARGE = dict.fromkeys(_OPS, _LARGE)
COMPILED = dict.fromkeys(_OPS, _COMPILED)
