"""Sizes of `transpose`: rows of every remainder of a 16-byte vector both ways, narrow matrices, a tile and its neighbours."""

ODD = {
    "transpose": (
        {"m": 1, "n": 1},
        {"m": 7, "n": 131},
        {"m": 129, "n": 5},
        {"m": 1, "n": 1031},
        {"m": 136, "n": 65},
        {"m": 33, "n": 262},
        {"m": 128, "n": 256},
        {"m": 259, "n": 127},
    )
}
LARGE = {
    "transpose": (
        {"m": 4096, "n": 8192},
        {"m": 4097, "n": 2049},
        {"m": 4098, "n": 2055},
        {"m": 4099, "n": 2054},
        {"m": 4100, "n": 2053},
        {"m": 4101, "n": 2052},
        {"m": 1048583, "n": 16},
        {"m": 24, "n": 1048577},
        {"m": 20011, "n": 30011},
    )
}
COMPILED = {
    "transpose": (
        {"m": 128, "n": 256},
        {"m": 131, "n": 257},
        {"m": 4097, "n": 2050},
        {"m": 4096, "n": 16},
        {"m": 16, "n": 4096},
    )
}
