"""Sizes of `sum` and `mean`: below a warp, a block and its neighbours, several blocks, tails of no whole 16-byte vector."""

_ODD = ({"n": 1}, {"n": 7}, {"n": 33}, {"n": 1023}, {"n": 4099}, {"n": 16389}, {"n": 30011})
_LARGE = ({"n": 1048576}, {"n": 16777213})
_COMPILED = ({"n": 4096}, {"n": 4194305}, {"n": 16})
ODD = {"sum": _ODD, "mean": _ODD}
# A sum of 2^31 numbers of deviation 1 is likely to pass the largest number of fp16; their mean is not.
LARGE = {"sum": (*_LARGE, {"n": 67108867}), "mean": (*_LARGE, {"n": 2147483661})}
COMPILED = {"sum": _COMPILED, "mean": _COMPILED}
