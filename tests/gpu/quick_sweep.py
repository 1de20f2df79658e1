"""Time all variants of very many random problems, quickly and roughly: the data by which the rules of `auto` are made.

    python tests/gpu/quick_sweep.py FILE.jsonl --seed WORD --count 2000 --most-s SECONDS [--gpus 0,1] [--processes 40]

Many processes a GPU bind and compile, and one at a time measures. Two H200 with 32 processor cores time 8 problems a second,
where `list_a.py`, which measures as a run does, takes 5 to 7 s for one. What a time lacks for that: calls are launched into the
stream behind a flush, 4 to 24 times; outputs are not checked; what processes do beside each other is not kept apart. So a time
below 2 us is known to 3 %, one of 20 us to 1 %, and a call of several kernels has gaps of the launches between them. Only
`list_a.py` tells whether a claim holds.

`python tests/gpu/read_list.py FILE.jsonl --rules --by-op` reads the file: it has the lines of `list_a.py` without verdicts.
Problems are smaller than those of a list, at most MOST_BYTES, so that the processes fit on the GPU together.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import drawn_list
import msgspec
from drawn_list import Drawn, is_memory_bound
from list_a import facts_of, usual_variants

from kernelviz.core import Problem
from kernelviz.metrics.library_comparison import OWN
from kernelviz.ops import Launch, op_named

MOST_BYTES = 4 * 2**30
"""Inputs, outputs and reference of a problem."""
MOST_PROBLEM_S = 45
FIRST_REPEATS = 3
BLOCK = 6
"""The most calls of a variant that follow each other."""
NEAR = 1.6
"""A variant that takes this many times the fastest one's time is not timed further."""
SPIN_CYCLES = 250_000
"""140 us, in which the host enqueues all kernels of a call, so that they follow each other without waiting for it."""
SECONDS_OF_GRACE = 30
INDEX, GPU = "KERNELVIZ_SWEEP_INDEX", "CUDA_VISIBLE_DEVICES"


def drawn_problems(seed: str, count: int) -> list[Drawn]:
    """The memory-bound problems among `count` of a seed, each once, every kind in turn."""
    limit, drawn_list.MOST_BYTES = drawn_list.MOST_BYTES, MOST_BYTES
    try:
        every = sorted(drawn_list.problems(seed, count), key=lambda one: one.number)
    finally:
        drawn_list.MOST_BYTES = limit
    chosen = (one for one in every if is_memory_bound(op_named(one.problem.op)))
    return list({one.problem.key: one for one in chosen}.values())


def repeats(least_s: float) -> int:
    """How often a call is timed: a short one more often, because its time differs by more.

    >>> [repeats(seconds) for seconds in (2e-6, 1e-4, 2e-3)]
    [24, 12, 4]
    """
    return 24 if least_s < 2e-5 else 12 if least_s < 1e-3 else 4


def middle_s(samples: Sequence[float]) -> float:
    """The mean of the middle half of the samples.

    >>> middle_s([9.0, 1.0, 3.0, 2.0])
    2.5
    """
    rest = len(samples) // 4
    return fmean(sorted(samples)[rest : len(samples) - rest])


def quick_enough(first_s: Mapping[str, float]) -> set[str]:
    """The variants that are timed: those whose first call did not take far longer than the fastest one's. 15 ms more are allowed,
    because another process may use the GPU at that time.

    >>> sorted(quick_enough({"a": 1e-5, "b": 1e-2, "c": 0.2}))
    ['a', 'b']
    """
    least = min(first_s.values(), default=0.0)
    return {name for name, seconds in first_s.items() if seconds < 8 * least + 0.015}


