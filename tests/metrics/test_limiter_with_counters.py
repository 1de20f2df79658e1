"""The limiter and the placement with hardware counters, which are made by hand."""

from __future__ import annotations

import planted_limits as plant
import pytest
import sample_counters

from kernelviz.core.counters import KernelCounters
from kernelviz.core.result import Result
from kernelviz.metrics.counters import CallCounters, call_counters, traffic_ratio
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.limiter import limiter
from kernelviz.metrics.limiter_evidence import Limiter
from kernelviz.text.limiter import describe_evidence, describe_limiter_reason

DEVICE, ROOFS = plant.machine()
IDLE = {"fma_fraction": 0.02, "alu_fraction": 0.03, "xu_fraction": 0.0, "lsu_fraction": 0.05, "tensor_fraction": 0.0,
        "issue_fraction": 0.1, "l2_bytes": 1000}  # fmt: skip
"""No unit is busy."""


def limit(result: Result, headline: Headline = "cold") -> Limiter:
    return limiter(result, DEVICE, ROOFS, headline)


def kinds(found: Limiter) -> list[str]:
    return [fact.kind for fact in found.evidence]


def strided(**values: object) -> Result:
    """A strided copy of 256 MiB that fetches sectors of 32 bytes for 4 bytes each."""
    return sample_counters.counted(plant.strided_copy(), sample_counters.kernel(**{**IDLE, **values}))


def test_measured_traffic_explains_a_strided_copy() -> None:
    """Without counters it is inferred; with them it is counted, and the inferred rule does not apply."""
    assert kinds(limit(plant.strided_copy()))[0] == "queued_wave"
    fetched = strided(dram_read_bytes=8 * 2**28, dram_written_bytes=8 * 2**28)
    found = limit(fetched)
    assert (found.kind, kinds(found)[0]) == ("bandwidth", "counted_dram")
    said = str(describe_limiter_reason(found))
    assert "ncu counted 4.29 GB of traffic with device memory, 8.00 × the least" in said
    assert "its least traffic, 537 MB" in said
    assert "moves" not in said, "what is moved is what was counted"


@pytest.mark.parametrize(
    ("values", "kind", "evidence", "text"),
    [
        (
            {"alu_fraction": 0.72},
            "compute",
            "busy_pipe",
            "the ALU pipe (integers, comparisons) is busy in 72 % of the cycles",
        ),
        ({"xu_fraction": 0.61}, "compute", "busy_pipe", "XU pipe"),
        ({"lsu_fraction": 0.8}, "issue", "busy_pipe", "LSU pipe (loads and stores) is busy in 80 %"),
        ({"issue_fraction": 0.9}, "issue", "busy_issue", "issue an instruction in 90 % of their cycles"),
        ({"l2_bytes": 12 * 10**9}, "L2", "counted_l2", "ncu counted 12.0 GB of traffic with the L2"),
        ({}, "latency", "waiting_warps", "of the waiting warps, 74 % wait for data from L1, L2 or device memory"),
    ],
)
def test_the_unit_in_use_decides(values: dict[str, float], kind: str, evidence: str, text: str) -> None:
    found = limit(strided(dram_read_bytes=2**28, dram_written_bytes=2**28, **values))
    assert (found.kind, kinds(found)[0]) == (kind, evidence)
    assert text in str(describe_evidence(found.evidence[0]))
    assert "counted_dram" in kinds(found), "the measured traffic is always part of the evidence"


def test_an_unclear_case_is_clear_with_counters() -> None:
    naive = plant.real(plant.MATMUL, "cuda_naive", m=512, n=512, k=512)
    device, roofs = plant.machine(plant.MATMUL)
    assert limiter(naive, device, roofs).kind == "unclear"
    busy = sample_counters.counted(naive, sample_counters.kernel(**{**IDLE, "lsu_fraction": 0.85}))
    found = limiter(busy, device, roofs)
    assert (found.kind, found.missing) == ("issue", ())


def test_a_case_at_a_roof_stays_there_and_the_traffic_is_evidence() -> None:
    found = limit(
        sample_counters.counted(
            plant.big_copy(), sample_counters.kernel(dram_read_bytes=2**28, dram_written_bytes=2**28)
        )
    )
    assert found.kind == "bandwidth"
    assert kinds(found)[:2] == ["moved_least", "counted_dram"]


def test_counters_of_a_cold_call_say_nothing_about_the_warm_time() -> None:
    result = strided(dram_read_bytes=8 * 2**28, dram_written_bytes=8 * 2**28)
    assert limit(result, "warm") == limit(plant.strided_copy(), "warm")


def test_unknown_counters_change_nothing() -> None:
    bare = sample_counters.counted(plant.strided_copy(), KernelCounters(kernel="k"))
    assert limit(bare) == limit(plant.strided_copy())


def test_sums_and_means_over_kernels() -> None:
    first = sample_counters.kernel(
        duration_s=3e-6, dram_read_bytes=10, issue_fraction=0.2, load_sectors=8, load_requests=1
    )
    second = sample_counters.kernel(
        duration_s=1e-6, dram_read_bytes=30, issue_fraction=0.6, load_sectors=32, load_requests=1
    )
    call = CallCounters((first, second))
    assert (call.dram_read_bytes, call.duration_s) == (40, pytest.approx(4e-6))
    assert call.issue_fraction == pytest.approx(0.3), "weighted with the durations"
    assert call.load_sectors_per_request == 20
    unknown = CallCounters((first, KernelCounters(kernel="k")))
    assert (unknown.dram_read_bytes, unknown.issue_fraction, unknown.stalls) == (None, None, {})
    assert call_counters(None) is None
    assert traffic_ratio(None, sample_counters.counters()) is None
