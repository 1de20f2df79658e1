"""The roof that a problem is compared with: nearest mix, bytes and level; and the arithmetic units that its op can use."""

from __future__ import annotations

import math
from typing import get_args

import msgspec
import pytest
import sample_runs as samples

from kernelviz.core.problem import Cost, Problem
from kernelviz.core.result import Figure, Timing
from kernelviz.core.run import Level, Roof, RoofName
from kernelviz.formats import shipped_runs
from kernelviz.metrics.headline import Headline
from kernelviz.metrics.roofline import (
    compute_roof,
    efficiency,
    level_of,
    memory_roof,
    speed_of_light,
    stream_name,
)
from kernelviz.text.roofs import format_roof_name

MB = 10**6


def stream(name: RoofName, level: Level | None, moved_bytes: int | None, rate: float) -> Roof:
    return Roof(
        name=name, level=level, moved_bytes=moved_bytes, bandwidth_bytes_per_s=rate, low=rate * 0.99, high=rate * 1.01,
        how=f"own {name}", measured_at="2026-11-22T00:00:00+00:00",
    )  # fmt: skip


COPIES = (
    stream("copy", "dram", 4000 * MB, 4.2e12),
    stream("copy", "dram", 100 * MB, 4.8e12),
    stream("copy", "dram", 1000 * MB, 4.4e12),
)
CACHED = (stream("copy", "l2", 8 * MB, 6e12), stream("copy", "l2", 32 * MB, 8e12))
RATES = (
    Roof(name="fma", precision="fp32", unit="vector", rate_flop_per_s=60e12),
    Roof(name="matmul", precision="fp32", unit="vector", rate_flop_per_s=50e12),
    Roof(name="matmul", precision="bf16", unit="tensor", rate_flop_per_s=800e12),
    Roof(name="fma", precision="bf16", unit="vector", rate_flop_per_s=120e12),
)


def half(moved_bytes: int, flop: int = 0) -> Cost:
    """As many bytes read as written."""
    return Cost(work_flop=flop, read_bytes=moved_bytes // 2, written_bytes=moved_bytes // 2)


def bandwidth(roof: Roof | None) -> float:
    assert roof is not None
    assert roof.bandwidth_bytes_per_s is not None
    return roof.bandwidth_bytes_per_s


@pytest.mark.parametrize(
    ("moved_bytes", "rate"),
    [(MB, 4.8e12), (100 * MB, 4.8e12), (1000 * MB, 4.4e12), (4000 * MB, 4.2e12), (9000 * MB, 4.2e12)],
)
def test_at_and_outside_of_the_measured_sizes_the_nearest_one_stands(moved_bytes: int, rate: float) -> None:
    found = memory_roof(half(moved_bytes), COPIES)
    assert bandwidth(found) == rate
    assert found in COPIES


def test_between_two_sizes_the_roof_is_linear_in_the_logarithm_and_says_so() -> None:
    found = memory_roof(half(round(100 * MB * math.sqrt(10))), COPIES)
    assert bandwidth(found) == pytest.approx(4.6e12)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(4.6e12 * 0.99), pytest.approx(4.6e12 * 1.01))
    assert found.how == "", "nobody measured it"
    assert format_roof_name(found) == "copy at 316 MB"


def test_the_nearest_mix_counts_and_a_missing_one_is_the_copy() -> None:
    mixed = (*COPIES, stream("read", "dram", 100 * MB, 4.7e12), stream("read2_write1", "dram", 100 * MB, 4.5e12))
    for read, written, name, rate in ((9, 1, "read", 4.7e12), (6, 3, "read2_write1", 4.5e12), (1, 9, "write", 4.8e12)):
        cost = Cost(work_flop=0, read_bytes=read * MB, written_bytes=written * MB)
        assert stream_name(cost) == name
        assert bandwidth(memory_roof(cost, mixed)) == rate
    assert memory_roof(half(MB), (stream("read", "dram", MB, 1e12),)) is None
    assert memory_roof(half(MB), ()) is None


def test_a_transfer_over_the_bus_is_no_memory_roof() -> None:
    assert memory_roof(half(MB), (Roof(name="h2d", bandwidth_bytes_per_s=5e10, moved_bytes=MB),)) is None


def test_only_a_warm_problem_that_fits_is_held_against_the_cache() -> None:
    roofs = (*COPIES, *CACHED)
    assert [level_of(half(n * MB), roofs, "warm") for n in (1, 32, 33, 100)] == ["l2", "l2", "dram", "dram"]
    assert level_of(half(MB), roofs, "cold") == "dram"
    assert level_of(half(MB), COPIES, "warm") == "dram"
    assert bandwidth(memory_roof(half(16 * MB), roofs, "l2")) == pytest.approx(7e12)
    assert bandwidth(memory_roof(half(16 * MB), roofs)) == 4.8e12
    assert memory_roof(half(MB), COPIES, "l2") is None


