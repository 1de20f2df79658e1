"""Sizes of `linear_cross_entropy`: odd ones, some whose rows TMA can address, and vocabularies that end within a tile."""

ODD = {
    "linear_cross_entropy": (
        {"m": 1, "h": 1, "v": 1},
        {"m": 5, "h": 7, "v": 3},
        {"m": 33, "h": 65, "v": 131},
        {"m": 130, "h": 72, "v": 257},
        {"m": 3, "h": 136, "v": 1031},
        {"m": 67, "h": 33, "v": 600},
        {"m": 37, "h": 40, "v": 521},
    )
}
LARGE = {
    "linear_cross_entropy": (
        {"m": 1024, "h": 768, "v": 50257},
        {"m": 300, "h": 3584, "v": 32001},
        {"m": 1025, "h": 520, "v": 128256},
        {"m": 1, "h": 4096, "v": 128256},
        {"m": 513, "h": 1031, "v": 8193},
        {"m": 1300, "h": 1772, "v": 4099},  # rows of a multiple of 8 bytes, which TMA cannot address
    )
}
COMPILED = {
    "linear_cross_entropy": (
        {"m": 512, "h": 256, "v": 16384},
        {"m": 8, "h": 128, "v": 1000},
        {"m": 64, "h": 128, "v": 2048},
        {"m": 37, "h": 53, "v": 131},
    )
}
