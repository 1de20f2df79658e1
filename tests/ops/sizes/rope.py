"""Sizes of `rope`: halves of whole 16-byte vectors and others; heads that are no power of two; more heads than a block takes; few
pairs, which threads rotate in narrow vectors, and more; heads of which a thread has both halves at once."""

ODD = {
    "rope": (
        {"t": 1, "hq": 1, "hk": 1, "p": 1},
        {"t": 7, "hq": 3, "hk": 1, "p": 5},
        {"t": 2, "hq": 28, "hk": 4, "p": 64},
        {"t": 3, "hq": 5, "hk": 2, "p": 40},
        {"t": 2, "hq": 33, "hk": 7, "p": 33},
        {"t": 1, "hq": 71, "hk": 6, "p": 64},
        {"t": 3, "hq": 3, "hk": 2, "p": 102},
        {"t": 150, "hq": 28, "hk": 4, "p": 64},
        {"t": 9, "hq": 3, "hk": 2, "p": 2},
    )
}
LARGE = {
    "rope": (
        {"t": 4097, "hq": 32, "hk": 8, "p": 64},
        {"t": 1021, "hq": 64, "hk": 8, "p": 64},
        {"t": 300, "hq": 7, "hk": 3, "p": 1024},
        {"t": 300, "hq": 1, "hk": 1, "p": 4104},
        {"t": 1021, "hq": 5, "hk": 2, "p": 102},
        {"t": 20011, "hq": 8, "hk": 1, "p": 24},
        {"t": 20011, "hq": 3, "hk": 2, "p": 4},
        {"t": 20011, "hq": 3, "hk": 2, "p": 11},
        {"t": 300001, "hq": 1, "hk": 1, "p": 1},
        {"t": 4099, "hq": 10, "hk": 2, "p": 22},
    )
}
COMPILED = {
    "rope": (
        {"t": 16, "hq": 32, "hk": 8, "p": 64},
        {"t": 5, "hq": 5, "hk": 2, "p": 33},
        {"t": 5, "hq": 64, "hk": 8, "p": 64},
        {"t": 1021, "hq": 64, "hk": 8, "p": 64},
        {"t": 10007, "hq": 5, "hk": 2, "p": 11},
    )
}
