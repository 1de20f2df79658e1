"""Sizes of `histogram`: below a 16-byte vector, tails, one block, several blocks and rounds of 15 vectors a thread."""

ODD = {"histogram": ({"n": 1}, {"n": 7}, {"n": 255}, {"n": 4099}, {"n": 16389}, {"n": 49999})}
LARGE = {"histogram": ({"n": 1048576}, {"n": 16777259}, {"n": 67108859})}
COMPILED = {"histogram": ({"n": 4096}, {"n": 65536}, {"n": 4194305})}
