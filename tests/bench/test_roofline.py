"""Placing runs on the roofline: over a real store, with runs of two machines and those that ship with the package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import planted_limits as plant
import pytest
import sample_runs as samples

from kernelviz.bench import Bench
from kernelviz.bench import roofline as use_case
from kernelviz.bench.roofline import DEFAULT_RUNS, default_runs, offered, place, records, unknown
from kernelviz.core.errors import UnknownName, UnknownRun
from kernelviz.formats import shipped_runs
from kernelviz.metrics.limiter_evidence import Missing
from kernelviz.metrics.rows import rows
from kernelviz.store import Store


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path), (samples.CPU,))
    yield made
    made.close()


def test_every_correct_timed_case_is_placed_once(bench: Bench) -> None:
    bench.history.add(samples.mixed())
    found = place(bench, ["mixed", plant.ADD, "mixed"])
    own = [c for c in found.cases if c.run_id == "mixed"]
    assert {c.variant for c in own} == {"composite_eager", "torch_eager", "torch_compile"}
    assert len(own) == 3 * 6
    assert found.untimed == 2 * 6
    assert len(found.cases) == len(own) + len(shipped_runs.load(plant.ADD).results)
    assert len({c.key for c in found.cases}) == len(found.cases)
    assert all(c.figure.samples is None and c.figure.blocks is None for c in found.cases)


def test_shares_are_those_of_the_bench_page(bench: Bench) -> None:
    run = shipped_runs.load(plant.MATMUL)
    for level, headline in (("dram", "cold"), ("l2", "warm")):
        shares = {c.key: c.share for c in place(bench, [plant.MATMUL], level=level).cases}
        shown = rows(run, run.environment.roofs, headline)
        # A time with two levels has no share on either page.
        assert shares == {
            f"{run.id} | {row.result.case.key}": row.efficiency for row in shown if row.figure is not None
        }
        assert any(shares.values())


def test_the_level_takes_its_own_times_and_roofs(bench: Bench) -> None:
    cold, warm = (place(bench, [plant.SCALE], level=level).cases for level in ("dram", "l2"))
    assert {c.light.memory.level for c in cold if c.light} == {"dram"}
    assert {c.light.memory.level for c in warm if c.light} == {"dram", "l2"}
    small = next(c for c in warm if c.problem.sizes["n"] == 2**20)
    assert small.light is not None
    assert small.light.memory.level == "l2"
    assert small.time_s < next(c for c in cold if c.key == small.key).time_s


def test_a_data_sheet_changes_the_share_and_not_the_limiter(bench: Bench) -> None:
    measured, promised = (place(bench, [plant.MATMUL], source=s).cases for s in ("measured", "datasheet"))
    assert [c.limiter for c in measured] == [c.limiter for c in promised]
    large = [next(c for c in cases if c.problem.sizes["m"] == 4096) for cases in (measured, promised)]
    roofs = shipped_runs.load(plant.MATMUL).environment.roofs
    (roof,) = (r.rate_flop_per_s for r in roofs if (r.name, r.precision) == ("matmul", "bf16"))
    assert roof == pytest.approx(799e12, rel=0.02)
    for case, rate in zip(large, (roof, 989.4e12), strict=True):
        assert case.share == pytest.approx(2 * 4096**3 / case.time_s / rate, rel=1e-3)


def test_an_unknown_gpu_has_no_promise_and_an_uncalibrated_one_no_measured_roof(bench: Bench) -> None:
    other = msgspec.structs.replace(samples.H200, name="NVIDIA H999", uuid="GPU-9")
    bench.history.add(plant.moved_to(samples.run(id="strange"), other, ()))
    for source in ("measured", "datasheet"):
        found = place(bench, ["strange"], source=source)
        assert found.unroofed == ("NVIDIA H999",)
        assert {c.share for c in found.cases} == {None}
        assert {c.limiter.kind for c in found.cases} == {"unclear"}
        assert all(Missing("empty_kernel") in c.limiter.missing for c in found.cases)


def test_what_is_kept_at_hand_follows_the_run(bench: Bench) -> None:
    use_case._placed.cache_clear()
    run = samples.run(id="kept")
    bench.history.add(run)
    first = place(bench, ["kept"])
    assert place(bench, ["kept"]).cases[0] is first.cases[0], "read twice"
    bench.history.rename("kept", "another name")
    assert {c.run_name for c in place(bench, ["kept"]).cases} == {"another name"}
    bench.history.delete("kept")
    with pytest.raises(UnknownRun):
        place(bench, ["kept"])


def test_choices_and_what_is_not_among_them(bench: Bench) -> None:
    assert set(default_runs(bench)) == set(DEFAULT_RUNS)
    bench.history.add(samples.run(id="own"))
    bench.history.add(samples.run([], id="nothing-yet"))
    assert default_runs(bench) == ("own",)
    assert set(offered(bench)) == {"own", *shipped_runs.names()}
    bench.history.delete("own")
    assert unknown(bench, ["own", "never", plant.ADD]) == ("own", "never")
    assert set(offered(bench, ["own", "never"])) == set(shipped_runs.names())


def test_names_that_nothing_has_are_told_with_the_known_ones(bench: Bench) -> None:
    for wrong in ({"level": "l3"}, {"source": "guess"}, {"precision": "fp8"}, {"variant": "torch_eagre"}):
        with pytest.raises(UnknownName, match="known: "):
            place(bench, [plant.ADD], **wrong)  # type: ignore[arg-type]
    only = place(bench, [plant.ADD, plant.MATMUL], precision="bf16", variant="cuda_naive").cases
    assert {(c.problem.op, c.variant) for c in only} == {("matmul", "cuda_naive")}


def test_records_are_plain_values_in_base_units(bench: Bench) -> None:
    row = records(place(bench, [plant.ADD], variant="torch_eager"))[0]
    assert row["n"] == 4096
    assert row["time_s"] == pytest.approx(1.40e-6, rel=0.01)
    assert row["share_fraction"] == pytest.approx(row["speed_of_light_s"] / row["time_s"])  # type: ignore[operator]
    assert (row["limiter"], row["missing"]) == ("launch", [])
