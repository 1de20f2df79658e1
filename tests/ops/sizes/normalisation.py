"""Sizes of `rmsnorm`, `layernorm` and `add_rmsnorm`. Rows that share a block or a program, that fill a block's registers, that
take a cluster or chunks, each with starts on 16 bytes and without.
"""

_ODD = (
    {"m": 1, "n": 1},
    {"m": 3, "n": 7},
    {"m": 67, "n": 33},
    {"m": 5, "n": 128},
    {"m": 3, "n": 1031},
    {"m": 1, "n": 9001},
    {"m": 131, "n": 3},
    {"m": 67, "n": 20},
    {"m": 67, "n": 261},  # a row a block in the backward pass
    {"m": 131, "n": 528},
    {"m": 2053, "n": 7},
    {"m": 1401, "n": 65},
    {"m": 2, "n": 3603},  # eight loads a thread of known length
    {"m": 3, "n": 4088},
    {"m": 3, "n": 4679},
    {"m": 520, "n": 1},
)
_LARGE = (
    {"m": 2**22, "n": 1},
    {"m": 1, "n": 32771},
    {"m": 4096, "n": 8192},
    {"m": 8191, "n": 4096},
    {"m": 1021, "n": 32768},
    {"m": 65537, "n": 128},
    {"m": 16387, "n": 920},
    {"m": 67, "n": 262144},
    {"m": 131, "n": 65537},
    {"m": 515, "n": 131072},
    {"m": 300, "n": 49160},
    {"m": 1021, "n": 12296},
    {"m": 3, "n": 1048579},
    {"m": 1000003, "n": 3},
    {"m": 300001, "n": 100},
    {"m": 2, "n": 1048576},
    {"m": 3, "n": 300001},
    {"m": 7, "n": 2000003},
)
# The first in every precision.
_COMPILED = (
    {"m": 16, "n": 8192},
    {"m": 2, "n": 32768},
    {"m": 3, "n": 32771},
    {"m": 3, "n": 131072},
    {"m": 2, "n": 300001},  # no cluster holds them
    {"m": 5003, "n": 20},
    {"m": 67, "n": 261},
    {"m": 3, "n": 4679},
    {"m": 20008, "n": 1},
)
_OPS = ("rmsnorm", "layernorm", "add_rmsnorm")
ODD = dict.fromkeys(_OPS, _ODD)
LARGE = dict.fromkeys(_OPS, _LARGE)
COMPILED = dict.fromkeys(_OPS, _COMPILED) | {
    "rmsnorm": (*_COMPILED, {"m": 64, "n": 128}, {"m": 2, "n": 65536}),
    "add_rmsnorm": (*_COMPILED, {"m": 2, "n": 261}),
}
