"""Compilation ahead on a GPU: the worker finds every kernel, the first result comes soon, and no time moves."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from statistics import median

import psutil
import pytest
from figures import record
from host_speed import host_call_s, slowdown
from parts import part
from this_checkout import import_this_checkout

from kernelviz.bench import Bench
from kernelviz.core import CaseDone, CompiledAhead, Event, Method, Problem, RunEnded
from kernelviz.core.backends import BACKENDS
from kernelviz.core.request import RunRequest
from kernelviz.hardware.discovery import discover
from kernelviz.measure.compile_ahead.messages import UpcomingCases
from kernelviz.measure.compile_ahead.processes import CompilerProcesses, compile_processes
from kernelviz.measure.compile_ahead.selection import cases_to_compile
from kernelviz.ops import catalogue
from kernelviz.store import Store

pytestmark = [pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(600)]

TESTS = Path(__file__).parents[1]
LARGE_SPACE = str(TESTS / "planted_matmul_space.py")
SIZES: dict[str, dict[str, int]] = {
    "add": {"n": 2**20},
    "softmax": {"m": 1024, "n": 4096},
    "matmul": {"m": 1024, "n": 1024, "k": 1024},
    "cumsum": {"n": 2**20},
    "rmsnorm": {"m": 1024, "n": 4096},
    "transpose": {"m": 1024, "n": 1024},
    "topk": {"m": 64, "n": 1024, "k": 8},
}
FIRST_RESULT_S = 0.7
"""For each variant of the first problem, torch_eager too, because all are bound before one is measured: of a cold run on an H200,
on a host as fast as that of host_speed.py. Eight variants took 5.2 to 5.6 s. 28 s were seen when all was compiled in line."""


def empty_caches(folder: Path, patched: pytest.MonkeyPatch) -> None:
    patched.setenv("TRITON_CACHE_DIR", str(folder / "triton"))
    patched.setenv("KERNELVIZ_CACHE", str(folder / "nvrtc"))
    import_this_checkout(patched)


def of_a_gpu(process: psutil.Process) -> list[str]:
    """What a process has open of a GPU: devices, and the CUDA driver."""
    folder = Path("/proc") / str(process.pid)
    try:
        opened = [str(fd.readlink()) for fd in (folder / "fd").iterdir()]
        driver = ["libcuda.so.1"] if "/libcuda.so" in (folder / "maps").read_text() else []
    except OSError:  # it has ended
        return []
    return [name for name in opened if name.startswith("/dev/nvidia")] + driver


@part("smoke")
def test_a_process_with_the_gpu_finds_every_kernel_and_the_compilers_never_touch_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from kernelviz.measure.compile_ahead.device_facts import facts_of

    empty_caches(tmp_path, monkeypatch)
    compilers = CompilerProcesses(compile_processes())
    try:
        compilers.begin(facts_of(torch.device("cuda:0")), ())
        ops = catalogue()
        work = cases_to_compile(
            ops,
            [
                UpcomingCases(
                    problem=ops[name].problem(sizes, ops[name].dtypes[0]),
                    variants=tuple(
                        v.name for v in ops[name].variants if BACKENDS[v.backend].compiler and "forward" in v.directions
                    ),
                )
                for name, sizes in SIZES.items()
            ],
        )
        begun = time.monotonic()
        compilers.expect("test", work)
        while compilers.progress()[0] < len(work):
            assert time.monotonic() - begun < 120
            compilers.let_run(0.1)
            dispatcher = psutil.Process(compilers.pid)
            assert not [name for p in (dispatcher, *dispatcher.children(recursive=True)) for name in of_a_gpu(p)]
    finally:
        compilers.close()
    compiled_s = time.monotonic() - begun
    cases = [(p.op, variant, p.sizes, p.dtype) for p, variant, _ in work]
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("called_on_gpu.py"), tmp_path / "triton", tmp_path / "nvrtc"],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
    )
    figures = {"cases": len(work), "seconds": compiled_s, "called_s": time.monotonic() - begun - compiled_s}
    record("compile_ahead_of_the_catalogue", figures)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = dict(zip((f"{op} {name}" for op, name, _, _ in cases), json.loads(done.stdout), strict=True))
    refused = [case for case, kernels in answers.items() if kernels is None]
    assert len(refused) < len(answers) / 4, "few variants refuse these sizes"
    assert {case: kernels for case, kernels in answers.items() if kernels} == {}


@part("product")
def test_the_first_result_of_a_cold_run_comes_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Softmax at two sizes by all variants of Triton and CUDA C++, with empty caches, from the click on Run."""
    names = tuple(v.name for v in catalogue()["softmax"].variants if BACKENDS[v.backend].compiler)
    seconds: dict[str, tuple[float, float]] = {}
    for way, ahead in (("in line", False), ("ahead", True)):
        folder = tmp_path / way
        folder.mkdir()
        empty_caches(folder, monkeypatch)
        bench = Bench(Store.open(folder), discover(), lock_directory=folder)
        bench.prepare("cuda:0")  # as the page does when it is opened
        try:
            while bench.health()["devices"]["cuda:0"]["state"] != "ready":  # type: ignore[index]
                time.sleep(0.05)
            plan = bench.plan(
                RunRequest(
                    op="softmax",
                    sizes={"m": "1024", "n": "1000,5120"},
                    variants=("torch_eager", *names),
                    device="cuda:0",
                )
            )
            begun, first, events = time.monotonic(), 0.0, list[Event]()
            for _, event in bench.follow(bench.run(plan, Method(budget_s=0.02, ahead=ahead)), timeout_s=300):
                events.append(event)
                if isinstance(event, CaseDone):
                    first = first or time.monotonic() - begun
                if isinstance(event, RunEnded):
                    break
            seconds[way] = first, time.monotonic() - begun
            assert any(isinstance(e, CompiledAhead) for e in events) == ahead
        finally:
            bench.close()
    host_s = host_call_s()
    found = {"variants": len(names), "seconds": seconds, "host_call_s": host_s}
    record("cold_run_with_and_without_compilation_ahead", found)
    assert seconds["ahead"][0] <= FIRST_RESULT_S * (1 + len(names)) * slowdown(host_s), seconds
    assert seconds["ahead"][1] < seconds["in line"][1], seconds


