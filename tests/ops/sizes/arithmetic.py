"""Sizes of `add`, `mul` and `div`. The last odd one has several blocks of each kernel and a tail that is no whole word."""

_ODD = (
    {"n": 1},
    {"n": 7},
    {"n": 255},
    {"n": 1021},
    {"n": 1023},
    {"n": 1024},
    {"n": 1025},
    {"n": 4099},
    {"n": 8200},
    {"n": 40002},
    {"n": 65537},
    {"n": 65544},
)
_COMPILED = (
    {"n": 4096},
    {"n": 65536},
    {"n": 65537},
    {"n": 65540},
    {"n": 1048576},
    {"n": 1981900},
    {"n": 4194305},
)
_NAMES = ("add", "mul", "div")
ODD = dict.fromkeys(_NAMES, _ODD)
LARGE = dict.fromkeys(_NAMES, ({"n": 67108867}, {"n": 8388613}, {"n": 1048576}, {"n": 1140088}, {"n": 1810140}))
COMPILED = dict.fromkeys(_NAMES, _COMPILED)
