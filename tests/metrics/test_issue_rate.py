"""The share of the issue rate at the measured clock: the table against the makers' data sheets, and planted clocks."""

from __future__ import annotations

import msgspec
import pytest
import sample_runs as samples

from kernelviz.bench.comparison import records
from kernelviz.core.problem import Cost, Problem
from kernelviz.core.result import Figure, Result, Timing
from kernelviz.core.run import Device, Roof, Run
from kernelviz.hardware.datasheet import DataSheet, sheets
from kernelviz.metrics.comparison import compare
from kernelviz.metrics.compute_ceilings import ceiling_of, compute_ceilings
from kernelviz.metrics.equal_clock import equal_clock
from kernelviz.metrics.issue_rate import (
    FLOP_PER_SM_AND_CLOCK,
    GEFORCE,
    flop_per_sm_and_clock,
    issue_rate_flop_per_s,
    issue_share,
    roof_share,
)
from kernelviz.metrics.rows import rows
from kernelviz.ops import op_named
from kernelviz.tables.cases import case_columns, cases
from kernelviz.tables.column import View
from kernelviz.tables.comparison import pair_columns

CAPABILITIES = {"hopper": (9, 0), "ada": (8, 9), "blackwell_rtx": (12, 0)}
PRODUCT = Problem(op="matmul", sizes={"m": 8192, "n": 8192, "k": 8192}, dtype="bf16")
COST = op_named("matmul").cost_of(PRODUCT)


def device_of(sheet: DataSheet) -> Device | None:
    """The device of a sheet that states multiprocessors and a clock; None for one that does not, and for older cards."""
    is_ga100 = sheet.architecture == "ampere" and "A100" in sheet.names[0]
    capability = CAPABILITIES.get(sheet.architecture) or {"ampere": (8, 0) if is_ga100 else (8, 6)}.get(
        sheet.architecture
    )
    if capability is None or sheet.multiprocessors is None:
        return None
    return msgspec.structs.replace(
        samples.H200, name=sheet.names[0], multiprocessors=sheet.multiprocessors, compute_capability=capability
    )


STATED = [
    pytest.param(device, precision, peak, id=f"{sheet.names[0]} {precision}")
    for sheet in sheets()
    if (device := device_of(sheet)) is not None
    for precision, peak in sheet.peaks.items()
    if peak.at_clock_hz is not None
]


def test_every_capability_of_the_table_has_a_data_sheet_that_confirms_it() -> None:
    assert {case.values[0].compute_capability for case in STATED} == set(FLOP_PER_SM_AND_CLOCK)  # type: ignore[attr-defined]
    assert len(STATED) > 60


@pytest.mark.parametrize(("device", "precision", "peak"), STATED)
def test_the_issue_rate_at_the_clock_of_the_sheet_is_the_sheets_peak(
    device: Device, precision: str, peak: object
) -> None:
    rate = issue_rate_flop_per_s(device, precision, peak.at_clock_hz)  # type: ignore[attr-defined]
    assert rate is not None
    # Of GeForce cards, sheets state fp16 and fp8 with accumulation in fp16, which is twice as fast.
    narrow = 2 if device.name.startswith(GEFORCE) and precision in ("fp16", "fp8") else 1
    assert rate * narrow == pytest.approx(peak.rate_flop_per_s, rel=0.006)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "capability", "precision"),
    [
        ("NVIDIA L40", (8, 9), "bf16"),
        ("NVIDIA B200", (10, 0), "bf16"),
        ("NVIDIA H200", (9, 0), "fp4"),
        ("Tesla T4", (7, 5), "fp16"),
    ],
)
def test_what_no_document_states_is_unknown(name: str, capability: tuple[int, int], precision: str) -> None:
    device = msgspec.structs.replace(samples.H200, name=name, compute_capability=capability)
    assert flop_per_sm_and_clock(device, precision) is None
    assert issue_rate_flop_per_s(device, precision, 1.8e9) is None


def at_clock(cycles: float, clock_hz: float | None, **more: object) -> Figure:
    """The time of a call of so many cycles at a clock."""
    return samples.figure(cycles / (clock_hz or 1e9), clock_hz=clock_hz, **more)  # type: ignore[arg-type]


