"""The roofs of a GPU: how long they take, that two calibrations agree, and that none of them is more than the hardware has. And
what limits planted cases, according to these roofs."""

import re
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest
from figures import record, save
from host_speed import host_call_s, slowdown
from parts import part

from kernelviz.bench import Bench
from kernelviz.core import Device, Event, Method, Result, Roof, RoofDone, Timing
from kernelviz.core.request import RunRequest
from kernelviz.hardware.datasheet import datasheet
from kernelviz.measure.session.device_session import DeviceSession
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.issue_rate import roof_share
from kernelviz.metrics.limiter import limiter
from kernelviz.metrics.limiter_evidence import Limiter
from kernelviz.metrics.roof_checks import is_wide
from kernelviz.text.limiter import describe_limiter_reason
from kernelviz.text.roofs import format_roof_name, format_roof_value

pytestmark = [part("timing"), pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(300)]

SHARES_ROOFS = True
"""test_traffic_counters.py, which comes later in the part, uses the roofs that are measured here (the fixture `bench`)."""
AGREE, CAPPED_AGREE, LAUNCHES_AGREE = 0.01, 0.02, 0.10
CAPPED_CLOCK = 0.95
"""A rate at less than this share of the highest clock is that of the power limit. It depends on the temperature, and
on which of two sizes was a little faster: such rates were 1.02, 1.03 and 1.06 % apart in three runs of this test."""
CLOCK_ERROR = 0.003
"""Of the SM clock in a block of 1 ms: counters are stored within 1 us of the stamps, at either end (docs/measuring.md)."""
EMPTY_APART_S = 0.1e-6
"""How far the times of an empty kernel may be apart, unlike those of calls that read memory: an H200 took 0.74 us in the first
three of ten blocks between pauses and 0.66 in the others, in three processes and for each graph and copy of the kernel. Ten
calibrations read 0.656 to 0.741 us (docs/measuring.md)."""
PLANTED = str(Path(__file__).parents[1] / "planted_limits_cuda.py")
STREAMS = {"read", "copy", "write", "read2_write1", "read1_write2"}


@dataclass(frozen=True)
class Calibrated:
    device: Device
    rounds: tuple[dict[str, Roof], dict[str, Roof]]
    seconds: float
    """Of the first."""
    host_s: tuple[dict[str, float], ...]
    """The host's launch times by themselves: before the first calibration, between them, and after the second."""


def _calibration(session: DeviceSession) -> tuple[dict[str, Roof], dict[str, float]]:
    """The roofs, and how many seconds after the beginning each was known."""
    events: list[tuple[float, Event]] = []
    begun = time.monotonic()
    session.calibrate(lambda event: events.append((time.monotonic() - begun, event)), lambda: False)
    found = {e.roof.key: (at, e.roof) for at, e in events if isinstance(e, RoofDone)}
    return {k: roof for k, (_, roof) in found.items()}, {k: at for k, (at, _) in found.items()}


