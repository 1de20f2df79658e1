"""Sizes of `softmax`. Rows in registers, in shared memory, in chunks; the last start at each place in a 16-byte vector. More
long rows than clusters that stay, of one block, two, four and eight."""

ODD = {
    "softmax": (
        {"m": 1, "n": 1},
        {"m": 3, "n": 7},
        {"m": 1, "n": 127},
        {"m": 5, "n": 128},
        {"m": 67, "n": 33},
        {"m": 3, "n": 1031},
        {"m": 2, "n": 9001},
        {"m": 2, "n": 16400},
        {"m": 2, "n": 40000},
        {"m": 9, "n": 32771},
        {"m": 131, "n": 3},
        {"m": 67, "n": 20},
    )
}
LARGE = {
    "softmax": (
        {"m": 4096, "n": 8192},
        {"m": 8191, "n": 4096},
        {"m": 1021, "n": 32768},
        {"m": 65537, "n": 128},
        {"m": 2049, "n": 16384},
        {"m": 67, "n": 262144},
        {"m": 131, "n": 65537},
        {"m": 300, "n": 50257},
        {"m": 500, "n": 131071},
        {"m": 5, "n": 600001},
        {"m": 40, "n": 300001},
        {"m": 1000003, "n": 3},
        {"m": 300001, "n": 100},
    )
}
COMPILED = {
    "softmax": (
        {"m": 64, "n": 128},
        {"m": 16, "n": 8192},
        {"m": 3, "n": 32768},
        {"m": 2, "n": 128256},
        {"m": 1, "n": 262144},
        {"m": 3, "n": 131071},
    )
}