def test_one_kernel_at_two_clocks_has_one_share() -> None:
    slow, fast = (issue_share(PRODUCT, COST, at_clock(2.2e6, hz), samples.H200) for hz in (1.5e9, 1.98e9))
    assert slow is not None
    assert fast is not None
    assert slow.fraction == pytest.approx(fast.fraction, rel=1e-9)
    assert (slow.clock_hz, fast.clock_hz) == (pytest.approx(1.5e9, rel=1e-3), pytest.approx(1.98e9, rel=1e-3))
    assert slow.rate_flop_per_s == pytest.approx(132 * 4096 * slow.clock_hz)
    assert slow.fraction == pytest.approx(2 * 8192**3 / (132 * 4096 * 2.2e6), rel=0.01)


def test_a_clock_that_moves_between_blocks_is_paired_with_the_time_of_its_block() -> None:
    """Half of the blocks at 2 GHz, half at 1 GHz and twice as long: equal cycles in each block."""
    steady = at_clock(1e6, 2e9, blocks=20, size=4)
    assert steady.samples is not None
    assert steady.blocks is not None
    half = len(steady.samples) // 2
    moved = msgspec.structs.replace(
        steady,
        samples=(*steady.samples[:half], *(2 * s for s in steady.samples[half:])),
        blocks=tuple(msgspec.structs.replace(b, clock_hz=2e9 if i < 10 else 1e9) for i, b in enumerate(steady.blocks)),
        estimate=0.75e-3,
    )
    alone, both = (issue_share(PRODUCT, COST, f, samples.H200) for f in (steady, moved))
    assert alone is not None
    assert both is not None
    assert both.fraction == pytest.approx(alone.fraction, rel=0.01)


def test_without_a_measured_clock_there_is_no_share() -> None:
    assert issue_share(PRODUCT, COST, at_clock(2.2e6, None), samples.H200) is None
    few = at_clock(2.2e6, 1.8e9)
    assert few.blocks is not None
    some = tuple(msgspec.structs.replace(b, clock_hz=b.clock_hz if i < 5 else None) for i, b in enumerate(few.blocks))
    assert issue_share(PRODUCT, COST, msgspec.structs.replace(few, blocks=some), samples.H200) is None
    assert issue_share(PRODUCT, COST, Figure(estimate=1e-3), samples.H200) is None
    assert issue_share(PRODUCT, None, few, samples.H200) is None


def test_an_op_that_moves_data_has_no_share() -> None:
    add = Problem(op="add", sizes={"n": 2**20}, dtype="bf16")
    assert issue_share(add, op_named("add").cost_of(add), at_clock(1e5, 1.8e9), samples.H200) is None


def test_a_roof_is_compared_with_the_issue_rate_at_its_own_clock() -> None:
    loop = Roof(name="mma", precision="bf16", unit="tensor", rate_flop_per_s=0.97 * 132 * 4096 * 1.4e9, clock_hz=1.4e9)
    assert roof_share(loop, samples.H200) == pytest.approx(0.97)
    assert roof_share(msgspec.structs.replace(loop, clock_hz=None), samples.H200) is None
    assert roof_share(msgspec.structs.replace(loop, name="fma"), samples.H200) is None
    assert roof_share(Roof(name="copy", bandwidth_bytes_per_s=4e12, clock_hz=1.4e9), samples.H200) is None


def run_at(clock_hz: float, cost: Cost = COST) -> Result:
    return Result(
        problem=PRODUCT, variant="torch_eager", outcome=Timing(device_cold_s=at_clock(2.2e6, clock_hz)), cost=cost
    )


@pytest.mark.parametrize("view", [View.RECORD, View.WIDE, View.TERMINAL, View.MARKDOWN])
def test_the_share_and_its_clock_are_columns_of_every_table(view: View) -> None:
    run = samples.run([run_at(1.6e9)], op="matmul", sizes=[PRODUCT.sizes])
    table = cases(run, rows(run, run.environment.roofs))
    columns = {c.title: c.read(table[0]) for c in case_columns(table, view)}
    assert columns["Of issue rate"] == pytest.approx(2 * 8192**3 / (132 * 4096 * 2.2e6), rel=0.01)
    assert columns["SM clock in calls"] == pytest.approx(1.6e9, rel=1e-3)


def test_a_table_without_arithmetic_has_no_such_column() -> None:
    run = samples.run()
    table = cases(run, rows(run, run.environment.roofs))
    assert "Of issue rate" not in {c.title for c in case_columns(table, View.WIDE)}


