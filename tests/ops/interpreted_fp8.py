"""Run in a process of its own with TRITON_INTERPRET=1: the Triton kernels of 8-bit floats, called by hand with a product in fp32.

Triton's interpreter does not round to bf16, so `interpreted.py` leaves these ops out. Prints a JSON line for each call:
{"case", "right"}.
Products of small integers and of powers of two are exact in every order of additions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import torch
import triton

from kernelviz.ops.matmul import triton_fp8 as kernels
from kernelviz.ops.matmul.reference_fp8 import BLOCK, block_reference, reference

SIZES = ((1, 1, 1), (37, 53, 131), (130, 264, 272), (144, 400, 512))
TILES = ((128, 128), (64, 64))


def calls(sizes: tuple[int, int, int], blocks: bool) -> Iterator[tuple[str, bool]]:
    """A name for each call, and whether its product is right."""
    m, n, k = sizes
    a, b = (torch.randint(-3, 4, shape).float().to(torch.float8_e4m3fn) for shape in ((m, k), (n, k)))
    blocks_of_k = -(-k // BLOCK)
    shapes = ((blocks_of_k, m), (-(-n // BLOCK), blocks_of_k)) if blocks else ((1,), (1,))
    scales = [2.0 ** torch.randint(-2, 3, shape) for shape in shapes]
    (expected,) = (block_reference if blocks else reference)(*(t.double() for t in (a, b, *scales)))
    for rows, columns in TILES:
        tile = {"BM": rows, "BN": columns, "BK": BLOCK, "GROUP": 8, "BLOCKS": blocks}
        c = torch.full((m, n), float("nan"))
        grid = (-(-m // rows) * -(-n // columns),)
        even = k % BLOCK == 0
        kernels.scaled_grouped_kernel[grid](a, b, *scales, c, m, n, k, **tile, EVEN_K=even, TERMS=None)
        yield f"grouped {sizes} {rows} {blocks}", torch.equal(c.double(), expected)
        if k % 16 == 0 and n % 4 == 0:
            c = torch.full((m, n), float("nan"))
            persistent = {"PROGRAMS": 2, "FLATTEN": True, "TERMS": BLOCK}
            kernels.scaled_descriptors_kernel[(2,)](a, b, *scales, c, m, n, k, **tile, **persistent)
            yield f"descriptors {sizes} {rows} {blocks}", torch.equal(c.double(), expected)


if __name__ == "__main__":
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8))
    for one in SIZES:
        for with_blocks in (False, True):
            for case, right in calls(one, with_blocks):
                sys.stdout.write(json.dumps({"case": case, "right": right}) + "\n")
