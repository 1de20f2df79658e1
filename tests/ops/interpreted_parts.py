"""Run in a process of its own with TRITON_INTERPRET=1: attention's Triton backward passes with several programs a tile of keys.

Prints one JSON line a case: {"case", "programs", "passed", "left_out_passed"}; the last is for sums that lack a part.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from unittest.mock import patch

from checking import compare, inputs_of

from kernelviz.ops import op_named
from kernelviz.ops.attention import triton_backward, triton_backward_parts, triton_descriptors_backward
from kernelviz.ops.attention.backward_parts import Division, divided

CASES = (
    ("causal_attention", {"b": 1, "s": 140, "hq": 4, "hk": 1, "d": 64}, 1),
    ("causal_attention", {"b": 1, "s": 140, "hq": 4, "hk": 1, "d": 64}, 5),
    ("attention", {"b": 1, "s": 70, "hq": 8, "hk": 2, "d": 64}, None),
)


def main() -> None:
    divisions: list[Division] = []

    def kept(*arguments: object) -> Division | None:
        division = divided(*arguments)  # type: ignore[arg-type]
        assert division is not None
        divisions.append(division)
        return division

    def left_out(*arguments: object) -> Division | None:
        division = kept(*arguments)
        assert division is not None
        return replace(division, firsts=(*division.firsts[:-1], division.firsts[-1] - 1))

    for name, sizes, longest in CASES:
        op = op_named(name)
        problem = op.problem(sizes, "fp16", direction="backward")
        inputs = inputs_of(op, problem, 3)
        for module in (triton_backward, triton_descriptors_backward):
            found = []
            for division in (kept, left_out):
                with patch.object(triton_backward_parts, "divided", division):
                    causal = name.startswith("causal")
                    launch = module.bind_two_passes(*inputs, causal=causal, longest=longest)
                launch.forward()
                found.append(compare(op, problem, inputs, launch.call()).passed)
            line = {
                "case": f"{module.__name__} {problem.key} {longest}",
                "programs": len(divisions[-1].parts),
                "passed": found[0],
                "left_out_passed": found[1],
            }
            sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
