"""The timing method: against the figures of docs/measuring.md (H200), from fresh processes, and warm."""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from figures import known, record
from host_speed import host_call_s, slowdown
from parts import part

from kernelviz.core import CaseDone, Event, Method, Problem, Result, Timing
from kernelviz.measure.session.device_session import DeviceSession
from kernelviz.measure.timing.cuda import CudaTimer
from kernelviz.ops import catalogue

pytestmark = [part("timing"), pytest.mark.gpu, pytest.mark.xdist_group("gpu")]

# Read-flush column of docs/measuring.md, seconds: CUPTI stamps of a graph, H200.
ADD = {2**12: 1.82e-6, 2**18: 2.22e-6, 2**20: 4.36e-6, 2**24: 44.6e-6, 2**26: 181.4e-6}
MATMUL = {512: 3.84e-6, 2048: 24.4e-6}


def add(n: int) -> Problem:
    return Problem(op="add", sizes={"n": n}, dtype="fp32")


def matmul(n: int) -> Problem:
    return Problem(op="matmul", sizes={"m": n, "n": n, "k": n}, dtype="bf16")


@pytest.fixture(scope="module")
def session() -> DeviceSession:
    from kernelviz.measure.session.device_session import open_session

    return open_session("cuda:0")


def cuda_timer(session: DeviceSession) -> CudaTimer:
    assert isinstance(session.timer, CudaTimer)
    return session.timer


def measure(
    session: DeviceSession, problem: Problem, variants: tuple[str, ...] = ("torch_eager",), budget_s: float = 1.0
) -> dict[str, Result]:
    events: list[Event] = []
    session.measure(problem, variants, variants[0], Method(budget_s=budget_s), events.append, lambda: False)
    return {e.result.variant: e.result for e in events if isinstance(e, CaseDone)}


def cold_s(result: Result) -> float:
    assert isinstance(result.outcome, Timing), result.outcome
    assert result.outcome.device_cold_s is not None
    return known(result.outcome.device_cold_s).estimate


def close(found: float, expected: float) -> bool:
    """The issue's tolerance: 3 % from 20 us on, 0.6 us below."""
    return abs(found - expected) <= (0.03 * expected if expected >= 20e-6 else 0.6e-6)


def test_eager_calls_agree_with_the_published_column(session: DeviceSession) -> None:
    if session.device.name != "NVIDIA H200":
        pytest.skip(f"the published times are those of an H200, this is {session.device.name}")
    found = {f"add n={n}": (cold_s(measure(session, add(n))["torch_eager"]), e) for n, e in ADD.items()}
    found |= {f"matmul bf16 {n}": (cold_s(measure(session, matmul(n))["torch_eager"]), e) for n, e in MATMUL.items()}
    record("agreement", {k: {"measured_s": f, "expected_s": e, "ratio": f / e} for k, (f, e) in found.items()})
    assert not {k: v for k, v in found.items() if not close(*v)}


FRESH = """
import json, sys
sys.path.insert(0, "tests/gpu")
from test_method import add, cold_s, fresh_problems, measure
import torch
from kernelviz.measure.session.device_session import open_session
input()  # the others import meanwhile
session = open_session("cuda:0")
problems = fresh_problems(session.device.memory_bytes)
found = {p.key: cold_s(measure(session, p, budget_s=0.5)["torch_eager"]) for p in problems}
# While a correction for tracing was wrong, every second process measured 1.77 instead of 1.45 us here.
found["add n=16384 by cuda_vec16"] = cold_s(measure(session, add(2**14), ("cuda_vec16",))["cuda_vec16"])
print(json.dumps(found))
"""


def fresh_problems(memory_bytes: int) -> list[Problem]:
    """On an H200 about 1.4, 1.45, 2, 4, 3.6, 24, 182 us and 11 ms. 2^31 replaces 2^32 in half the memory."""
    op = catalogue()["add"]
    longest = next(p for p in map(add, (2**32, 2**31, 2**30, 2**29)) if op.needed_bytes(p) < memory_bytes / 2)
    return [add(2**12), add(2**14), add(2**18), add(2**20), matmul(512), matmul(2048), add(2**26), longest]


