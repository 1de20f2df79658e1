"""Compilation ahead: what compiler processes leave in the caches on disk is what a worker looks for, and they touch no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from kernelviz.core import CompiledAhead, Problem, Tuned
from kernelviz.measure.compile_ahead.messages import UpcomingCases
from kernelviz.measure.compile_ahead.processes import CompilerProcesses, Work
from kernelviz.measure.compile_ahead.selection import cases_to_compile
from kernelviz.ops import catalogue, with_plugins
from tests.sample_gpu_facts import H200

pytestmark = pytest.mark.xdist_group("compile-ahead")
ROOT = Path(__file__).parents[2]
PLANTED = str(ROOT / "tests" / "planted_compiling.py")
MOST_S = 120.0

Case = tuple[str, str, dict[str, int], str]
CASES: tuple[Case, ...] = (
    ("softmax", "triton_online", {"m": 64, "n": 1000}, "bf16"),
    ("softmax", "triton_online", {"m": 1, "n": 4096}, "fp32"),
    ("matmul", "triton_grouped", {"m": 256, "n": 512, "k": 64}, "bf16"),
    ("matmul", "triton_warp_specialised", {"m": 250, "n": 512, "k": 64}, "bf16"),
    ("matmul", "gluon_warp_specialised", {"m": 250, "n": 512, "k": 64}, "fp16"),
    ("cumsum", "triton_three_kernels", {"n": 9000}, "fp32"),
    ("softmax", "cuda_row", {"m": 64, "n": 1000}, "bf16"),
    ("add", "cuda_vec16", {"n": 4099}, "fp32"),
)


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Caches for these tests and the processes that they start; empty at first."""
    pytest.importorskip("triton")
    pytest.importorskip("cuda.core")
    folder = tmp_path_factory.mktemp("caches")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TRITON_CACHE_DIR", str(folder / "triton"))
        patched.setenv("KERNELVIZ_CACHE", str(folder / "nvrtc"))
        patched.setenv("PYTHONPATH", str(ROOT))
        patched.delenv("TRITON_INTERPRET", raising=False)
        yield folder


@pytest.fixture(scope="module")
def compilers(caches: Path) -> Iterator[CompilerProcesses]:
    started = CompilerProcesses(2)
    started.begin(H200, (PLANTED,))
    yield started
    started.close()


@pytest.fixture(autouse=True)
def no_work_is_left(compilers: CompilerProcesses) -> Iterator[None]:
    yield
    compilers.cancel()


def problem_of(case: Case) -> Problem:
    op, _, sizes, dtype = case
    return catalogue()[op].problem(sizes, dtype)


