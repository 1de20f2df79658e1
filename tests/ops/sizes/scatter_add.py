"""Sizes of `scatter_add`. More rows than sums and fewer, sums of many rows, rows of every word width, one piece and several."""

ODD = {
    "scatter_add": (
        {"v": 1, "t": 1, "d": 1},
        {"v": 3, "t": 131, "d": 7},
        {"v": 131, "t": 7, "d": 130},
        {"v": 5, "t": 257, "d": 64},
        {"v": 17, "t": 67, "d": 516},
        {"v": 2, "t": 5, "d": 4104},
        {"v": 16, "t": 512, "d": 64},
        {"v": 33, "t": 600, "d": 3},
    )
}
LARGE = {
    "scatter_add": (
        {"v": 8192, "t": 65536, "d": 1024},
        {"v": 64, "t": 65536, "d": 1032},
        {"v": 50257, "t": 4096, "d": 768},
        {"v": 100003, "t": 300007, "d": 66},
        {"v": 512, "t": 2**22, "d": 2},
        {"v": 5, "t": 2**20 + 1, "d": 7},
    )
}
COMPILED = {
    "scatter_add": (
        {"v": 64, "t": 128, "d": 1024},
        {"v": 4, "t": 128, "d": 1024},
        {"v": 64, "t": 128, "d": 131},
        {"v": 4, "t": 128, "d": 132},
    )
}