class Sweeper:
    """Measures problems in one process, alone on its GPU while it measures."""

    def __init__(self, together: Path, counter: Path) -> None:
        """`together`: the file that the process which uses the GPU has locked; `counter`: the number of the next problem."""
        from kernelviz.measure.session.device_session import open_session

        self._together, self._counter = together.open("w"), counter
        with self.alone():
            self.session = open_session("cuda:0")
        timer: Any = self.session.timer
        self._instruments, self._tracer = timer.instruments, timer.tracer

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """While no other process measures on this GPU."""
        import torch

        with _locked(self._together):
            try:
                yield
            finally:
                torch.cuda.synchronize()

    def following(self) -> int:
        """The number of the next problem that no process has begun."""
        with self._counter.open("r+") as file, _locked(file):
            number = int(file.read())
            file.seek(0)
            file.write(str(number + 1))
            file.truncate()
            return number

    def times(self, problem: Problem) -> dict[str, Any]:
        """The fields of a line: `own_s`, `library_s` and `failed`. Errors: those of the inputs, TimeoutError."""
        from kernelviz.measure.session.binding import BoundProblem
        from kernelviz.measure.session.failures import sticky

        op = op_named(problem.op).of(problem)
        with self.alone():
            free: int = self.session._free_bytes()
            bound = BoundProblem(op, problem, self.session._torch_device, free, self.session.device.name)
        usual = usual_variants(op, problem)
        calls: dict[str, Launch] = {}
        first_s: dict[str, float] = {}
        failed: dict[str, dict[str, str]] = {}
        for variant in usual:
            try:
                launch, _ = bound.bind(variant, bound.inputs)
                first_s[variant.name] = self._first_call_s(launch)
                calls[variant.name] = launch
            except TimeoutError:
                raise
            except Exception as error:
                if sticky(error):  # this process cannot be used any more
                    raise SystemExit(f"{problem.key} {variant.name}: {error}") from error
                failed[variant.name] = {"stage": "crash", "message": f"{type(error).__name__}: {error}"[:200]}
        quick = quick_enough(first_s)
        measured_s = {name: seconds for name, seconds in first_s.items() if name not in quick}
        with self.alone():
            measured_s |= self._cold_s({name: calls[name] for name in calls if name in quick}, failed)
        own = {variant.name for variant in usual if variant.backend in OWN}
        return {
            "own_s": {name: seconds for name, seconds in measured_s.items() if name in own},
            "library_s": {name: seconds for name, seconds in measured_s.items() if name not in own},
            "failed": failed,
        }

    def _first_call_s(self, launch: Launch) -> float:
        import torch

        with self.alone():
            torch.cuda.synchronize()
            begun = time.perf_counter()
            launch()
            torch.cuda.synchronize()
            return time.perf_counter() - begun

    def _cold_s(self, calls: Mapping[str, Launch], failed: dict[str, dict[str, str]]) -> dict[str, float]:
        """The cold time of each call; of those near the fastest one from more samples. What cannot be traced is in `failed`."""
        rough_s = {}
        for name, launch in calls.items():
            try:
                rough_s[name] = median(self._spans({name: launch}, FIRST_REPEATS)[name])
            except Exception as error:
                failed[name] = {"stage": "wrong", "message": f"{type(error).__name__}: {error}"[:200]}
        least_s = min(rough_s.values(), default=0.0)
        near = {name: calls[name] for name, seconds in rough_s.items() if seconds < NEAR * least_s}
        return rough_s | {name: middle_s(spans) for name, spans in self._spans(near, repeats(least_s)).items()}

    def _spans(self, calls: Mapping[str, Launch], count: int) -> dict[str, list[float]]:
        """The seconds of `count` cold calls of each. Some calls of a variant follow each other, as in a block of a run: the flush
        leaves its code in the instruction caches."""
        import torch

        from kernelviz.measure.timing.trace import iterations

        blocks = -(-count // BLOCK)
        order = [name for _ in range(blocks) for name in calls for _ in range(count // blocks)]

        def work() -> None:
            for name in order:
                torch.cuda._sleep(SPIN_CYCLES)  # type: ignore[no-untyped-call]
                self._instruments.flush()
                calls[name]()
                self._instruments.marker()

        spans: dict[str, list[float]] = {name: [] for name in calls}
        for name, one in zip(order, iterations(self._tracer.trace(work), len(order)), strict=True):
            spans[name].append(one.span_s)
        return spans


@contextlib.contextmanager
def _locked(file: Any) -> Iterator[None]:
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def line_of(
    drawn: Drawn, seed: str, facts: Mapping[str, object], times: Mapping[str, Any], error: str = ""
) -> dict[str, Any]:
    """A line of the file, as `read_list.read` reads it. `facts`: of the GPU; `times`: the fields of `Sweeper.times`."""
    problem = drawn.problem
    return {
        "number": drawn.number,
        "seed": seed,
        "shape": drawn.shape,
        **{name: getattr(problem, name) for name in ("op", "dtype", "compute", "direction", "sizes")},
        **facts,
        **{"own_s": {}, "library_s": {}, "failed": {}, **times},
        "auto": None,
        "verdict": None,
        "error": error,
    }


def sweep(folder: Path, seed: str, most_s: float) -> None:
    """What one process does: the next problem, until none is left or the time is over. Writes a file of its own in the folder."""
    import torch

    begun_s = time.monotonic()
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _too_long)
    index = os.environ[INDEX]
    sweeper = Sweeper(folder / f"gpu-{os.environ[GPU]}.lock", folder / "next")
    facts = facts_of(sweeper.session.device)
    drawn = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Drawn])
    with (folder / f"lines-{index}.jsonl").open("a") as file:
        while time.monotonic() - begun_s < most_s and (number := sweeper.following()) < len(drawn):
            one, times, error = drawn[number], dict[str, Any](), ""
            signal.alarm(MOST_PROBLEM_S)
            try:
                times = sweeper.times(one.problem)
            except Exception as raised:
                error = f"{type(raised).__name__}: {raised}"[:300]
            finally:
                signal.alarm(0)
            print(json.dumps(line_of(one, seed, facts, times, error)), file=file, flush=True)
            torch._dynamo.reset()
            gc.collect()
            if torch.cuda.memory_reserved() > MOST_BYTES // 2:
                torch.cuda.empty_cache()


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"the problem took more than {MOST_PROBLEM_S} s")


