"""Sizes of `embedding`, `index_select` and `gather`: rows of every word width, shorter and longer than a tile; ids repeat."""

_ODD = (
    {"v": 1, "t": 1, "d": 1},
    {"v": 5, "t": 17, "d": 3},
    {"v": 131, "t": 7, "d": 130},
    {"v": 67, "t": 300, "d": 64},
    {"v": 3, "t": 5, "d": 8200},
    {"v": 40, "t": 67, "d": 516},
    {"v": 67, "t": 300, "d": 393},
)
_LARGE = (
    {"v": 128256, "t": 8191, "d": 4096},
    {"v": 50257, "t": 16384, "d": 768},
    {"v": 1000003, "t": 1000003, "d": 66},
    {"v": 600, "t": 600000, "d": 4096},
    {"v": 28, "t": 67, "d": 4438853},
    {"v": 4680, "t": 2585616, "d": 24},
    {"v": 22471, "t": 5796, "d": 636},
    {"v": 91, "t": 7683, "d": 2977},
)
ODD = {"embedding": _ODD, "index_select": _ODD[-2:], "gather": _ODD[-2:]}
LARGE = {"embedding": _LARGE, "index_select": _LARGE[2:3], "gather": _LARGE[2:3]}
# The three have the same kernels.
COMPILED = {
    "embedding": (
        {"v": 64, "t": 512, "d": 4096},
        {"v": 64, "t": 64, "d": 1030},
        {"v": 64, "t": 64, "d": 131},
        {"v": 64, "t": 64, "d": 24},
        {"v": 4680, "t": 2585616, "d": 24},
    ),
    "index_select": ({"v": 64, "t": 64, "d": 1028},),
    "gather": ({"v": 64, "t": 1, "d": 4096},),
}
