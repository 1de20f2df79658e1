"""Run in a process of its own with TRITON_INTERPRET=1: `triton_flash` of `varlen_attention` at lengths that no axes give.

Prints a JSON line for each list of lengths: {"case", "passed", "worst_of_bound", "rows_of_others"}, where the latter counts
positions after the last sequence that were written.
"""

from __future__ import annotations

import json
import sys
from itertools import accumulate

import torch
from checking import compare, inputs_of

from kernelviz.ops import op_named
from kernelviz.ops.attention.triton import Tile
from kernelviz.ops.attention.triton_varlen import SCANNED, bind_varlen_flash

OP = op_named("varlen_attention")
SMALL = Tile(queries=16, keys=16, warps=4, stages=2)
CASES: dict[str, tuple[tuple[int, ...], int, Tile | None]] = {
    "none, one, a tile, and their neighbours": ((0, 1, 0, 130, 128, 1, 64, 63, 0, 43), 4, None),
    "first and last of no position": ((0, 0, 54, 0, 0, 0), 4, SMALL),
    "one sequence": ((49,), 4, SMALL),
    "whole tiles": ((16, 32, 16, 48), 4, SMALL),
    "more sequences than are scanned at once": (
        (1,) * 60 + (0,) * 60 + (7, 1, 0, 40, 0, 0, 9, 2, 0, 0, 0, 13),
        1,
        SMALL,
    ),
}
"""By case: the lengths, the query heads, and the tile."""


def main() -> None:
    assert any(len(lengths) > SCANNED for lengths, _, _ in CASES.values())
    for case, (lengths, heads, tile) in CASES.items():
        positions = sum(lengths)
        assert positions % len(lengths) == 0, "the op has tensors of b times s positions"
        sizes = {"b": len(lengths), "s": positions // len(lengths), "u": 1, "hq": heads, "hk": -(-heads // 2), "d": 64}
        problem = OP.problem(sizes, "fp16")
        q, k, v, ends = inputs_of(OP, problem)
        ends.copy_(torch.tensor(list(accumulate(lengths))))
        launch = bind_varlen_flash(q, k, v, ends, tile=tile)
        accuracy = compare(OP, problem, (q, k, v, ends), launch())
        used = positions - 3
        ends.clamp_(max=used)
        o = launch()
        assert isinstance(o, torch.Tensor)
        o.fill_(7)
        launch()
        line = {
            "case": case,
            "passed": accuracy.passed,
            "worst_of_bound": accuracy.worst_of_bound,
            "rows_of_others": int((o[used:] != 7).any(2).any(1).sum()),
        }
        sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
