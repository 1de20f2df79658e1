"""What changed in the source of a case: files, macros, parameters, and the lines of kernels."""

from __future__ import annotations

from kernelviz.core.code import digest_of
from kernelviz.metrics.source_changes import (
    MOST_LINES,
    CaseSource,
    SourceFile,
    ValueChange,
    kernel_of,
    source_changes,
)
from kernelviz.text.ladder_changes import describe_source_changes

TWO = """#include "a.cuh"
// Copies an element.
extern "C" __global__ void __launch_bounds__(256) copy_one(
    const float* x, float* y) {
    y[threadIdx.x] = x[threadIdx.x];
}

__global__ void copy_four(const float4* x, float4* y) {
    if (threadIdx.x < 32) {
        y[threadIdx.x] = x[threadIdx.x];
    }
}
"""
OTHER = TWO.replace("copy_one", "scale_one").replace("x[threadIdx.x];\n}", "2 * x[threadIdx.x];\n}")


def source(name: str, text: str | None = TWO, *, of_kernel: bool = False, digest: str = "") -> SourceFile:
    return SourceFile(name, digest or digest_of((text or "").encode()), text, of_kernel)


def case(*files: SourceFile, kernel: str = "copy_one", **more: object) -> CaseSource:
    return CaseSource(kernels=(kernel,), files=files, **more)  # type: ignore[arg-type]


def said(before: CaseSource, after: CaseSource) -> str:
    return str(describe_source_changes(source_changes(before, after)))


def test_the_same_source_with_other_macros_names_the_macros() -> None:
    a, b = (case(source("a.cu"), macros={"TILE": tile, "MODE": "1"}) for tile in ("64", "128"))
    changes = source_changes(a, b)
    assert changes.macros == (ValueChange("TILE", "64", "128"),)
    assert not changes.files
    assert said(a, b) == "the source is the same; only this macro differs: TILE 64 → 128."


def test_another_kernel_of_the_same_file_shows_the_lines_of_the_two_kernels_only() -> None:
    changes = source_changes(case(source("a.cu")), case(source("a.cu"), kernel="copy_four"))
    (change,) = changes.files
    assert change.kernels == ("copy_one", "copy_four")
    assert change.lines is not None
    assert '-extern "C" __global__ void __launch_bounds__(256) copy_one(' in change.lines
    assert not any("#include" in line for line in change.lines)
    assert (changes.added, changes.removed) == (change.added, change.removed)
    text = str(describe_source_changes(changes))
    assert (
        text
        == f"kernel copy_four in place of copy_one in a.cu, {change.added} lines added and {change.removed} removed."
    )


def test_a_kernel_of_another_file_is_compared_with_the_kernel_before_it() -> None:
    text = said(case(source("a.cu")), case(source("b.cu", OTHER), kernel="scale_one"))
    assert text == "kernel scale_one in place of copy_one (b.cu in place of a.cu), 2 lines added and 2 removed."


def test_macros_of_another_file_count_only_where_both_have_them() -> None:
    changes = source_changes(
        case(source("a.cu"), macros={"A": "1", "STAGES": "3"}),
        case(source("b.cu", OTHER), kernel="scale_one", macros={"B": "2", "STAGES": "2"}),
    )
    assert changes.macros == (ValueChange("STAGES", "3", "2"),)


def test_headers_are_named_when_they_come_and_go_and_compared_when_they_differ() -> None:
    changes = source_changes(
        case(source("a.cu"), source("old.cuh", "1"), source("both.cuh", "int a;")),
        case(source("a.cu"), source("new.cuh", "2"), source("both.cuh", "int b;")),
    )
    assert (changes.included, changes.dropped) == (("new.cuh",), ("old.cuh",))
    assert [(f.before, f.added, f.removed) for f in changes.files] == [("both.cuh", 1, 1)]
    assert "also includes new.cuh; no longer includes old.cuh" in str(describe_source_changes(changes))


def test_the_source_of_a_kernel_without_a_file_is_named_by_the_kernel() -> None:
    a, b = source("add_kernel", "a\nb\n", of_kernel=True), source("mul_kernel", "a\nc\n", of_kernel=True)
    assert said(case(a, kernel="add_kernel"), case(b, kernel="mul_kernel")) == (
        "kernel mul_kernel in place of add_kernel, 1 line added and 1 removed."
    )


def test_a_content_that_is_not_here_has_no_lines_and_says_so() -> None:
    a, b = source("a.cu", None, digest="1"), source("a.cu", None, digest="2")
    changes = source_changes(case(a), case(b))
    assert (changes.added, changes.removed, changes.files[0].lines) == (None, None, None)
    assert "its lines are not on this machine" in str(describe_source_changes(changes))


def test_parameters_that_both_sides_have_are_compared_and_0_is_unknown() -> None:
    a = case(source("k", of_kernel=True), parameters={"tile": 64, "warps": 4, "auto": 0})
    b = case(source("k", of_kernel=True), parameters={"tile": 128, "warps": 4, "auto": 3, "more": 1})
    assert source_changes(a, b).parameters == (ValueChange("tile", "64", "128"),)


def test_the_same_source_whose_compiled_code_differs_is_not_called_the_same() -> None:
    one, two = (case(source("k", of_kernel=True), compiled=frozenset({digest})) for digest in "ab")
    assert "the compiled code is not" in said(one, two)
    assert said(one, one) == "nothing: both run the same compiled code."
    assert said(case(source("a.cu")), case(source("a.cu"))) == "nothing: source, macros and parameters are the same."


def test_an_unknown_source_says_why() -> None:
    for reason, text in (("library", "part of a library"), ("not_captured", "no code was captured")):
        assert text in said(case(source("a.cu")), CaseSource(unknown=reason))  # type: ignore[arg-type]


def test_a_file_that_is_too_long_is_not_compared_line_by_line() -> None:
    long = "x\n" * (MOST_LINES + 1)
    changes = source_changes(case(source("a.cu", long)), case(source("a.cu", f"{long}y\n")))
    assert changes.files[0].lines is None


def test_a_kernel_is_read_to_its_last_brace_and_only_by_its_whole_name() -> None:
    text = kernel_of(TWO, "copy_one")
    assert text is not None
    assert text.startswith("// Copies an element.")
    assert text.endswith("}")
    assert kernel_of(TWO, "copy") is None
    assert kernel_of(TWO, ".*") is None
    assert kernel_of("__global__ void open(int x) {", "open") is None
