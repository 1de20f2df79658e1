"""Sizes of `quantize_fp8`, `quantize_int8` and `rmsnorm_quantize_fp8`. Short rows share a block or a thread."""

_ODD: tuple[dict[str, int], ...] = (
    {"m": 1, "n": 1},
    {"m": 3, "n": 7},
    {"m": 5, "n": 128},
    {"m": 67, "n": 33},
    {"m": 3, "n": 1031},
    {"m": 1, "n": 32771},
    {"m": 1, "n": 1},
    {"m": 613, "n": 2},
    {"m": 1031, "n": 2},
    {"m": 131, "n": 3},
    {"m": 33, "n": 16},
    {"m": 67, "n": 20},
    {"m": 213, "n": 127},
    {"m": 1, "n": 26},
    {"m": 131, "n": 256},
    {"m": 22257, "n": 1},
    {"m": 39, "n": 4},
)
_LARGE: tuple[dict[str, int], ...] = (
    {"m": 4096, "n": 8192},
    {"m": 65537, "n": 128},
    {"m": 131, "n": 65537},
    {"m": 3, "n": 1048579},
    {"m": 515, "n": 131072},
    {"m": 131, "n": 14336},
    {"m": 2, "n": 1048576},
    {"m": 3, "n": 300001},
    {"m": 7, "n": 2000003},
    {"m": 1000003, "n": 3},
    {"m": 300001, "n": 100},
    # Too many for lanes each in `cuda_slab`.
    {"m": 131101, "n": 2},
    {"m": 16427, "n": 20},
    {"m": 4357, "n": 127},
    {"m": 16411, "n": 64},
    # Through its ring of slabs.
    {"m": 27667, "n": 674},
    {"m": 16341, "n": 1083},
    {"m": 9001, "n": 260},
    {"m": 10007, "n": 2047},
)
_COMPILED: tuple[dict[str, int], ...] = (
    {"m": 512, "n": 1},
    {"m": 64, "n": 6},
    {"m": 64, "n": 33},
    {"m": 64, "n": 128},
    {"m": 2**18, "n": 6},
    {"m": 2**13, "n": 33},
    {"m": 2**15, "n": 64},
    {"m": 2**15, "n": 674},
    {"m": 2**15, "n": 1023},
    {"m": 2**15, "n": 260},
    {"m": 2**15, "n": 2047},
    {"m": 16, "n": 8192},
    {"m": 3, "n": 16384},
    {"m": 3, "n": 32771},
    {"m": 2, "n": 65536},
    {"m": 2, "n": 131072},
)
_OPS = ("quantize_fp8", "quantize_int8", "rmsnorm_quantize_fp8")
_BLOCKS = ({"m": 57, "n": 531}, {"m": 3, "n": 4088})
"""Rows of known length with a block each."""
ODD = dict.fromkeys(_OPS, (*_ODD, *_BLOCKS))
LARGE = dict.fromkeys(_OPS, _LARGE)
COMPILED = dict.fromkeys(_OPS, (*_COMPILED, {"m": 64, "n": 531}))