def files(folder: Path) -> set[str]:
    """What the caches hold, without locks and files that are still being written."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and ".tmp." not in path.name}


def not_stopped() -> bool:
    return False


def finish(compilers: CompilerProcesses, work: list[Work]) -> list[CompiledAhead]:
    """Compile all of it ahead; return what was reported."""
    reported: list[CompiledAhead] = []
    compilers.expect("a run", work)
    until_s = time.monotonic() + MOST_S
    while compilers.progress() != (len(work), len(work)):
        assert time.monotonic() < until_s, compilers.progress()
        compilers.let_run(0.1)
    for case in work:
        compilers.wait(case, not_stopped, reported.append)
    return reported


def until(true: Callable[[], bool], compilers: CompilerProcesses) -> None:
    until_s = time.monotonic() + MOST_S
    while not true():
        assert time.monotonic() < until_s
        compilers.let_run(0.05)


def test_another_process_finds_every_kernel_in_the_caches(compilers: CompilerProcesses, caches: Path) -> None:
    """It binds the cases to ordinary tensors. The last case was not compiled ahead: the comparison can fail."""
    before = files(caches)
    reported = finish(compilers, [(problem_of(case), case[1], None) for case in CASES])
    assert reported[-1] == CompiledAhead(compiled=len(CASES), total=len(CASES), processes=2)
    stored = files(caches) - before
    assert sum(name.startswith("nvrtc") and name.endswith(".ptx") for name in stored) == 2
    other: Case = ("matmul", "triton_grouped", {"m": 250, "n": 512, "k": 64}, "bf16")
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("compiled_again.py"), caches / "triton", caches / "nvrtc"],
        input=json.dumps([*CASES, other]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *again, (kernels, written) = json.loads(done.stdout)
    assert [written for _, written in again] == [0] * len(CASES)
    assert min(kernels for kernels, _ in again) > 0
    assert kernels > 0
    assert written > 0


def test_nvrtc_alone_makes_the_cubin_that_the_worker_makes(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelviz.measure.compile_ahead.nvrtc_compile import compile_into_cache
    from kernelviz.ops.arithmetic import cuda as kernels
    from kernelviz.ops.kernels import nvrtc

    source = next(Path(kernels.__file__).parent.glob("*.cu"))
    name, defines = "arithmetic_scalar", {"ELEMENT": "float", "COMBINE": "plus"}
    ours = compile_into_cache(source, "sm_90", defines, name)
    monkeypatch.setenv("KERNELVIZ_CACHE", str(caches / "other"))
    assert nvrtc.compile_cubin(source, "sm_90", defines, name) == ours


def test_a_crash_of_a_compiler_process_costs_only_its_case(compilers: CompilerProcesses, caches: Path) -> None:
    """The worker compiles what crashed, wants a GPU or takes too much memory, as without compilation ahead."""
    add = catalogue()["add"].problem({"n": 4096}, "fp16")  # in this format, no other test compiles these two
    names = ("crashes_its_compiler", "wants_a_gpu", "takes_memory", "triton_block", "cuda_vec16_unrolled")
    before = files(caches)
    finish(compilers, [(add, name, None) for name in names])
    assert sum(name.endswith(".cubin") for name in files(caches) - before) == 2


def test_cancel_ends_a_compilation_and_the_next_run_compiles(compilers: CompilerProcesses) -> None:
    add = catalogue()["add"].problem({"n": 4096}, "fp32")
    compilers.expect("a run", [(add, "compiles_for_long", None), (add, "triton_block", None)])
    until(lambda: len(compilers.compiling()) > 0 and compilers.progress()[0] == 1, compilers)
    (pid,) = compilers.compiling()
    process = psutil.Process(pid)
    compilers.cancel()
    until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, compilers)
    finish(compilers, [(add, "cuda_scalar", None)])


def group(leader: int) -> list[psutil.Process]:
    """The processes of a process group that have not ended."""
    members = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return members


def until_stopped(leader: int) -> None:
    """A signal takes effect when the system next looks at its process."""
    until_s = time.monotonic() + 2.0
    while {p.status() for p in group(leader)} != {psutil.STATUS_STOPPED}:
        assert time.monotonic() < until_s


def test_every_process_is_stopped_but_while_the_worker_lets_them_run(
    compilers: CompilerProcesses, caches: Path
) -> None:
    add = catalogue()["add"].problem({"n": 4096}, "fp32")
    compilers.expect("a run", [(add, "compiles_for_long", None)])
    until(lambda: len(compilers.compiling()) > 0, compilers)
    assert len(group(compilers.pid)) == 2
    until_stopped(compilers.pid)
    assert {p.nice() for p in group(compilers.pid)} == {10}
    with compilers.running():
        with compilers.running():
            pass
        assert psutil.STATUS_STOPPED not in {p.status() for p in group(compilers.pid)}
    until_stopped(compilers.pid)


STARTS_AND_ENDS = """
import os, sys
from kernelviz.measure.compile_ahead.processes import CompilerProcesses, Work
compilers = CompilerProcesses(1)
compilers.pause()
print(compilers.pid, flush=True)
os._exit(1)
"""


def test_the_processes_end_with_their_worker_although_they_are_stopped(caches: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTS_AND_ENDS], capture_output=True, text=True, check=False, cwd=ROOT
    )
    leader = int(done.stdout)
    until_s = time.monotonic() + 20.0
    while group(leader):
        assert time.monotonic() < until_s
        time.sleep(0.05)


FIRST_CASES = """
import json, sys
from kernelviz.measure.compile_ahead.dispatcher import _import_compilers
_import_compilers()
before = set(sys.modules)
from triton.runtime.cache import triton_key
from kernelviz.measure.compile_ahead.case_compiler import CaseCompiler
from kernelviz.measure.compile_ahead.messages import CompileWork
from kernelviz.ops import catalogue
from tests.sample_gpu_facts import H200
digests = triton_key.cache_info().misses
compiler, ops = CaseCompiler(H200), catalogue()
kernels = [
    compiler.compile_work(ops, CompileWork(number=1, problem=ops["add"].problem({"n": 4096}, "bf16"), variant=name, tuned=None))
    for name in ("triton_block", "cuda_vec16")
]
imported = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps([[len(names) for names in kernels], sorted(imported), digests, triton_key.cache_info().misses]))
"""


def test_what_every_compiler_needs_is_imported_before_they_are_forked(caches: Path) -> None:
    """Each run forks its compilers anew. Before, a run of eleven cases waited 2.2 s for them on two cores, although every kernel
    was in the caches; now 0.1 s."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CASES],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    kernels, imported, before, after = json.loads(done.stdout)
    assert kernels == [1, 1]
    assert not {"torch", "sympy", "cuda"} & set(imported)
    assert (before, after) == (1, 1)


