"""Run in a process of its own with TRITON_INTERPRET=1: the Triton backward pass of a linear layer, with parts of each size.

Prints a JSON line a case (`interpreter_process.write_case`).
"""

from __future__ import annotations

from unittest.mock import patch

from checking import compare, inputs_of
from interpreter_process import write_case

from kernelviz.ops import op_named
from kernelviz.ops.catalog.variant import Staged
from kernelviz.ops.matmul import triton_linear_backward
from kernelviz.ops.matmul.linear_parts import PART_ROWS


def main() -> None:
    for name, sizes in (("linear_gelu", {"m": 130, "n": 40, "k": 24}), ("linear_relu", {"m": 64, "n": 136, "k": 16})):
        op = op_named(name)
        problem = op.problem(sizes, "fp16", direction="backward")
        of_problem = op.of(problem)
        for rows in PART_ROWS:
            inputs = inputs_of(of_problem, problem, 3)
            with patch.object(triton_linear_backward, "part_rows", lambda m, n, columns, count, rows=rows: rows):
                launch = of_problem.variant_named("triton_fused").bind(*inputs)
            assert isinstance(launch, Staged)
            launch.forward()
            accuracy = compare(of_problem, problem, inputs, launch.call())
            write_case(
                f"{problem.key} rows {rows}", "" if accuracy.passed else f"{accuracy.worst_of_bound} of the bound"
            )


if __name__ == "__main__":
    main()
