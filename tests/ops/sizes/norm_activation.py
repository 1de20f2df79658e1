"""Sizes of `norm_activation` and `batchnorm_relu`. Short rows share a block; long ones take a cluster or chunks."""

_ODD = (
    {"m": 1, "n": 1},
    {"m": 3, "n": 7},
    {"m": 5, "n": 128},
    {"m": 67, "n": 33},
    {"m": 3, "n": 1031},
    {"m": 1, "n": 32771},
)
ODD = {
    "norm_activation": (*_ODD, {"m": 131, "n": 3}, {"m": 67, "n": 20}),
    "batchnorm_relu": (*_ODD[:-1], {"m": 131, "n": 264}),
}
LARGE = {
    "norm_activation": (
        {"m": 4096, "n": 8192},
        {"m": 65537, "n": 128},
        {"m": 131, "n": 65537},
        {"m": 515, "n": 131072},
        {"m": 131, "n": 14336},
        {"m": 1000003, "n": 3},
        {"m": 300001, "n": 100},
    ),
    "batchnorm_relu": (
        {"m": 200704, "n": 256},
        {"m": 4099, "n": 2056},
        {"m": 2051, "n": 2049},
        {"m": 1000003, "n": 3},
        {"m": 1, "n": 2**24},
        {"m": 1, "n": 2**26},
    ),
}
COMPILED = {
    "norm_activation": (
        {"m": 64, "n": 128},
        {"m": 16, "n": 8192},
        {"m": 3, "n": 16384},
        {"m": 3, "n": 32771},
        {"m": 2, "n": 65536},
        {"m": 2, "n": 131072},
    ),
    "batchnorm_relu": (
        {"m": 8, "n": 8},
        {"m": 64, "n": 64},
        {"m": 64, "n": 2048},
        {"m": 64, "n": 2049},
    ),
}