LIBCUDA = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void) { fclose(fopen(getenv("LOADED"), "w")); }
"""


def test_no_process_opens_the_cuda_driver(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of that name, which NVRTC loads if it can, leaves a file when it is loaded."""
    library, loaded = caches / "libcuda.so.1", caches / "loaded"
    (caches / "cuda.c").write_text(LIBCUDA)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, caches / "cuda.c"], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(caches))
    monkeypatch.setenv("LOADED", str(loaded))
    compilers = CompilerProcesses(1)
    try:
        compilers.begin(H200, ())
        before = files(caches)
        more: tuple[Case, ...] = (
            ("transpose", "cuda_tma", {"m": 128, "n": 256}, "fp32"),
            ("softmax", "triton_block_per_row", {"m": 64, "n": 100}, "bf16"),
            ("embedding", "cuda_row", {"v": 64, "t": 512, "d": 96}, "bf16"),
        )
        finish(compilers, [(problem_of(case), case[1], None) for case in more])
        assert sum(name.endswith(".cubin") for name in files(caches) - before) == len(more)
        assert b"CUDA_VISIBLE_DEVICES=\0" in Path(f"/proc/{compilers.pid}/environ").read_bytes()
        assert not loaded.exists()
    finally:
        compilers.close()
    subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"], check=True)
    assert loaded.exists()


def test_cases_are_compiled_problem_by_problem_and_quick_compilers_first() -> None:
    op = catalogue()["softmax"]
    names = tuple(v.name for v in op.variants)
    tuned = Tuned(configuration={"block": 64}, run_id="r")
    upcoming = [
        UpcomingCases(
            problem=op.problem({"m": m, "n": 128}, "bf16"), variants=(*names, "gone"), tuned={"cuda_row": tuned}
        )
        for m in (1, 2)
    ]
    chosen = cases_to_compile(catalogue(), upcoming)
    backends = [op.variant_named(name).backend for _, name, _ in chosen]
    half = len(chosen) // 2
    assert [p.sizes["m"] for p, _, _ in chosen] == [1] * half + [2] * half
    assert backends[:half] == backends[half:] == sorted(backends[:half], key=["cuda", "triton"].index)
    assert {"torch", "inductor", "library"}.isdisjoint(backends)
    assert "library" in {v.backend for v in op.variants}
    assert [t for _, name, t in chosen if name == "cuda_row"] == [tuned, tuned]
    assert with_plugins((PLANTED,))["add"].variant_named("wants_a_gpu")


def test_waiting_ends_with_a_cancel_and_when_the_processes_have_ended(caches: Path) -> None:
    add = catalogue()["add"].problem({"n": 4096}, "fp32")
    compilers = CompilerProcesses(1)
    try:
        compilers.begin(H200, (PLANTED,))
        compilers.expect("a run", [(add, "compiles_for_long", None)])
        until(lambda: len(compilers.compiling()) > 0, compilers)
        stops = iter([False, False, True])
        compilers.wait((add, "compiles_for_long", None), lambda: next(stops), lambda event: None)
        assert next(stops, None) is None
        psutil.Process(compilers.pid).kill()
        # Both calls return only because they notice that the processes have ended.
        compilers.wait((add, "compiles_for_long", None), not_stopped, lambda event: None)
        compilers.expect("another run", [(add, "triton_block", None)])
        compilers.wait((add, "triton_block", None), not_stopped, lambda event: None)
    finally:
        compilers.close()
