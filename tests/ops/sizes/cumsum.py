"""Sizes of `cumsum`: below a word, tiles and their neighbours, and on a GPU more tiles than are looked at at once (128)."""

ODD = {
    "cumsum": (
        {"n": 1},
        {"n": 7},
        {"n": 15},
        {"n": 31},
        {"n": 1023},
        {"n": 4096},
        {"n": 8195},
        {"n": 16389},
        {"n": 32771},
    )
}
LARGE = {
    "cumsum": (
        {"n": 1048576},
        {"n": 1048583},
        {"n": 16777259},
    )
}
COMPILED = {"cumsum": ({"n": 16}, {"n": 32}, {"n": 4096}, {"n": 4194305})}
