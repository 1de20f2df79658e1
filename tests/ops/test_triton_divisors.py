"""Divisors of row lengths that Triton kernels are compiled for: loads are as wide as rows allow, and asynchronous."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kernelviz.ops.kernels.triton_divisors import divisor_of

COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global[^;]*?, (0x\w+|\d+),")
CONVOLUTION = {
    "b_ptr": None, "R": 3, "S": 1, "DEPTHS": 3, "BM": 128, "BN": 128, "BK": 64, "EVEN_M": False, "EVEN_N": False, "EVEN_K": False,
    "BIAS_RELU": False, "K_DIVISOR": 2,
}  # fmt: skip
LOGITS = {"BM": 64, "BV": 128, "BH": 64, "GROUP": 8, "EVEN_M": False, "EVEN_V": False, "EVEN_H": False}
TYPES = {"label_ptr": "*i64", "top_ptr": "*fp32", "sum_ptr": "*fp32", "chosen_ptr": "*fp32"}


def compiled(kernel: Any, constants: dict[str, Any], *, warps: int) -> Any:
    """For sizes of which the compiler knows no divisor."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    def type_of(name: str) -> str:
        if name in constants:
            return "constexpr"
        return TYPES.get(name, "*bf16" if name.endswith("_ptr") else "i32")

    names = kernel.arg_names
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if name.endswith("_ptr")}
    values = {(names.index(name),): value for name, value in constants.items()}
    source = ASTSource(kernel, {name: type_of(name) for name in names}, values, aligned)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps, "num_stages": 3})


def bytes_of_copies(kernel: Any) -> set[int]:
    return {int(size, 0) for size in COPY.findall(kernel.asm["ptx"])}


def test_the_divisor_is_left_to_triton_where_it_finds_one() -> None:
    lengths = (1, 6, 12, 24, 32, 7745, 7752)
    assert [divisor_of(length) for length in lengths] == [1, 2, 4, 8, 1, 1, 8]
    assert all(length // divisor_of(length) * divisor_of(length) == length for length in range(1, 300))


@pytest.mark.xdist_group("compile-1")
@pytest.mark.parametrize("length", [53, 82, 164, 168])
def test_copies_are_as_wide_as_rows_allow(length: int) -> None:
    pytest.importorskip("triton")
    from kernelviz.ops.convolution.triton import implicit_kernel
    from kernelviz.ops.linear_cross_entropy.triton import tiles_kernel

    divisor = divisor_of(length)
    expected = {2 * divisor} if divisor > 1 else set()  # an asynchronous copy has 4 bytes or more
    assert bytes_of_copies(compiled(implicit_kernel, CONVOLUTION | {"C_DIVISOR": divisor}, warps=8)) == expected
    assert bytes_of_copies(compiled(tiles_kernel, LOGITS | {"DIVISOR": divisor}, warps=4)) == expected


@pytest.mark.xdist_group("compile-1")
def test_filters_of_an_even_number_are_stored_wider() -> None:
    pytest.importorskip("triton")
    from kernelviz.ops.convolution.triton import implicit_kernel

    widths = {
        divisor: set(re.findall(r"st\.global\.([\w.]+)", compiled(implicit_kernel, constants, warps=8).asm["ptx"]))
        for divisor in (1, 2, 8)
        for constants in [CONVOLUTION | {"C_DIVISOR": 4, "K_DIVISOR": divisor}]
    }
    assert widths == {1: {"b16"}, 2: {"b32"}, 8: {"v4.b32"}}
