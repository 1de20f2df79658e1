"""Sizes of the casts. The last odd one has several blocks of each kernel and a tail that is no whole word."""

_NAMES = ("cast_fp16", "cast_bf16", "cast_fp8")
_ODD = (
    *({"n": 1}, {"n": 7}, {"n": 255}, {"n": 1024}, {"n": 2047}, {"n": 2049}, {"n": 16399}),
    *({"n": 8200}, {"n": 40002}, {"n": 65537}, {"n": 65544}),
)
ODD = dict.fromkeys(_NAMES, _ODD)
LARGE = dict.fromkeys(_NAMES, ({"n": 67108867}, {"n": 8388613}, {"n": 1048576}, {"n": 1140088}, {"n": 1810140}))
COMPILED = dict.fromkeys(_NAMES, ({"n": 4096}, {"n": 65537}, {"n": 65540}, {"n": 1048581}, {"n": 1981900}))