def test_five_fresh_processes_agree() -> None:
    """With half of the usual time for a case. All import at once, which takes seconds; each begins to use the GPU after the one
    before has ended."""
    command = [sys.executable, "-c", FRESH]
    pipe = subprocess.PIPE
    fresh = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(5)]
    runs = []
    try:
        for process in fresh:
            out, errors = process.communicate("\n")
            assert process.returncode == 0, errors[-2000:]
            runs.append(json.loads(out.strip().splitlines()[-1]))
    finally:
        for process in fresh:
            process.kill()
    half_ranges = {
        case: (max(r[case] for r in runs) - min(r[case] for r in runs)) / 2 / statistics.median(r[case] for r in runs)
        for case in runs[0]
    }
    record("fresh_processes", {"seconds": runs, "half_range": half_ranges})
    allowed = {case: 0.01 if statistics.median(r[case] for r in runs) < 3e-6 else 0.005 for case in half_ranges}
    assert not {case: h for case, h in half_ranges.items() if h > allowed[case]}


def test_a_warm_point_takes_fifteen_milliseconds_and_its_calls(session: DeviceSession) -> None:
    """Fifteen on a host as fast as that of host_speed.py, beside the calls' own time. A slower one may take longer in proportion
    to its time for a call of torch.add, and a tenth more, because a point consists of other calls too (H200: 19.0 ms in all
    where torch.add took 7.6 us, 21.7 where it took 6.5)."""
    host_s = host_call_s()
    slow = slowdown(host_s)
    point_s = 0.015 * (1.1 * slow if slow > 1 else 1.0)
    times: dict[int, float] = {}
    allowed: dict[int, float] = {}
    for n in (2**12, 2**18, 2**20, 2**24):
        measure(session, add(n))
        taken = []
        timing: Timing | None = None
        for _ in range(7):
            time.sleep(0.25)  # as after a person's move of a slider: the burst window is empty again
            begun = time.perf_counter()
            timing = measure(session, add(n), budget_s=0.001)["torch_eager"].timing
            taken.append(time.perf_counter() - begun)
        times[n] = statistics.median(taken)
        assert timing is not None
        figure = known(timing.device_cold_s)
        calls_s = 1.1 * len(figure.samples or ()) * (figure.estimate + cuda_timer(session)._flush_s)
        allowed[n] = point_s + calls_s
    found = {f"add n={n}": {"took_s": t, "allowed_s": allowed[n], "host_call_s": host_s} for n, t in times.items()}
    record("warm_point", found)
    assert not {n: t for n, t in times.items() if t > allowed[n]}


def test_compile_is_really_compiled_over_ten_sizes(session: DeviceSession) -> None:
    """More than torch.compile keeps of one function by default (`recompile_limit`: 8)."""
    names = {}
    for exponent in range(8, 27, 2):
        result = measure(session, add(2**exponent), ("torch_eager", "torch_compile"), budget_s=0.02)["torch_compile"]
        assert isinstance(result.outcome, Timing), result.outcome
        names[exponent] = [k.name for k in result.kernels]
    record("compiled_kernels", names)
    assert len(names) == 10
    assert all(len(n) == 1 and n[0].startswith("triton_") for n in names.values())


def test_each_flush_draws_a_new_order_of_blocks(session: DeviceSession) -> None:
    """A grid that fits on the device leaves the order in which the next grid's blocks go to SMs; the flush must not fit."""
    import torch

    from kernelviz.ops.kernels import nvrtc

    kernel = nvrtc.kernel(Path(__file__).parent / "block_sm.cu", "block_sm")
    tools = cuda_timer(session).instruments
    sms = torch.empty(2 * tools.multiprocessors, dtype=torch.int32, device="cuda")

    def order() -> tuple[int, ...]:
        nvrtc.launch(kernel, sms.numel(), 128, sms.data_ptr())
        return tuple(sms.tolist())

    kept = {order() for _ in range(24)}
    drawn = set()
    for _ in range(24):
        tools.flush()
        drawn.add(order())
    record("orders_of_blocks", {"kept": len(kept), "drawn": len(drawn)})
    assert len(kept) < len(drawn)
    assert len(drawn) >= 4


def test_stamps_reject_a_call_that_is_not_there(session: DeviceSession) -> None:
    from kernelviz.measure.timing.timer import BoundLaunch
    from kernelviz.measure.timing.trace import TraceError

    with pytest.raises(TraceError, match="CachedOutput"):
        session.timer.prepare(BoundLaunch(lambda: next(iter(session._problems.values())).inputs[0]))
