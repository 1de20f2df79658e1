"""`grouped_matmul`: the sizes of the groups, faults that the bound refuses, and the Triton kernels in many configurations."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from cases import odd_sizes
from checking import bind, checked, compare, inputs_of
from interpreter_process import interpreted_lines, written_lines

from kernelviz.core.errors import BadField
from kernelviz.ops import op_named
from kernelviz.ops.kernels.groups import group_ends
from kernelviz.ops.matmul.groups_reference import row_ranges
from kernelviz.ops.matmul.tiles import BARRIER_BYTES, shared_bytes_of_descriptors, shared_bytes_of_pointers

CONFIGURATIONS = Path(__file__).with_name("grouped_configurations.py")
OP = op_named("grouped_matmul")
Inputs = tuple[torch.Tensor, ...]


@pytest.mark.parametrize("groups", [1, 2, 3, 8, 37, 128, 256])
@pytest.mark.parametrize("s", [1, 2, 4, 1000])
def test_groups_share_all_rows_and_the_largest_has_about_s_times_the_mean(groups: int, s: int) -> None:
    rows = 1024
    ends = group_ends(groups, rows, s)
    sizes = [after - before for before, after in pairwise((0, *ends))]
    assert ends[-1] == groups * rows
    assert min(sizes) >= 0
    if s == 1:
        assert set(sizes) == {rows}
    elif groups > 1:
        assert 0 in sizes
        assert max(sizes) <= min(s, groups) * rows + 1
        assert max(sizes) >= 0.6 * min(s, groups, 64) * rows


def test_inputs_hold_these_offsets_for_every_seed_and_kind_of_data() -> None:
    sizes = {"g": 8, "m": 256, "n": 8, "k": 8, "s": 2}
    for data in ("normal", "zeros"):
        for seed in (0, 1):
            _, _, offsets = inputs_of(OP, OP.problem(sizes, "bf16", data=data), seed)
            assert offsets.dtype == torch.int32
            assert tuple(offsets.tolist()) == group_ends(8, 256, 2)


def exact(x: torch.Tensor, w: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    return OP.reference(x.double(), w.double(), offsets)[0].to(x.dtype)


def weight_of_the_neighbour(x: torch.Tensor, w: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """The last row of a group by the weight of the next group."""
    y = exact(x, w, offsets)
    (group, _, last), (other, _, _) = [*row_ranges(offsets)][:2]
    assert group != other
    y[last - 1] = (x[last - 1].double() @ w[other].double().T).to(y.dtype)
    return y


def without_the_last_row(x: torch.Tensor, w: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    y = exact(x, w, offsets)
    _, _, last = next(row_ranges(offsets))
    y[last - 1] = 0
    return y


def empty_groups_forgotten(x: torch.Tensor, w: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """As if the groups that have rows had the first weights."""
    with_rows = [group for group, _, _ in row_ranges(offsets)]
    moved = w.clone()
    moved[with_rows] = w[: len(with_rows)]
    return exact(x, moved, offsets)


def added_up_in_its_own_format(x: torch.Tensor, w: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    y = torch.zeros((x.shape[0], w.shape[1]), dtype=x.dtype)
    for group, first, last in row_ranges(offsets):
        for i in range(x.shape[1]):
            y[first:last] += x[first:last, i : i + 1] * w[group, :, i]
    return y


@pytest.mark.parametrize(
    "wrong",
    [weight_of_the_neighbour, without_the_last_row, empty_groups_forgotten, added_up_in_its_own_format],
)
@pytest.mark.parametrize("dtype", OP.dtypes)
def test_the_bound_refuses_faults(wrong: Callable[..., torch.Tensor], dtype: str) -> None:
    problem = OP.problem({"g": 4, "m": 16, "n": 40, "k": 520, "s": 2}, dtype)
    inputs = inputs_of(OP, problem)
    assert compare(OP, problem, inputs, exact(*inputs)).passed
    assert not compare(OP, problem, inputs, wrong(*inputs)).passed


def test_sums_in_fp32_are_within_the_bound() -> None:
    for sizes in odd_sizes(OP):
        problem = OP.problem(sizes, "bf16")
        inputs = inputs_of(OP, problem)
        x, w, offsets = inputs
        y = OP.reference(x.float(), w.float(), offsets)[0].bfloat16()
        assert compare(OP, problem, inputs, y).passed


def test_torchs_grouped_product_takes_the_layouts_of_the_op() -> None:
    """On the processor torch reads the same layouts; the variant itself needs a GPU."""
    variant = OP.variant_named("torch_grouped_mm")
    assert checked(OP, variant, OP.problem({"g": 5, "m": 13, "n": 24, "k": 40, "s": 3}, "bf16")).passed


@pytest.mark.parametrize("name", ["torch_grouped_mm", "triton_descriptors", "cuda_wgmma"])
@pytest.mark.parametrize(("n", "k", "axis"), [(64, 63, "k"), (60, 64, "n")])
def test_rows_of_no_whole_16_bytes_are_refused_by_name(name: str, n: int, k: int, axis: str) -> None:
    if name.startswith("triton"):
        pytest.importorskip("triton")
    problem = OP.problem({"g": 2, "m": 16, "n": n, "k": k, "s": 1}, "bf16")
    with pytest.raises(BadField, match=rf"size {axis}: .*multiple of 16 bytes"):
        bind(OP.variant_named(name), problem, inputs_of(OP, problem))


@pytest.mark.xdist_group("matmul-tiles")
def test_configurations_are_right_in_the_interpreter_and_write_no_row_of_another_group() -> None:
    pytest.importorskip("triton")
    lines = interpreted_lines(CONFIGURATIONS, "interpret")
    names = {line["case"].partition("[")[0] for line in lines}
    assert names == {"triton_tiles", "triton_persistent", "triton_descriptors"}
    for line in lines:
        assert 0 < line["worst_of_bound"] <= 1, line
        assert line["rows_of_others"] == 0, line


@pytest.mark.xdist_group("matmul-tiles")
def test_configurations_compile_as_predicted(compiler_cache: Path) -> None:
    """Shared memory as `admits` computes it, tensor cores, and no spills."""
    pytest.importorskip("triton")
    for line in written_lines(CONFIGURATIONS, "compile", TRITON_CACHE_DIR=str(compiler_cache)):
        variant = OP.variant_named(line["case"])
        c = variant.configuration or variant.default
        if "tile_k_bytes" in c:
            assert line["shared_bytes"] == shared_bytes_of_pointers(c, 2), line
        else:
            predicted = shared_bytes_of_descriptors(c)
            assert predicted - BARRIER_BYTES <= line["shared_bytes"] <= predicted, line
        assert line["spills"] == 0, line
        assert set(line["techniques"]) >= ({"tma", "wgmma"} if "descriptors" in line["case"] else {"wgmma"}), line
