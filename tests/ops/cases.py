"""Sizes that kernels get wrong: 1, primes, a block and its neighbours, rows that do not fit a register file.

Imports no torch, so that tests can be collected without it.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernelviz.core.problem import Problem
from kernelviz.ops import Op, Variant, catalogue

VECTORS = tuple({"n": n} for n in (1, 7, 255, 1021, 1023, 1024, 1025, 4099))

ODD: dict[str, tuple[dict[str, int], ...]] = {
    "add": VECTORS,
    # Two blocks of the unrolled and of the persistent kernels, and a tail that is no whole 16-byte word.
    "copy": (*VECTORS, {"n": 16389}, {"n": 32767}),
    "scale": (*VECTORS, {"n": 16389}, {"n": 32767}),
    "rmsnorm": tuple(
        {"m": m, "n": n} for m, n in ((1, 1), (3, 7), (1, 127), (5, 128), (2, 129), (67, 33), (3, 1031), (2, 32771))
    ),
    # Rows in registers, in shared memory, in chunks; the last start at each place in a 16-byte word.
    "softmax": tuple(
        {"m": m, "n": n}
        for m, n in (
            (1, 1),
            (3, 7),
            (1, 127),
            (5, 128),
            (67, 33),
            (3, 1031),
            (2, 9001),
            (2, 16400),
            (2, 40000),
            (9, 32771),
        )
    ),
    "matmul": tuple(
        {"m": m, "n": n, "k": k}
        for m, n, k in ((1, 1, 1), (7, 13, 5), (31, 67, 129), (33, 65, 63), (64, 64, 64), (129, 127, 31), (37, 53, 131))
    ),
}
"""By op. An op without an entry is tested at sizes 1, 7 and 131 along every axis."""

LARGE: dict[str, tuple[dict[str, int], ...]] = {
    "add": ({"n": 2**26 + 3}, {"n": 2**20}),
    "copy": ({"n": 2**26 + 3}, {"n": 2**20}, {"n": 2**31 + 13}),
    "scale": ({"n": 2**26 + 3}, {"n": 2**20}),
    "softmax": (
        {"m": 4096, "n": 8192},
        {"m": 8191, "n": 4096},
        {"m": 1021, "n": 32768},
        {"m": 65537, "n": 128},
        {"m": 2049, "n": 16384},
        {"m": 67, "n": 262144},
        {"m": 131, "n": 65537},
        {"m": 300, "n": 50257},
    ),
    "rmsnorm": (
        {"m": 4096, "n": 8192},
        {"m": 8191, "n": 4096},
        {"m": 1021, "n": 32768},
        {"m": 65537, "n": 128},
        {"m": 67, "n": 262144},
        {"m": 131, "n": 65537},
    ),
    "matmul": ({"m": 2048, "n": 2048, "k": 4096}, {"m": 1025, "n": 1537, "k": 2049}, {"m": 16, "n": 4096, "k": 4096}),
}
"""Further sizes, for a GPU only."""


def odd_sizes(op: Op) -> tuple[dict[str, int], ...]:
    return ODD.get(op.name) or tuple(dict.fromkeys(op.axis_names, size) for size in (1, 7, 131))


def variants(*backends: str) -> list[tuple[Op, Variant]]:
    """Every variant of the catalogue, or those of the given backends."""
    return [(op, v) for op in catalogue().values() for v in op.variants if not backends or v.backend in backends]


def precisions(op: Op, variant: Variant) -> Iterator[tuple[str, str | None]]:
    """Every dtype and compute precision that the variant solves."""
    sizes = odd_sizes(op)[0]
    for dtype in op.dtypes:
        for compute in op.computes.get(dtype, (None,)):
            problem = op.problem(sizes, dtype, compute=compute)
            if variant.refuses(problem) is None:
                yield dtype, problem.compute


def problems(op: Op, variant: Variant, dtypes: tuple[str, ...] | None = None) -> Iterator[Problem]:
    """Every odd problem that the variant solves."""
    for dtype, compute in precisions(op, variant):
        if dtypes is None or dtype in dtypes:
            for sizes in odd_sizes(op):
                yield op.problem(sizes, dtype, compute=compute)


# One size for each kernel and configuration that a variant chooses between, both with sizes that are multiples of
# everything (other code: vector loads, no masks) and without.
COMPILED: dict[str, tuple[dict[str, int], ...]] = {
    "add": ({"n": 4096}, {"n": 2**20}, {"n": 2**22 + 1}),
    "copy": ({"n": 4096}, {"n": 2**22 + 1}),
    "scale": ({"n": 4096}, {"n": 2**22 + 1}),
    "softmax": (
        {"m": 64, "n": 128},
        {"m": 16, "n": 1024},
        {"m": 16, "n": 8192},
        {"m": 5, "n": 7168},
        {"m": 3, "n": 16384},
        {"m": 3, "n": 32768},
        {"m": 3, "n": 32771},
        {"m": 3, "n": 50257},
        {"m": 2, "n": 128256},
    ),
    "rmsnorm": (
        {"m": 64, "n": 128},
        {"m": 16, "n": 8192},
        {"m": 5, "n": 7168},
        {"m": 3, "n": 32771},
        {"m": 2, "n": 65536},
    ),
    "matmul": (
        {"m": 16, "n": 128, "k": 256},
        {"m": 64, "n": 256, "k": 128},
        {"m": 512, "n": 2304, "k": 128},
        {"m": 1408, "n": 2048, "k": 64},
        {"m": 2048, "n": 4096, "k": 64},
        {"m": 37, "n": 53, "k": 131},
    ),
}


def compile_problems(op: Op, variant: Variant) -> Iterator[Problem]:
    """Problems that between them compile every kernel and configuration of the variant, in every precision."""
    for dtype, compute in precisions(op, variant):
        for sizes in COMPILED.get(op.name) or odd_sizes(op)[-1:]:
            yield op.problem(sizes, dtype, compute=compute)
