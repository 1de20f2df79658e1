"""Hardware counters of ten cases: the traffic of a copy, the excess of a strided copy, and another person's run that waits."""

from __future__ import annotations

import time

import pytest
from figures import known, record, save
from parts import part

from kernelviz.bench import Bench
from kernelviz.core import CaseStep, Counters, CountersDone, Method, Run, RunEnded, RunRequest, Timing
from kernelviz.core import uncounted as u
from kernelviz.core.counters import SECTOR_BYTES
from kernelviz.metrics.counters import call_counters, traffic_ratio
from kernelviz.metrics.limiter import limiter
from kernelviz.text.counters import describe_uncounted

pytestmark = [part("instrument"), pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(300)]

COPIES = ("triton_block", "triton_persistent", "cuda_scalar", "cuda_vec16", "cuda_vec16_unrolled")
STRIDED = ("triton_block", "cuda_scalar", "cuda_vec16", "cuda_unrolled", "cuda_adaptive")
COPY_SIZES = {"n": "2^29"}
"""4 GiB of traffic: the 60 MB of results that may stay in the L2 of an H200 are 1.4 % of it."""
STRIDED_SIZES = {"n": "2^24", "s": "16"}
"""64 bytes from one fp32 element to the next: each is in a sector of its own."""
TOLERANCE = 0.03
UNCLEAR = 0.03
"""The largest share of cases with counters whose limiter is unclear."""
DISTURBED = 0.02
"""A short kernel differs by about 1 % from process to process."""


def measured(bench: Bench, op: str, sizes: dict[str, str], variants: tuple[str, ...], owner: str = "ann") -> Run:
    plan = bench.plan(RunRequest(op=op, sizes=sizes, dtype="fp32", variants=variants))
    run_id = bench.run(plan, Method(budget_s=0.1, figures=("cold",)), owner=owner)
    assert [e for _, e in bench.follow(run_id, timeout_s=120) if isinstance(e, RunEnded)]
    return bench.load(run_id)


def counted(bench: Bench, run: Run, variants: tuple[str, ...]) -> dict[str, Counters]:
    """The counters of each variant; skips where the machine does not allow them."""
    try:
        name = bench.counters.read_of_run(run, variants, owner="ann", scope="traffic")
    except u.CountersRefused as refused:
        pytest.skip(str(refused))
    assert [e for _, e in bench.follow(name, timeout_s=200) if isinstance(e, RunEnded)]
    uncounted = bench.counters.not_read(name)
    for reason in uncounted.values():
        if isinstance(reason.reason, u.NotPermitted | u.ProfilerNotLoaded | u.CountersBusy):
            pytest.skip(str(describe_uncounted(reason)))
    assert not uncounted, {key: str(describe_uncounted(reason)) for key, reason in uncounted.items()}
    return {one.variant: one.counters for one in bench.counters.read_cases(name)}


def test_the_traffic_of_ten_cases_is_measured_and_explained(bench: Bench) -> None:
    calibration = bench.calibrate("cuda:0")
    assert [e for _, e in bench.follow(calibration, timeout_s=60) if isinstance(e, RunEnded)]
    begun_s = time.monotonic()
    figures: dict[str, dict[str, object]] = {}
    ratios: dict[str, float] = {}
    for op, sizes, variants in (("copy", COPY_SIZES, COPIES), ("strided_copy", STRIDED_SIZES, STRIDED)):
        run = measured(bench, op, sizes, variants)
        counters = counted(bench, run, variants)
        stored = bench.load(run.id)
        save(stored, f"counters-{op}.json")
        for result in stored.results:
            assert result.hardware_counters == counters[result.variant]
            call, ratio = call_counters(result.hardware_counters), traffic_ratio(result.cost, result.hardware_counters)
            assert call is not None
            assert ratio is not None, f"{op} {result.variant}: the traffic of device memory is unknown"
            ratios[f"{op} {result.variant}"] = ratio
            figures[f"{op} {result.variant}"] = {
                "traffic_ratio": ratio,
                "dram_read_bytes": call.dram_read_bytes,
                "dram_written_bytes": call.dram_written_bytes,
                "load_sectors_per_request": call.load_sectors_per_request,
                "load_sector_bytes": sum(k.load_sectors or 0 for k in call.kernels) * SECTOR_BYTES,
                "duration_s": call.duration_s,
                "limiter": limiter(result, stored.environment.device, bench.roofs_of(stored)).kind,
                "version": counters[result.variant].version,
                "not_read": counters[result.variant].not_read,
            }
    record("counters", {"cases": figures, "seconds": time.monotonic() - begun_s})
    assert len(figures) == 10
    unclear = [case for case, figure in figures.items() if figure["limiter"] == "unclear"]
    assert len(unclear) <= UNCLEAR * len(figures), unclear
    for variant in COPIES:
        assert abs(ratios[f"copy {variant}"] - 1) <= TOLERANCE, figures[f"copy {variant}"]
    for variant in STRIDED:
        case = figures[f"strided_copy {variant}"]
        assert ratios[f"strided_copy {variant}"] > 4, f"{variant} fetches whole sectors: {case}"
        fetched, read = case["load_sector_bytes"], case["dram_read_bytes"]
        assert isinstance(fetched, int)
        assert isinstance(read, int)
        # The smallest unit of HBM is 64 bytes, two sectors.
        assert (1 - TOLERANCE) * fetched <= read <= 2 * (1 + TOLERANCE) * fetched, f"{variant}: {case}"


def test_another_persons_run_waits_and_is_not_disturbed(bench: Bench) -> None:
    before = measured(bench, "add", {"n": "2^22"}, ("triton_block",), owner="ben")
    copy = measured(bench, "copy", {"n": "2^24"}, ("cuda_vec16",))
    try:
        reading = bench.counters.read_of_run(copy, ("cuda_vec16",), owner="ann", scope="traffic")
    except u.CountersRefused as refused:
        pytest.skip(str(refused))
    plan = bench.plan(RunRequest(op="add", sizes={"n": "2^22"}, dtype="fp32", variants=("triton_block",)))
    waiting = bench.run(plan, Method(budget_s=0.1, figures=("cold",)), owner="ben")
    ended_s = began_s = 0.0
    for _, event in bench.follow(reading, timeout_s=200):
        if isinstance(event, CountersDone):
            ended_s = time.monotonic()
            assert not any(isinstance(e, CaseStep) for _, e in bench.follow(waiting, timeout_s=0.0))
    for _, event in bench.follow(waiting, timeout_s=120):
        if isinstance(event, CaseStep) and not began_s:
            began_s = time.monotonic()
    assert began_s > ended_s > 0
    after = bench.load(waiting)
    times = [r.outcome for run in (before, after) for r in run.results]
    first, second = (known(t.device_cold_s).estimate for t in times if isinstance(t, Timing))
    record("counters_beside_a_run", {"before_s": first, "after_s": second})
    assert abs(second / first - 1) <= DISTURBED