def environment_of(folder: Path, index: int, gpu: str) -> dict[str, str]:
    """The environment of a process: its GPU, and caches of its own, because a shared one is locked while a kernel compiles."""
    caches = {
        name: str(folder / f"{name.lower()}-{index}")
        for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "KERNELVIZ_HOME")
    }
    one_thread = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **caches, **one_thread, GPU: gpu, INDEX: str(index)}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", required=True)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--most-s", type=float, required=True)
    parser.add_argument("--gpus", default="0")
    parser.add_argument("--processes", type=int, default=20, help="of all GPUs together")
    given = parser.parse_args(arguments)
    if INDEX in os.environ:
        sweep(given.file, given.seed, given.most_s)
        return 0
    gpus: list[str] = given.gpus.split(",")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "next").write_text("0")
        command = [sys.executable, __file__, name, "--seed", given.seed, "--most-s", str(given.most_s)]
        processes = [
            subprocess.Popen(
                command,
                env=environment_of(folder, index, gpus[index % len(gpus)]),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
            for index in range(given.processes)
        ]
        drawn = drawn_problems(given.seed, given.count)  # while the processes open the GPU
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(msgspec.json.encode(drawn))
            process.stdin.close()
        until_s = time.monotonic() + given.most_s + SECONDS_OF_GRACE
        _wait(processes, lambda: until_s - time.monotonic())
        lines = [
            line for part in sorted(folder.glob("lines-*.jsonl")) for line in part.read_text().splitlines(keepends=True)
        ]
    given.file.write_text("".join(lines))
    print(f"{len(lines)} of {len(drawn)} problems")  # noqa: T201
    return 0


def _wait(processes: Sequence[subprocess.Popen[bytes]], left_s: Callable[[], float]) -> None:
    """Until all have ended, or the time is over: then those that are left are killed."""
    for process in processes:
        try:
            process.wait(timeout=max(0.0, left_s()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