def test_efficiency_follows_the_headline() -> None:
    problem = Problem(op="copy", sizes={"n": 1}, dtype="fp32")
    cost = half(8 * MB)
    timing = Timing(device_cold_s=Figure(estimate=8 * MB / 2.4e12), device_warm_s=Figure(estimate=8 * MB / 3e12))
    roofs = (*COPIES, *CACHED)
    light = {headline: speed_of_light(problem, cost, roofs, headline) for headline in get_args(Headline)}
    assert efficiency(light["cold"], timing.device_cold_s) == pytest.approx(0.5)
    assert efficiency(light["warm"], timing.device_warm_s) == pytest.approx(0.5)
    assert efficiency(light["cold"], timing.device_warm_s) == pytest.approx(3 / 4.8)
    assert efficiency(light["warm"], None) is None
    assert efficiency(speed_of_light(problem, None, roofs), timing.device_cold_s) is None


def test_a_contraction_is_held_against_products_and_a_row_op_against_the_vector_units() -> None:
    product = Problem(op="matmul", sizes={"m": 1, "n": 1, "k": 1}, dtype="bf16")
    rows = Problem(op="rmsnorm", sizes={"m": 1, "n": 1}, dtype="bf16")
    assert compute_roof(product, RATES) == RATES[2]
    assert compute_roof(rows, RATES) == RATES[3]
    # Not known by name: more than 16 flop a byte is arithmetic that only a contraction has.
    other = Problem(op="attention", sizes={"n": 1}, dtype="bf16")
    assert compute_roof(other, RATES, half(MB, flop=17 * MB)) == RATES[2]
    assert compute_roof(other, RATES, half(MB, flop=16 * MB)) == RATES[3]
    ieee = Problem(op="matmul", sizes={"m": 1, "n": 1, "k": 1}, dtype="fp32", compute="ieee")
    assert compute_roof(ieee, RATES) == RATES[1]
    assert compute_roof(msgspec.structs.replace(ieee, compute="tf32"), RATES) is None
    # Before the vector units were measured, the product's rate stood for them too.
    assert compute_roof(rows, [r for r in RATES if r.name == "matmul"]) == RATES[2]


def test_much_arithmetic_without_its_roof_has_no_speed_of_light() -> None:
    problem = Problem(op="matmul", sizes={"m": 1, "n": 1, "k": 1}, dtype="fp16")
    assert speed_of_light(problem, half(MB, flop=17 * MB), (*COPIES, *RATES)) is None
    light = speed_of_light(problem, half(MB, flop=16 * MB), (*COPIES, *RATES))
    assert light is not None
    assert (light.bound, light.roof) == ("memory", light.memory)
    bf16 = msgspec.structs.replace(problem, dtype="bf16")
    light = speed_of_light(bf16, half(MB, flop=1000 * MB), (*COPIES, *RATES))
    assert light is not None
    assert (light.bound, light.roof, light.time_s) == ("compute", RATES[2], pytest.approx(1000 * MB / 800e12))


def test_roofs_without_level_or_size_stay_what_they_were() -> None:
    """Runs measured before levels: one roof a mix, whatever the bytes; and those without a size."""
    shipping = [shipped_runs.load(name).environment.roofs for name in shipped_runs.names()]
    for old in (samples.H200_ROOFS, *(roofs for roofs in shipping if roofs and not any(r.level for r in roofs))):
        assert old
        for moved_bytes in (MB, 200 * MB, 8000 * MB):
            for read in (0, 1, 2):
                cost = Cost(
                    work_flop=0, read_bytes=read * moved_bytes // 2, written_bytes=(2 - read) * moved_bytes // 2
                )
                by_name = {r.name: r for r in old if r.bandwidth_bytes_per_s}
                expected = by_name.get(stream_name(cost)) or by_name.get("copy")
                assert memory_roof(cost, old) is expected
                assert level_of(cost, old, "warm") == "dram"
        for dtype in ("fp32", "bf16"):
            for op in ("matmul", "add"):
                found = compute_roof(Problem(op=op, sizes={"n": 1}, dtype=dtype), old)
                assert found is next(r for r in old if r.precision == dtype)


def test_leveled_roofs_come_before_those_without() -> None:
    old = stream("copy", None, 500 * MB, 1e12)
    assert bandwidth(memory_roof(half(500 * MB), (*COPIES, old))) > 4e12


def test_two_roofs_of_one_stream_at_the_bytes_of_a_case_are_no_interpolation() -> None:
    """A document may list a stream twice; the logarithm of their ratio of bytes is zero."""
    twice = tuple(Roof(name="copy", level="dram", moved_bytes=200, bandwidth_bytes_per_s=b) for b in (3e9, 4e9))
    found = memory_roof(Cost(work_flop=0, read_bytes=100, written_bytes=100), twice)
    assert found in twice
