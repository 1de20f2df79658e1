"""Sizes of `topk`: all of a row, rows that are cut back several times, in one part and in several, k sorted in either way."""

ODD = {
    "topk": (
        {"m": 1, "n": 1, "k": 1},
        {"m": 3, "n": 7, "k": 7},
        {"m": 5, "n": 131, "k": 3},
        {"m": 1, "n": 1031, "k": 37},
        {"m": 67, "n": 5, "k": 2},
    )
}
LARGE = {
    "topk": (
        {"m": 2, "n": 1031, "k": 300},
        {"m": 1, "n": 5003, "k": 64},
        {"m": 3, "n": 9001, "k": 9},
        {"m": 512, "n": 32000, "k": 64},
        {"m": 1, "n": 128256, "k": 256},
        {"m": 7, "n": 152065, "k": 1024},
        {"m": 16, "n": 50257, "k": 50},
        {"m": 4096, "n": 256, "k": 8},
        {"m": 300001, "n": 13, "k": 13},
        {"m": 70001, "n": 1, "k": 1},
        {"m": 5003, "n": 40, "k": 3},
    )
}
# The short row first: in a second precision and for the other architectures only the first is compiled, and a network of 4096
# elements takes Triton 3 s each time.
COMPILED = {"topk": ({"m": 3, "n": 131, "k": 9}, {"m": 3, "n": 9001, "k": 9}, {"m": 2, "n": 1031, "k": 300})}
