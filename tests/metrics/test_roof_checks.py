"""Roofs that cannot be used: each kind planted, and none of the H200's calibrations is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kernelviz.bench import backup
from kernelviz.core.problem import Cost, Problem
from kernelviz.core.run import DataSheetRoof, Level, Roof, RoofName
from kernelviz.formats import shipped_runs
from kernelviz.hardware.datasheet import ceilings, data_sheet_shares, datasheet
from kernelviz.metrics.roof_checks import CheckedRoofs, checked, checked_newest, refusal
from kernelviz.metrics.roofline import compute_roof, level_of, memory_roof, speed_of_light
from kernelviz.text import describe_cached_part, describe_refusal

LADDERS = Path(__file__).parents[2] / "docs" / "h200-ladders.jsonl.gz"
L2 = 50 * 2**20
COST = Cost(work_flop=2**20, read_bytes=2**26, written_bytes=2**26)


def stream(
    rate: float, width: float = 0.01, *, level: Level = "dram", name: RoofName = "copy", moved: int = 2**30
) -> Roof:
    """A stream whose interval has that half-width."""
    low, high = rate * (1 - width), rate * (1 + width)
    return Roof(name=name, level=level, bandwidth_bytes_per_s=rate, low=low, high=high, moved_bytes=moved)


def kinds(found: CheckedRoofs) -> list[str]:
    return [r.kind for r in found.refused]


def test_the_roofs_of_a_loaded_machine_are_refused_and_used_nowhere() -> None:
    """As a two-core machine under load gave them: a copy in cache of ±293 %, fp64 of ±626 %, a cache slower than memory."""
    memory = stream(20e9)
    wide = Roof(name="copy", level="l2", moved_bytes=2**24, bandwidth_bytes_per_s=30e9, low=2e9, high=177.8e9)
    fp64 = Roof(name="matmul", precision="fp64", rate_flop_per_s=10e9, low=1e9, high=126.2e9)
    read, slow_cache = stream(25e9, name="read"), stream(12e9, level="l2", name="read", moved=2**24)
    roofs = (memory, wide, fp64, read, slow_cache)
    found = checked(roofs)
    assert found.usable == (memory, read)
    assert kinds(found) == ["wide", "wide", "slower_than_memory"]
    said = [describe_refusal(r) for r in found.refused]
    assert said[0] == "copy in cache at 16.8 MB: its 95 % interval, ±293 %, is wider than ±10 %"
    assert said[1] == "matmul fp64: its 95 % interval, ±626 %, is wider than ±10 %"
    assert (
        said[2]
        == "read in cache at 16.8 MB: 12.00 GB/s in the cache is slower than from memory (25.00 GB/s), which cannot be"
    )
    assert compute_roof(Problem(op="matmul", sizes={"m": 1}, dtype="fp64"), roofs) is None
    assert memory_roof(COST, roofs, "l2") is None
    small = Cost(work_flop=0, read_bytes=2**23, written_bytes=0)
    assert level_of(small, roofs, "warm") == "dram", "the cache has no usable roof"
    light = speed_of_light(Problem(op="copy", sizes={"n": 1}, dtype="fp32"), COST, roofs)
    assert light is not None
    assert light.memory == memory


def test_a_cache_as_fast_as_memory_is_not_refused_by_chance() -> None:
    """Writes on an H200: 4.706 TB/s into the L2 and 4.713 to memory in one calibration, the other way round in the next."""
    memory = stream(4.713e12, name="write", moved=2**32)
    for cache, refused in ((4.706e12, []), (4.782e12, []), (4.6e12, ["slower_than_memory"])):
        assert kinds(checked((memory, stream(cache, level="l2", name="write", moved=7_864_320)))) == refused


def test_a_cache_is_compared_with_the_slowest_stream_of_another_mix_where_its_own_cannot_be_used() -> None:
    read, copy = stream(25e9, name="read"), stream(20e9, 0.5)
    slow, fast = (stream(rate, level="l2", moved=2**24) for rate in (4e9, 26e9))
    (found,) = (r for r in checked((read, copy, slow)).refused if r.roof == slow)
    assert describe_refusal(found) == (
        "copy in cache at 16.8 MB: 4.000 GB/s in the cache is slower than from memory (read at 1.07 GB 25.00 GB/s), "
        "which cannot be"
    )
    assert fast in checked((read, copy, fast)).usable


def test_a_wide_roof_from_memory_gives_no_share_instead_of_a_wrong_one() -> None:
    assert speed_of_light(Problem(op="copy", sizes={"n": 1}, dtype="fp32"), COST, (stream(20e9, 0.5),)) is None


def test_nothing_is_faster_than_the_data_sheet_except_what_stays_in_the_cache() -> None:
    """An H100: 105.6 % of its data sheet by a stream of which a third stays in the L2 is true; 105.6 % by a large one is not."""
    (sheet, *_) = ceilings("NVIDIA H100 80GB HBM3")
    rate = (sheet.bandwidth_bytes_per_s or 0) * 1.056
    small, large = (stream(rate, 0.001, name="read2_write1", moved=m) for m in (105_000_000, 4_000_000_000))
    assert refusal(small, (), (sheet,), L2) is None
    impossible = refusal(large, (), (sheet,), L2)
    assert impossible is not None
    assert impossible.kind == "above_data_sheet"
    assert "is above the data sheet (3352 GB/s), which cannot be" in describe_refusal(impossible)
    assert describe_cached_part(small, L2) == "up to 33 % of its bytes may stay in the cache"
    assert refusal(stream(rate, 0.09, name="read2_write1", moved=4_000_000_000), (), (sheet,), L2) is None, (
        "its interval"
    )
    fast = Roof(name="matmul", precision="bf16", rate_flop_per_s=1.2e15, clock_hz=1.83e9)
    peak = DataSheetRoof(name="matmul", precision="bf16", rate_flop_per_s=989e12, clock_hz=1.83e9)
    assert refusal(fast, (), (peak,)) is not None
    assert refusal(msgspec.structs.replace(fast, clock_hz=2.3e9), (), (peak,)) is None, "the clock was higher"
    assert refusal(msgspec.structs.replace(fast, clock_hz=None), (), (peak,)) is None, "no clock is known"


def test_the_data_sheet_is_compared_with_streams_that_the_cache_cannot_hold() -> None:
    h100 = datasheet("NVIDIA H100 80GB HBM3")
    assert h100 is not None
    small = stream(h100.bandwidth_bytes_per_s * 1.056, name="read2_write1", moved=105_000_000)
    large = stream(h100.bandwidth_bytes_per_s * 0.93, name="read2_write1", moved=4_000_000_000)
    (line,) = data_sheet_shares((small, large), h100)
    assert line.share == pytest.approx(0.93)
    (only,) = data_sheet_shares((small,), h100)
    assert only.share == pytest.approx(1.056), "there is no other; the text beside it names the L2"


def test_an_earlier_roof_is_used_while_the_newest_is_refused() -> None:
    good, bad = stream(20e9), stream(5e9, 2.9)
    found = checked_newest((good, bad))
    assert found.usable == (good,)
    assert kinds(found) == ["wide"]
    again = stream(21e9)
    assert checked_newest((good, bad, again)) == CheckedRoofs((again,))
    old = Roof(name="copy", bandwidth_bytes_per_s=9e9)
    assert checked_newest((old, bad)).usable == (), (
        "what an older version measured is void, also if the newer one is refused"
    )


def test_no_calibration_of_an_h200_is_refused() -> None:
    """The rules cost a quiet machine nothing."""
    runs = [*map(shipped_runs.load, shipped_runs.names()), *backup.runs(LADDERS)]
    environments = {run.environment.roofs: run.environment for run in runs}
    assert len(environments) >= 4
    for environment in environments.values():
        device = environment.device
        found = checked(environment.roofs, ceilings(device.name), device.last_level_cache_bytes)
        assert found.refused == (), [describe_refusal(r) for r in found.refused]
