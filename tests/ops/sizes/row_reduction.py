"""Sizes of `row_sum` and `argmax`: rows that start anywhere in a 16-byte vector, in one part and in several, many and few, and
short ones of which a block takes many."""

_ODD = (
    {"m": 1, "n": 1},
    {"m": 3, "n": 7},
    {"m": 67, "n": 33},
    {"m": 5, "n": 128},
    {"m": 3, "n": 1031},
    {"m": 2, "n": 9001},
    {"m": 1, "n": 20011},
    {"m": 131, "n": 3},
    {"m": 67, "n": 20},
)
_LARGE = (
    {"m": 4099, "n": 4096},
    {"m": 65537, "n": 129},
    {"m": 1, "n": 16777259},
    {"m": 131, "n": 65537},
    {"m": 300, "n": 50257},
    {"m": 16411, "n": 131072},
    {"m": 1000003, "n": 3},
    {"m": 1000003, "n": 2},
    {"m": 300001, "n": 100},
    {"m": 300007, "n": 24},
    {"m": 500009, "n": 1},
    {"m": 8201, "n": 40},
    {"m": 1373, "n": 6626},
)
_COMPILED = (
    {"m": 8448, "n": 64},
    {"m": 40, "n": 100},
    {"m": 5, "n": 2048},
    {"m": 3, "n": 20011},
    {"m": 600, "n": 129},
    {"m": 1, "n": 131072},
    {"m": 7, "n": 3},
    {"m": 500009, "n": 1},
)
ODD = {"row_sum": _ODD, "argmax": _ODD}
LARGE = {"row_sum": _LARGE, "argmax": _LARGE}
COMPILED = {
    "row_sum": (*_COMPILED, {"m": 40, "n": 100}, {"m": 4, "n": 16}, {"m": 2**20, "n": 2}),
    "argmax": (*_COMPILED, {"m": 2**20, "n": 2}),
}