def test_the_three_ceilings_stand_in_their_order() -> None:
    loop = Roof(name="mma", precision="bf16", unit="tensor", rate_flop_per_s=830e12, clock_hz=1.55e9)
    sheet = (Roof(name="matmul", precision="bf16", rate_flop_per_s=989.4e12, clock_hz=1.83e9),)
    figure = at_clock(2.2e6, 1.6e9)
    ceilings = compute_ceilings(PRODUCT, COST, figure, samples.H200, (*samples.H200_ROOFS, loop), sheet)
    assert [c.kind for c in ceilings] == ["data_sheet", "issue_rate", "tensor_loop"]
    for ceiling in ceilings:
        assert ceiling.share_fraction * ceiling.rate_flop_per_s == pytest.approx(COST.work_flop / figure.estimate)
    assert [c.clock_hz for c in ceilings] == [1.83e9, pytest.approx(1.6e9, rel=1e-3), 1.55e9]
    assert ceiling_of(compute_ceilings(PRODUCT, COST, figure, samples.H200, (), ()), "tensor_loop") is None


def test_a_loop_that_is_too_uncertain_is_no_ceiling() -> None:
    wide = Roof(name="mma", precision="bf16", rate_flop_per_s=830e12, low=400e12, high=900e12, clock_hz=1.55e9)
    ceilings = compute_ceilings(PRODUCT, COST, at_clock(2.2e6, 1.6e9), samples.H200, (wide,), ())
    assert [c.kind for c in ceilings] == ["issue_rate"]


def test_a_problem_that_moves_data_has_no_compute_ceiling() -> None:
    add = Problem(op="add", sizes={"n": 2**20}, dtype="bf16")
    assert compute_ceilings(add, op_named("add").cost_of(add), at_clock(1e5, 1.8e9), samples.H200, (), ()) == ()


def product_run(id: str, cycles: float, clock_hz: float, **problem: object) -> Run:
    named = msgspec.structs.replace(PRODUCT, **problem)
    result = Result(
        problem=named, variant="torch_eager", outcome=Timing(device_cold_s=at_clock(cycles, clock_hz)), cost=COST
    )
    run = samples.run([result], id=id, op="matmul", sizes=[PRODUCT.sizes])
    plan = msgspec.structs.replace(run.plan, problems=(named,), variants=("torch_eager",))
    return msgspec.structs.replace(run, plan=plan)


def test_clocks_explain_the_difference_of_two_runs_of_one_kernel() -> None:
    found = compare(product_run("a", 2.2e6, 1.98e9), product_run("b", 2.2e6, 1.5e9))
    (pair,) = found.pairs
    assert pair.ratio is not None
    assert pair.ratio.estimate == pytest.approx(1.98 / 1.5, rel=0.001)
    assert equal_clock(pair, found).ratio == pytest.approx(1.0, rel=0.001)
    (record,) = records(found)
    assert record["ratio_at_equal_clock"] == pytest.approx(1.0, rel=0.001)
    assert record["mean_clock_b_hz"] == pytest.approx(1.5e9, rel=0.001)
    titles = [c.heading for c in pair_columns(found, View.WIDE)]
    assert "At equal clock, B / A" in titles
    assert {"Of issue rate, A", "Of issue rate, B", "SM clock of A", "SM clock of B"} <= set(titles)
    assert "At equal clock, B / A" in [c.heading for c in pair_columns(found, View.TERMINAL)]


def test_a_kernel_that_needs_more_cycles_is_slower_at_equal_clock_too() -> None:
    found = compare(product_run("a", 2.2e6, 1.5e9), product_run("b", 2.42e6, 1.65e9))
    (pair,) = found.pairs
    assert pair.ratio is not None
    assert pair.ratio.estimate == pytest.approx(1.0, rel=0.001)
    assert equal_clock(pair, found).ratio == pytest.approx(1.1, rel=0.001)


def test_other_input_data_have_no_verdict_but_a_ratio_at_equal_clock() -> None:
    found = compare(product_run("a", 2.2e6, 1.5e9), product_run("b", 2.2e6, 1.9e9, data="zeros"))
    (pair,) = found.pairs
    assert pair.kind == "not comparable"
    assert pair.ratio is not None
    assert pair.ratio.estimate < 0.9
    assert equal_clock(pair, found).ratio == pytest.approx(1.0, rel=0.001)


def test_a_comparison_of_ops_that_move_data_has_no_such_column() -> None:
    a, b = samples.run(id="a"), samples.run(id="b")
    found = compare(a, b)
    assert all(equal_clock(pair, found).ratio is None for pair in found.pairs)
    assert "At equal clock, B / A" not in [c.heading for c in pair_columns(found, View.WIDE)]