def _host_launches_s(device: Device) -> dict[str, float]:
    """The launch costs on the host, measured directly, within 0.1 s."""
    from kernelviz.measure.roofs.candidate import fastest_quarter
    from kernelviz.measure.roofs.launches import BLOCKS, BLOCKS_A_TIME, HostLaunches

    launches = HostLaunches(device)
    for _ in range(BLOCKS // BLOCKS_A_TIME):
        launches.take()
    return {f"launch {launched.what}": median(fastest_quarter(launched.medians)) for launched in launches.launched}


@pytest.fixture(scope="module")
def calibrated(bench: Bench) -> Calibrated:
    """Two calibrations of this GPU, one after the other: one in this process, one by the worker of the product."""
    from kernelviz.measure.session.device_session import open_session

    session = open_session("cuda:0")
    device = session.device
    host_s = [_host_launches_s(device)]
    begun = time.monotonic()
    first, known_s = _calibration(session)
    seconds = time.monotonic() - begun
    host_s.append(_host_launches_s(device))
    del session
    for _ in bench.follow(bench.calibrate("cuda:0", owner="test"), timeout_s=120):
        pass
    host_s.append(_host_launches_s(device))
    rounds = (first, {roof.key: roof for roof in bench.roofs("cuda:0")})
    record(
        "roofs_twice",
        {
            "device": device.name,
            "seconds": seconds,
            "known_s": known_s,
            "roofs": {k: [_figure(r[k]) for r in rounds if k in r] for k in first},
            "intervals": {k: [(r[k].low, r[k].high) for r in rounds if k in r] for k in first},
            "host_s": {k: [h[k] for h in host_s] for k in host_s[0]},
            "words": {k: f"{format_roof_name(r)}: {format_roof_value(r)}" for k, r in first.items()},
            "how": {k: [r[k].how for r in rounds if k in r] for k in first},
            "clocks_hz": {k: [r[k].clock_hz for r in rounds if k in r] for k in first},
        },
    )
    return Calibrated(device, rounds, seconds, tuple(host_s))


def _figure(roof: Roof) -> float:
    found = roof.bandwidth_bytes_per_s or roof.rate_flop_per_s or roof.time_s
    assert found is not None
    return found


def test_a_calibration_takes_at_most_thirty_seconds(calibrated: Calibrated) -> None:
    """On a host as fast as that of host_speed.py, and longer in proportion on a slower one."""
    assert calibrated.seconds <= 30 * slowdown(host_call_s())


def test_every_kind_of_roof_is_there(calibrated: Calibrated) -> None:
    from kernelviz.measure.roofs.streams import CACHED_SHARES

    roofs = list(calibrated.rounds[0].values())
    l2_bytes = calibrated.device.last_level_cache_bytes or 0
    for name in STREAMS:
        sizes = {
            level: [r.moved_bytes or 0 for r in roofs if (r.name, r.level) == (name, level)] for level in ("dram", "l2")
        }
        assert len(sizes["dram"]) >= 3
        assert min(sizes["dram"]) >= 1.99 * l2_bytes
        assert len(sizes["l2"]) == len(CACHED_SHARES)
        assert max(sizes["l2"]) <= l2_bytes / 2
    assert {r.precision for r in roofs if r.name == "matmul"} >= {"fp32", "tf32", "fp16", "bf16", "fp64"}
    assert {r.precision for r in roofs if r.name == "fma"} == {"fp32", "fp64", "fp16", "bf16"}
    if calibrated.device.compute_capability == (9, 0):
        assert {r.precision for r in roofs if r.name == "mma"} == {"bf16", "fp16", "tf32", "fp8"}
    assert {r.what for r in roofs if r.name == "launch"} == {
        "empty_kernel", "torch_call", "kernel_launch", "graph_launch",
    }  # fmt: skip
    assert {"h2d", "d2h"} <= {r.name for r in roofs}
    assert all(r.measured_at and r.how and r.timer for r in roofs)
    assert all(r.clock_hz for r in roofs if r.level or r.rate_flop_per_s)


def test_two_calibrations_agree(calibrated: Calibrated) -> None:
    first, second = calibrated.rounds
    assert first.keys() == second.keys()
    apart = {k: _apart(first[k], second[k]) for k in first}
    record("roofs_apart", dict(sorted(apart.items(), key=lambda item: -abs(item[1]))))
    highest_hz = max(r.clock_hz for r in first.values() if r.clock_hz)
    allowed = {k: _agrees(r, highest_hz, _drift(k, calibrated.host_s)) for k, r in first.items()}
    empty = {k: EMPTY_APART_S / r.time_s for k, r in first.items() if r.timer != "host" and r.time_s is not None}
    wide = {k for k in first if is_wide(first[k]) or is_wide(second[k])}  # the product uses none of them
    assert {k: d for k, d in apart.items() if abs(d) > max(allowed[k], empty.get(k, 0.0)) and k not in wide} == {}
    assert {first[k].timer for k in wide} <= {"host"}


def _agrees(roof: Roof, highest_hz: float, drift: float) -> float:
    """By how much the second may differ, as a fraction; `drift`: by how much the speed of the host did."""
    if roof.timer == "host":
        return drift + LAUNCHES_AGREE
    capped = roof.rate_flop_per_s is not None and (roof.clock_hz or highest_hz) < CAPPED_CLOCK * highest_hz
    return CAPPED_AGREE if capped else AGREE


def _drift(key: str, host_s: tuple[dict[str, float], ...]) -> float:
    """By what fraction the host's speed changed meanwhile: on a shared host (2026-11-25), a launch took 4.1 and then 6.4 us."""
    times_s = [h[key] for h in host_s if key in h]
    return max(times_s) / min(times_s) - 1 if times_s else 0.0


def _apart(first: Roof, second: Roof) -> float:
    """The change from the first to the second, as a fraction.

    Of arithmetic rates it is the smaller one of the changes of the rate and of the rate per clock cycle, because the clock under
    the power cap differs between two calibrations, and each roof states it (8192^3 int8 on an H100: 1,796 and 1,829 MHz).
    """
    changes = [_figure(second) / _figure(first) - 1]
    if first.rate_flop_per_s is not None and first.clock_hz and second.clock_hz:
        changes.append((_figure(second) / second.clock_hz) / (_figure(first) / first.clock_hz) - 1)
    return min(changes, key=abs)


def test_memory_is_read_as_fast_as_this_gpu_can(calibrated: Calibrated) -> None:
    if calibrated.device.name != "NVIDIA H200":
        pytest.skip(f"the bounds are those of an H200, this is {calibrated.device.name}")
    for roofs in calibrated.rounds:
        read = [r for r in roofs.values() if (r.name, r.level) == ("read", "dram")]
        assert all(4.3e12 < _figure(r) < 4.8e12 for r in read)


def test_the_l2_is_faster_than_memory(calibrated: Calibrated) -> None:
    for roofs in calibrated.rounds:
        for name in STREAMS:
            best = {
                level: max(_figure(r) for r in roofs.values() if (r.name, r.level) == (name, level))
                for level in ("dram", "l2")
            }
            assert best["l2"] > best["dram"], name


def test_no_rate_is_more_than_the_data_sheet_at_its_clock(calibrated: Calibrated) -> None:
    sheet = datasheet(calibrated.device.name)
    if sheet is None:
        pytest.skip(f"no data sheet of {calibrated.device.name}")
    for roofs in calibrated.rounds:
        for roof in roofs.values():
            peak = sheet.peaks.get(roof.precision or "")
            # A sheet's fp16 and bf16 are the tensor cores', which no vector unit reaches.
            if roof.rate_flop_per_s is not None and peak is not None:
                assert _figure(roof) <= (peak.at(roof.clock_hz) or 0.0), roof.key
            if roof.level == "dram" and roof.name == "read":
                assert _figure(roof) <= sheet.bandwidth_bytes_per_s


def test_multiply_adds_come_near_the_units_peak(calibrated: Calibrated) -> None:
    """One kernel that is held back by something else than its unit would set too low a roof."""
    sheet = datasheet(calibrated.device.name)
    if sheet is None:
        pytest.skip(f"no data sheet of {calibrated.device.name}")
    for roofs in calibrated.rounds:
        fp32 = roofs["fma fp32 vector"]
        assert _figure(fp32) > 0.9 * (sheet.peaks["fp32"].at(fp32.clock_hz) or float("inf"))


def test_loops_of_tensor_core_instructions_come_near_the_issue_rate(calibrated: Calibrated) -> None:
    """Between 0.85 and 1 at the clock that was measured beside them, and no product has a larger share: it issues the same
    instructions and waits for memory besides."""
    shares = [
        {key: share for key, roof in roofs.items() if (share := roof_share(roof, calibrated.device)) is not None}
        for roofs in calibrated.rounds
    ]
    record(
        "issue_rate_shares",
        {
            "shares": shares,
            "clocks_hz": {k: [r[k].clock_hz for r in calibrated.rounds if k in r] for k in shares[0]},
            "how": {k: r.how for k, r in calibrated.rounds[0].items() if r.name == "mma"},
        },
    )
    for of_round in shares:
        loops = {key: share for key, share in of_round.items() if key.startswith("mma ")}
        if not loops:
            pytest.skip(f"no loop of tensor-core instructions is known for {calibrated.device.name}")
        assert not {key: share for key, share in loops.items() if not 0.85 <= share <= 1.0 + CLOCK_ERROR}
        for key, share in loops.items():
            assert of_round.get(key.replace("mma", "matmul"), 0.0) <= share + CLOCK_ERROR, key


def measured(
    bench: Bench, op: str, sizes: dict[str, str], variants: tuple[str, ...]
) -> tuple[dict[str, Result], Device]:
    """By variant, and the device as the worker knows it: the size of its L2 is not known without CUDA."""
    plugins = (PLANTED,) if op == "copy" else ()
    plan = bench.plan(RunRequest(op=op, sizes=sizes, variants=variants, device="cuda:0", plugins=plugins))
    run_id = bench.run(plan, Method(budget_s=0.2, figures=("cold", "warm")))
    for _ in bench.follow(run_id, timeout_s=300):
        pass
    run = bench.load(run_id)
    assert len(run.environment.roofs) == len(bench.roofs("cuda:0"))
    save(run, f"limiter-{op}-{'-'.join(sizes.values()).replace('^', '')}.json")
    assert all(isinstance(r.outcome, Timing) for r in run.results), [r.outcome for r in run.results]
    return {r.variant: r for r in run.results}, run.environment.device


def line(found: Limiter) -> str:
    """The limiter with its evidence."""
    return f"{found.kind}: {describe_limiter_reason(found)}"


@pytest.mark.usefixtures("calibrated")
def test_the_limiter_names_what_limits_planted_cases(bench: Bench) -> None:
    roofs = bench.roofs("cuda:0")
    empty, device = measured(bench, "copy", {"n": "32"}, ("cuda_scalar",))
    large, device = measured(bench, "copy", {"n": "2^26"}, ("triton_block", "strided", "low_occupancy"))
    small, device = measured(bench, "copy", {"n": "3145728"}, ("triton_block", "strided", "low_occupancy"))
    chain, device = measured(bench, "rmsnorm", {"m": "32768", "n": "4096"}, ("composite_eager", "triton_block_per_row"))
    naive, device = measured(bench, "matmul", {"m": "2048", "n": "2048", "k": "2048"}, ("torch_eager", "cuda_naive"))
    expected: dict[str, tuple[Result, Headline, str, str]] = {
        "empty kernel": (empty["cuda_scalar"], "cold", "launch", "× an empty kernel's"),
        "strided copy": (large["strided"], "cold", "bandwidth", "inferred"),
        "strided copy in the L2's reach": (small["strided"], "cold", "bandwidth", "inferred"),
        "naive matmul": (naive["cuda_naive"], "cold", "unclear", "reads that repeat"),
        "big copy": (large["triton_block"], "cold", "bandwidth", "of the measured copy"),
        "L2-sized copy": (small["triton_block"], "warm", "L2", "what memory delivers"),
        "fused chain": (chain["triton_block_per_row"], "cold", "bandwidth", "of the measured copy"),
        "unfused chain": (chain["composite_eager"], "cold", "bandwidth", "kernels pass results through memory"),
        "low occupancy": (large["low_occupancy"], "cold", "latency", "occupancy 6 %"),
        "best matmul": (naive["torch_eager"], "cold", "compute", "of the measured matmul"),
    }
    found = {name: limiter(case, device, roofs, headline) for name, (case, headline, *_) in expected.items()}
    facts = {
        f"{r.variant} {r.problem.sizes}": {
            "cold_s": r.timing.device_cold_s.estimate,
            "warm_s": r.timing.device_warm_s.estimate if r.timing.device_warm_s else None,
            "kernels": [(k.name[:40], k.grid, k.block, k.registers_per_thread, k.duration_s) for k in r.kernels],
            "cold": line(limiter(r, device, roofs, "cold")),
            "warm": line(limiter(r, device, roofs, "warm")),
        }
        for r in (*empty.values(), *large.values(), *small.values(), *chain.values(), *naive.values())
        if r.timing and r.timing.device_cold_s
    }
    record("limiter", {"found": {name: line(f) for name, f in found.items()}, "facts": facts})
    for name, (_, _, word, because) in expected.items():
        assert (name, found[name].kind) == (name, word), line(found[name])
        assert re.search(because, str(describe_limiter_reason(found[name]))), line(found[name])
