"""A row that holds a NaN, in the ops that quantise rows: its scale is NaN, and no other row's is.

Run as a script with TRITON_INTERPRET=1 it tries the Triton variants of quantize_int8, interpreted, and prints one JSON line a
case: {"case", "wrong"}. The interpreter has no fp8.
"""

from __future__ import annotations

import torch
from checking import bind
from interpreter_process import write_case

from kernelviz.measure.session.inputs import as_tuple, torch_dtype
from kernelviz.ops import Op, Variant, op_named

OPS = ("quantize_fp8", "quantize_int8", "rmsnorm_quantize_fp8")
SIZES = ((11, 16), (11, 64), (300, 64), (11, 1031), (11, 4096), (11, 9001), (5, 40_001))
"""Rows and elements of a row; the last is longer than what a program or a block has in registers."""
ROW = 4


def wrong_scales(op: Op, variant: Variant, size: tuple[int, int], dtype: str, device: str = "cpu") -> str:
    """What is wrong, or nothing; also where the variant refuses the size."""
    m, n = size
    problem = op.problem({"m": m, "n": n}, dtype)
    if variant.refuses(problem) is not None:
        return ""
    x_MN = torch.randn((m, n), generator=torch.Generator().manual_seed(n)).to(torch_dtype(dtype))
    x_MN[ROW, n - 1] = torch.nan
    weights = (torch.ones(n, dtype=x_MN.dtype),) if op.name.startswith("rmsnorm") else ()
    inputs = tuple(tensor.to(device) for tensor in (x_MN, *weights))
    q_MN, scale_M = as_tuple(bind(variant, problem, inputs)())
    if (rows := scale_M.isnan().nonzero().flatten().tolist()) != [ROW]:
        return f"the scales of rows {rows} are NaN, in place of row {ROW}"
    if q_MN.dtype.is_floating_point and not q_MN[ROW].float().isnan().all():
        return "the row with a NaN is not NaN"
    return ""


def main() -> None:
    op = op_named("quantize_int8")
    for variant in op.variants:
        for dtype in ("fp32", "fp16"):
            for size in SIZES:
                if variant.backend == "triton":
                    write_case(f"{variant.name} {dtype} {size}", wrong_scales(op, variant, size, dtype))


if __name__ == "__main__":
    main()
