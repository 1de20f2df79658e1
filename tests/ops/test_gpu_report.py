"""No kernel may change without having passed on a GPU again: docs/gpu-report.json against the sources."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from carry_report import carried
from cases import variants, ways
from gpu_report import REMEDY, Entry, Key, all_paths, read, write

from kernelviz.ops import Op, Variant

ON_GPU = [(op, v) for op, v in variants() if "cpu" not in v.needs]


NOT_PASSED_YET: dict[str, tuple[str, ...]] = {
    "conv_bias_relu": ("cuda_stepwise",),
    "linear_cross_entropy": (
        "composite_eager",
        "torch_eager",
        "torch_compile",
    ),
    "matmul": ("cutlass_builder",),
    "linear_relu": (
        "torch_eager",
        "torch_compile",
        "triton_fused",
        "cutlass_fused",
    ),
    "linear_gelu": (
        "torch_eager",
        "torch_compile",
        "triton_fused",
        "cutlass_fused",
    ),
    "linear_silu": (
        "torch_eager",
        "torch_compile",
        "triton_fused",
        "cutlass_fused",
    ),
    "scaled_matmul": (
        "triton_grouped",
        "triton_two_level",
    ),
    "block_scaled_matmul": ("triton_grouped",),
    "grouped_matmul": (
        "torch_eager",
        "torch_padded",
        "torch_grouped_mm",
    ),
    "transpose": ("torch_compile",),
}
"""New variants, by op, whose kernels were compiled, emulated or interpreted only. The gate checks each result of theirs like
every other one. Each leaves this list with the next report of the part `kernels`."""


@pytest.fixture(scope="module")
def reports() -> list[Mapping[Key, Entry]]:
    return [read(file) for file in all_paths()]


@pytest.mark.parametrize(("op", "variant"), ON_GPU, ids=lambda x: x.name)
def test_passed_on_a_gpu_as_it_is_now(op: Op, variant: Variant, reports: list[Mapping[Key, Entry]]) -> None:
    """On one of the cards of docs/gpu-report*.json."""
    waits = variant.name in NOT_PASSED_YET.get(op.name, ())
    digests: dict[str, str] = {}  # by direction: the code is the same for every dtype
    unchanged: list[bool] = []
    for way in ways(op, variant):
        key = (op.name, variant.name, way.dtype, way.compute or "", way.direction)
        entries = [report[key] for report in reports if key in report]
        what = f"{op.name} {variant.name} {way}"
        assert entries or waits, f"{what} was never checked on a GPU: {REMEDY}"
        now = digests.get(way.direction) or way.variant(op, variant).source_digest()
        digests[way.direction] = now
        same = [entry for entry in entries if entry.source_digest == now]
        before = ", ".join(f"{entry.device} ({entry.source_digest})" for entry in entries)
        unchanged.append(bool(same))
        assert same or waits, f"{what} has changed (now {now}) since it passed on {before}: {REMEDY}"
        failed = {entry.device: entry.failures for entry in same if not entry.passed}
        assert not failed, f"{what} failed: {failed}"
    assert not (waits and all(unchanged)), f"{op.name} {variant.name} has run on a GPU: remove it from NOT_PASSED_YET"


ENTRY = Entry(
    op="add",
    variant="v",
    dtype="fp32",
    compute=None,
    passed=True,
    worst_of_bound=0.5,
    cases=3,
    source_digest="a",
    device="d",
)


def test_what_has_not_passed_yet_is_in_the_catalogue() -> None:
    there = {(op.name, variant.name) for op, variant in ON_GPU}
    assert {(op, name) for op, names in NOT_PASSED_YET.items() for name in names} <= there


def test_a_report_is_read_as_written_and_keeps_what_was_not_run_again(tmp_path: Path) -> None:
    file = tmp_path / "docs" / "report.json"
    other = replace(ENTRY, dtype="bf16", passed=False, worst_of_bound=None, failures=["add bf16 n=1 (graph): …"])
    write(file, [ENTRY, other], {"device": "x"})
    again = replace(ENTRY, source_digest="b")
    write(file, [again], {"device": "x"})
    assert read(file) == {again.key: again, other.key: other}
    assert read(tmp_path / "none.json") == {}


def test_only_entries_of_the_same_code_are_carried_over() -> None:
    """`before` and `now`: what that version of the code says of a variant, and its digest by today's rules."""
    key = ("add", "v", "forward")
    kept = carried([ENTRY], {key: ("a", "1")}, {key: ("1", "1")})
    assert kept == [replace(ENTRY, source_digest="1")]
    assert carried(kept, {key: ("a", "1")}, {key: ("1", "1")}) == kept  # once more changes nothing
    assert carried([ENTRY], {key: ("a", "1")}, {key: ("2", "2")}) == []  # the code has changed since
    assert carried([ENTRY], {key: ("b", "1")}, {key: ("1", "1")}) == []  # the report was made from other code
    assert carried([ENTRY], {}, {key: ("1", "1")}) == []
