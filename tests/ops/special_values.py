"""What normal data never holds: every bit pattern for `copy`, masked, infinite and very large logits for `softmax`.

Run as a script with TRITON_INTERPRET=1 it tries the Triton variants, interpreted, and prints one JSON line a case:
{"case", "wrong"}. bf16 is left out there, as in `interpreted.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from checking import bind, compare, reasons_of
from interpreter_process import write_case
from torch import Tensor

from kernelviz.measure.session.inputs import as_tuple, torch_dtype
from kernelviz.ops import Variant, op_named

INF, NAN = float("inf"), float("nan")
LENGTHS = (7, 1031, 9001, 20000, 33001)
"""Row lengths that reach every softmax kernel; the last is cut into chunks, whose first may be masked as a whole."""


def patterns(dtype: str, device: str = "cpu") -> Tensor:
    """Every 16-bit pattern, or 2^17 random 32-bit ones with the special ones first; an odd count of them."""
    if torch_dtype(dtype).itemsize == 2:
        bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)[:-1]
    else:
        special = torch.tensor([0, -(2**31), 1, 0x7F800000, 0x7F800001, 0x7FC00000, -1, -(2**23)], dtype=torch.int32)
        bits = torch.randint(-(2**31), 2**31, (2**17 - 1,), generator=torch.Generator().manual_seed(0))
        bits = torch.cat([special, bits[8:].to(torch.int32)])
    return bits.to(device).view(torch_dtype(dtype))


def changed_bits(variant: Variant, dtype: str, device: str = "cpu") -> int:
    """How many elements a copy of all patterns changes; also of a view that does not start on 16 bytes."""
    op, whole = op_named("copy"), patterns(dtype, device)
    integers = torch.int16 if whole.element_size() == 2 else torch.int32
    found = 0
    for x_N in (whole, whole[1:]):
        (y_N,) = as_tuple(bind(variant, op.problem({"n": x_N.numel()}, dtype), (x_N,))())
        assert y_N.data_ptr() != x_N.data_ptr()
        found += int((y_N.view(integers) != x_N.view(integers)).sum())
    return found


def logits(n: int, dtype: str, device: str = "cpu") -> Tensor:
    """Rows of length n, each with something special in it."""
    kind = torch_dtype(dtype)
    large = 6e4 if dtype == "fp16" else 1e30
    lowest = torch.finfo(kind).min
    x_MN = torch.randn((11, n), generator=torch.Generator().manual_seed(n)).to(kind)
    x_MN[1, ::2] = -INF
    x_MN[2, : n - 1] = -INF
    x_MN[3] = -INF
    x_MN[4, n // 2] = INF
    x_MN[5, n // 2] = NAN
    x_MN[6] = lowest
    x_MN[7, 1:] = lowest
    x_MN[8] += 100.0
    x_MN[9] = torch.linspace(-large, large, n).to(kind)
    x_MN[10] = torch.linspace(-60.0, 60.0, n).to(kind)
    return x_MN.to(device)


def wrong_softmax(variant: Variant, n: int, dtype: str, device: str = "cpu", times: int = 1) -> str:
    """What is wrong with the special rows, or nothing. Masked entries must be exactly 0, hopeless rows NaN throughout.

    `times`: how often the rows stand one below the other, for kernels that take many rows only.
    """
    op, x_MN = op_named("softmax"), logits(n, dtype, device).repeat(times, 1)
    problem = op.problem({"m": x_MN.shape[0], "n": n}, dtype)
    (y_MN,) = as_tuple(bind(variant, problem, (x_MN,))())
    # A NaN may have the very bits that stand for "never written".
    accuracy = compare(op, problem, (x_MN,), y_MN.masked_fill(y_MN.isnan(), NAN))
    if not accuracy.passed:
        return reasons_of(accuracy)
    masked = torch.isneginf(x_MN)
    masked.view(times, -1, n)[:, 3] = False
    if y_MN[masked].count_nonzero():
        return "a masked entry is not 0"
    return "" if y_MN.view(times, -1, n)[:, 3:6].isnan().all() else "a row of -inf, with inf or with NaN is not NaN"


def cases(dtypes: tuple[str, ...]) -> Iterator[tuple[str, int | None]]:
    """dtype with a length for softmax, without one for copy."""
    for dtype in dtypes:
        yield dtype, None
        yield from ((dtype, n) for n in LENGTHS)


def wrong(op: str, variant: Variant, dtype: str, n: int | None) -> str:
    """What is wrong with one case, or nothing."""
    if op == "copy":
        found = changed_bits(variant, dtype)
        return f"{found} elements have other bits" if found else ""
    assert n is not None
    return wrong_softmax(variant, n, dtype)


def main() -> None:
    for name in ("copy", "softmax"):
        for variant in op_named(name).variants:
            for dtype, n in cases(("fp32", "fp16")):
                if variant.backend == "triton" and (n is None) == (name == "copy"):
                    write_case(f"{name} {variant.name} {dtype} {n or ''}", wrong(name, variant, dtype, n))


if __name__ == "__main__":
    main()
