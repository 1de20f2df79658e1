"""The product as an instrument on a GPU: live mode through the real server, what limits planted cases, the monitor."""

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from figures import record, save
from parts import part
from servers import ROOT, served
from stream_client import StreamClient

from kernelviz.bench import Bench
from kernelviz.core.problem import Method
from kernelviz.core.request import RunRequest
from kernelviz.core.result import Result, Timing
from kernelviz.core.run import Device
from kernelviz.hardware.discovery import discover
from kernelviz.hardware.monitor import Monitor
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.limiter import Limiter, limiter
from kernelviz.store import Store
from kernelviz.text.limiter import describe_limiter_reason

pytestmark = [part("instrument"), pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(900)]

PLANTED = str(Path(__file__).parents[1] / "planted_limits_cuda.py")
SIX = "torch_eager,torch_compile,triton_block,triton_adaptive,cuda_scalar,cuda_vec16"
ASKED = len(SIX.split(","))


def test_a_changed_size_is_stored_at_once_through_the_real_server(tmp_path: Path) -> None:
    """Six compiled variants of add: sizes that were measured before, and sizes that are new."""
    with served(ROOT / "app.py", tmp_path) as url:
        page = StreamClient(url)
        page.open(op="add", variants=SIX, n="65536", device="cuda:0")
        store = Store.open(tmp_path / "home")

        def changed(n: int) -> tuple[float, float]:
            """Seconds from the change to six stored results, and to the page's last message."""
            before = {row.id for row in store.runs.rows(5)}
            begun = time.perf_counter()
            with ThreadPoolExecutor(1) as pool:
                rerun = pool.submit(page.set, "size_add_n", str(n))
                while (
                    row := next((r for r in store.runs.rows(5) if r.id not in before), None)
                ) is None or row.done < ASKED:
                    assert time.perf_counter() - begun < 60, row
                    time.sleep(0.003)
                stored_s = time.perf_counter() - begun
                assert row.failed == 0
                return stored_s, rerun.result()

        page.set("live_mode", True)
        sizes = (2**12, 2**16, 2**18, 2**20, 2**22, 2**24)
        first = {n: changed(n)[0] for n in sizes}
        again, pages = {}, {}
        for n in sizes:
            again[n], pages[n] = changed(n)
        page.close()
        store.close()
    record("live_mode", {"first_s": first, "again_s": again, "page_s": pages})
    assert statistics.median(again.values()) <= 0.3
    assert max(again.values()) <= 0.4


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path_factory.mktemp("instrument")), discover())
    yield made
    made.close()


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


@pytest.fixture(scope="module")
def calibrated_s(bench: Bench) -> float:
    """Calibrate through the worker; the seconds that it took."""
    begun = time.monotonic()
    for _ in bench.follow(bench.calibrate("cuda:0", owner="test"), timeout_s=120):
        pass
    return time.monotonic() - begun


def test_a_calibration_measures_every_roof(bench: Bench, calibrated_s: float) -> None:
    roofs = bench.roofs("cuda:0")
    figures = {r.key: r.bandwidth_bytes_per_s or r.rate_flop_per_s or r.time_s for r in roofs}
    record("roofs", {"seconds": calibrated_s, **figures})
    assert {r.name for r in roofs} >= {"read", "copy", "write", "read2_write1", "read1_write2", "matmul"}
    assert calibrated_s < 30


@pytest.mark.usefixtures("calibrated_s")
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


LOAD = """
import time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
host = torch.empty(2**28, dtype=torch.uint8, pin_memory=True)
there = torch.empty_like(host, device="cuda")
up, down = torch.cuda.Stream(), torch.cuda.Stream()
print("begun", flush=True)
end = time.monotonic() + 8
while time.monotonic() < end:
    for _ in range(20):
        a @ a
    with torch.cuda.stream(up):
        there.copy_(host, non_blocking=True)
    with torch.cuda.stream(down):
        host.copy_(there, non_blocking=True)
    torch.cuda.synchronize()
"""


def test_the_monitor_moves_with_a_load(bench: Bench) -> None:
    machine = bench.machine
    watched = machine.watch("cuda:0")
    idle = [next(watched) for _ in range(4)][1:]
    load = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True)
    assert load.stdout is not None
    load.stdout.readline()
    busy = [next(watched) for _ in range(6)][2:]
    load.kill()
    load.wait()

    def middle(name: str) -> tuple[float | None, float | None]:
        two = []
        for samples in (idle, busy):
            known = [v for s in samples if (v := getattr(s, name)) is not None]
            two.append(statistics.median(known) if known else None)
        return two[0], two[1]

    names = (
        "busy_fraction",
        "power_w",
        "to_device_bytes_per_s",
        "from_device_bytes_per_s",
        "used_bytes",
        "sm_clock_hz",
    )
    moved = {name: middle(name) for name in names}
    record("monitor", moved)
    for name, factor in {
        "power_w": 2.0,
        "to_device_bytes_per_s": 10.0,
        "from_device_bytes_per_s": 10.0,
    }.items():
        before, after = moved[name]
        assert before is not None, name
        assert after is not None, name
        assert after > factor * max(before, 1.0), (name, before, after)
    # A worker of an earlier test may hold any amount of memory, so the load adds to it: two buffers of 2^28 bytes and a matrix.
    used_before, used_after = moved["used_bytes"]
    assert used_before is not None
    assert used_after is not None
    assert used_after - used_before >= 2**29, (used_before, used_after)
    assert moved["busy_fraction"][1] is not None
    assert moved["busy_fraction"][1] > 0.9


def test_the_monitor_does_not_move_the_times(bench: Bench) -> None:
    """Sampling once a second in this process while the worker measures: with and without, alternating."""
    plan = bench.plan(
        RunRequest(op="add", sizes={"n": "2^12,2^18,2^20,2^24"}, variants=("torch_eager",), device="cuda:0")
    )

    def times() -> dict[str, float]:
        run_id = bench.run(plan, Method())
        for _ in bench.follow(run_id, timeout_s=120):
            pass
        return {
            r.problem.key: r.timing.device_cold_s.estimate
            for r in bench.load(run_id).results
            if r.timing and r.timing.device_cold_s
        }

    times()
    quiet, sampled, taken = [], [], 0
    for _ in range(6):
        quiet.append(times())
        monitor = Monitor(discover(), lambda _: True)
        monitor.look("cuda:0")
        sampled.append(times())
        taken += len(monitor.look("cuda:0"))
        monitor.close()
    shifts = {
        key: statistics.median(t[key] for t in sampled) / statistics.median(t[key] for t in quiet) - 1
        for key in quiet[0]
    }
    record("monitor_beside_a_measurement", {"shifts": shifts, "samples": taken})
    assert taken >= 6
    assert all(abs(s) < 0.005 for s in shifts.values()), shifts
