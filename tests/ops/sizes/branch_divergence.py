"""Sizes of `branch_divergence`: groups of a lane, parts of a warp, warps, more than half a block, more than all elements."""

ODD = {
    "branch_divergence": (
        {"n": 1, "g": 1},
        {"n": 7, "g": 3},
        {"n": 1031, "g": 1},
        {"n": 259, "g": 129},
        {"n": 600, "g": 1000},
        {"n": 1025, "g": 24},
        {"n": 4099, "g": 32},
    )
}
LARGE = {"branch_divergence": ({"n": 16777259, "g": 1}, {"n": 67108867, "g": 33})}
COMPILED = {"branch_divergence": ({"n": 4096, "g": 16},)}
