"""The product as an instrument on a GPU: live mode through the real server, the monitor."""

import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from figures import known, record
from parts import part
from servers import ROOT, served
from stream_client import StreamClient

from kernelviz.bench import Bench, current
from kernelviz.core.problem import Method
from kernelviz.core.request import RunRequest
from kernelviz.hardware.discovery import discover
from kernelviz.hardware.monitor import Monitor
from kernelviz.store import Store

pytestmark = [part("instrument"), pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(900)]

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
        sizes = (2**12, 2**16, 2**20, 2**24)
        first = {n: changed(n)[0] for n in sizes}
        again, pages = {}, {}
        for n in sizes:
            again[n], pages[n] = changed(n)
        page.close()
        store.close()
    record("live_mode", {"first_s": first, "again_s": again, "page_s": pages})
    assert statistics.median(again.values()) <= 0.3
    assert max(again.values()) <= 0.4


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


def test_an_open_page_and_the_monitor_do_not_move_the_times(bench: Bench) -> None:
    """The page at 2 Hz and a sample of the monitor once a second in this process, while the worker measures in its own: with both
    and without, alternating."""
    from streamlit.testing.v1 import AppTest

    import kernelviz.ui

    assert bench is current(), "the page uses another bench"
    plan = bench.plan(
        RunRequest(op="add", sizes={"n": "2^12,2^18,2^20,2^24"}, variants=("torch_eager",), device="cuda:0")
    )
    done = threading.Event()
    reruns = samples = 0
    busy_s = 0.0
    failures: list[object] = []

    def rerun() -> None:
        nonlocal reruns
        app = AppTest.from_file(str(Path(kernelviz.ui.__file__).parent / "server" / "main.py"), default_timeout=60)
        while not done.is_set():
            app.run()
            failures.extend(app.exception)
            reruns += 1
            done.wait(0.5)

    def times() -> dict[str, float]:
        run_id = bench.run(plan, Method())
        for _ in bench.follow(run_id, timeout_s=120):
            pass
        run = bench.load(run_id)
        return {r.problem.key: known(r.timing.device_cold_s if r.timing else None).estimate for r in run.results}

    times()
    quiet, busy = [], []
    for _ in range(6):
        quiet.append(times())
        done.clear()
        page = threading.Thread(target=rerun)
        page.start()
        monitor = Monitor(discover(), lambda _: True)
        monitor.look("cuda:0")
        begun_s = time.monotonic()
        try:
            busy.append(times())
            samples += len(monitor.look("cuda:0"))
        finally:  # else the page would be drawn beside all later tests
            busy_s += time.monotonic() - begun_s
            monitor.close()
            done.set()
            page.join()
    shifts = {
        key: statistics.median(t[key] for t in busy) / statistics.median(t[key] for t in quiet) - 1 for key in quiet[0]
    }
    found = {"shifts": shifts, "reruns": reruns, "samples": samples, "busy_s": busy_s}
    record("page_and_monitor_beside_a_measurement", found)
    assert len(shifts) == 4
    assert failures == []
    assert reruns >= max(6, 0.5 * busy_s)
    assert samples >= max(6, 0.8 * busy_s)
    assert all(abs(s) < 0.005 for s in shifts.values()), shifts