@part("instrument")
def test_times_do_not_move_while_hundreds_of_kernels_wait_to_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same cases are bound, checked and measured anew in turns, with and without processes that compile in between."""
    import_this_checkout(monkeypatch)
    from kernelviz.measure.session.device_session import DeviceSession, open_session

    base = open_session("cuda:0", (LARGE_SPACE,))
    compilers = CompilerProcesses(compile_processes())
    variant = base.ops["matmul"].variant_named("triton_space")
    configurations = (dict(zip(variant.space, values, strict=True)) for values in product(*variant.space.values()))
    names = tuple(variant.named(configuration).name for configuration in configurations)
    matmul = UpcomingCases(
        problem=base.ops["matmul"].problem({"m": 4096, "n": 4096, "k": 4096}, "bf16"), variants=names
    )
    times: dict[str, dict[bool, list[float]]] = {}
    begun_s = time.monotonic()
    try:
        base.compile_with(compilers, (LARGE_SPACE,))
        base.compile_ahead("test", (matmul,))
        while not compilers.progress()[0]:  # until the processes have imported what they need
            assert time.monotonic() - begun_s < 120
            compilers.let_run(0.1)
        at_first = compilers.progress()[0]
        for ahead in (False, True) * 4:
            session = DeviceSession(base.device, base.ops, base.timer)
            session.compile_with(compilers, (LARGE_SPACE,))
            session.compile_ahead("test", (matmul,))
            for n in (2**12, 2**20):
                if ahead:
                    compilers.let_run(0.2)  # binding two variants takes less than most kernels take to compile
                problem = Problem(op="add", sizes={"n": n}, dtype="fp32")
                for name in ("torch_eager", "triton_block"):
                    done: list[Event] = []
                    method = Method(budget_s=0.2, figures=("cold", "call"), ahead=ahead)
                    session.measure(problem, (name,), name, method, done.append, lambda: False)
                    for event in done:
                        timing = event.result.timing if isinstance(event, CaseDone) else None
                        for figure in ("device_cold_s", "call_eager_s"):
                            value = getattr(timing, figure, None)
                            if value is not None:
                                by_way = times.setdefault(f"{name} {n} {figure}", {False: [], True: []})
                                by_way[ahead].append(value.estimate)
        assert compilers.progress()[0] > at_first
    finally:
        compilers.close()
    shifts = {key: median(by_way[True]) / median(by_way[False]) - 1 for key, by_way in times.items()}
    record("times_beside_compilation_ahead", {"shifts": shifts, "compiled": compilers.progress()[0], "seconds": times})
    assert len(shifts) == 8, shifts
    for key, shift in shifts.items():
        # The host's time of a call differs by more than 5 % from one session to the next one, also where nothing is compiled.
        plain = times[key][False]
        limit = 0.01 if "cold" in key else max(0.05, max(plain) / min(plain) - 1)
        assert abs(shift) <= limit, (key, shifts, times)
