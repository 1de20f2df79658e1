"""Checks that every cheat is refused by its name (core.cheats), without harm to the honest call beside it.

The variants planted here launch work of the same size as an honest variant, so that only their cheat distinguishes them.
"""

import queue
import threading
import time
from collections.abc import Callable

import torch
from torch import Tensor

from kernelviz.core import Failure, Problem, Timing
from kernelviz.core.cheats import cheat_of
from kernelviz.core.reasons import (
    CachedOutput,
    Cheating,
    LowerPrecision,
    MutatedInput,
    OtherStream,
    PersistingL2,
    Recompiled,
    Remembered,
    Stale,
    Unfinished,
    Unwritten,
)
from kernelviz.hardware.discovery import missing
from kernelviz.measure.selftest.kernels import persisting_window
from kernelviz.measure.selftest.workbench import Finding, NotHere, Probe, Workbench
from kernelviz.measure.timing.kernels import persisting_bytes
from kernelviz.ops import Launch, Variant, variant
from kernelviz.text import describe_failure, format_notice
from kernelviz.text.cheats import NAMES

_ADD = Problem(op="add", sizes={"n": 2**20}, dtype="fp32")
_SMALL_ADD = Problem(op="add", sizes={"n": 2**16}, dtype="fp32")
_MATMUL = Problem(op="matmul", sizes={"m": 512, "n": 512, "k": 512}, dtype="fp32", compute="ieee")
PERSISTING_BYTES = 16 * 2**20


def _stream() -> torch.cuda.Stream:
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


@variant(op="add", backend="torch")
def other_stream(x_N: Tensor, y_N: Tensor) -> Launch:
    """Adds on its own stream, for which nothing waits."""
    out_N, side = torch.empty_like(x_N), _stream()

    def launch() -> Tensor:
        with torch.cuda.stream(side):
            torch.add(x_N, y_N, out=out_N)
        return out_N

    return launch


@variant(op="add", backend="torch")
def other_thread(x_N: Tensor, y_N: Tensor) -> Launch:
    """Makes another thread add on that thread's stream, and returns when the add is launched there."""
    out_N, side = torch.empty_like(x_N), _stream()
    work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    launched: queue.SimpleQueue[None] = queue.SimpleQueue()

    def added() -> None:
        with torch.cuda.stream(side):
            torch.add(x_N, y_N, out=out_N)
        launched.put(None)

    def serve() -> None:
        while True:
            work.get()()

    threading.Thread(target=serve, name="planted other_thread", daemon=True).start()

    def launch() -> Tensor:
        work.put(added)
        launched.get(timeout=1.0)
        return out_N

    return launch


@variant(op="add", backend="torch")
def cached_output(x_N: Tensor, y_N: Tensor) -> Launch:
    """Recognises the addresses of its inputs from an earlier call, and returns the same output again."""
    return _cached_sum(x_N, y_N)


@variant(op="add", backend="torch")
def copied_output(x_N: Tensor, y_N: Tensor) -> Launch:
    """The same, but copies the cached output, which is enough work to be timed."""
    cached_sum, out_N = _cached_sum(x_N, y_N), torch.empty_like(x_N)
    return lambda: torch.mul(cached_sum(), 1.0, out=out_N)


def _cached_sum(x_N: Tensor, y_N: Tensor) -> Callable[[], Tensor]:
    """The sum that was computed when the inputs were first seen at these addresses."""
    known: dict[tuple[int, int], Tensor] = {}

    def cached_sum() -> Tensor:
        at = (x_N.data_ptr(), y_N.data_ptr())
        if at not in known:
            known[at] = x_N + y_N
        return known[at]

    return cached_sum


@variant(op="add", backend="torch")
def mutated_input(x_N: Tensor, y_N: Tensor) -> Launch:
    """Leaves the sum in x and zeros in y without declaring it, so that its own answers stay correct."""
    out_N = torch.empty_like(x_N)

    def launch() -> Tensor:
        torch.add(x_N, y_N, out=out_N)
        torch.mul(out_N, 1.0, out=x_N)
        torch.mul(y_N, 0.0, out=y_N)
        return out_N

    return launch


@variant(op="add", backend="torch")
def unwritten(x_N: Tensor, y_N: Tensor) -> Launch:
    """Writes only the first half of its output, and the other half elsewhere."""
    out_N, other_N = torch.empty_like(x_N), torch.empty_like(x_N)
    half = max(1, x_N.numel() // 2)

    def launch() -> Tensor:
        torch.add(x_N[:half], y_N[:half], out=out_N[:half])
        torch.add(x_N[half:], y_N[half:], out=other_N[half:])
        return out_N

    return launch


@variant(op="add", backend="torch")
def stale(x_N: Tensor, y_N: Tensor) -> Launch:
    """Copies its inputs when it is bound, and adds the copies in every call."""
    old_x_N, old_y_N, out_N = x_N.clone(), y_N.clone(), torch.empty_like(x_N)
    return lambda: torch.add(old_x_N, old_y_N, out=out_N)


@variant(op="add", backend="torch")
def through_bf16(x_N: Tensor, y_N: Tensor) -> Launch:
    """Adds in bf16 and returns fp32."""
    out_N = torch.empty_like(x_N)
    return lambda: out_N.copy_(x_N.bfloat16() + y_N.bfloat16())


@variant(op="add", backend="torch")
def unfinished(x_N: Tensor, y_N: Tensor) -> Launch:
    """Wakes another thread, which adds a millisecond later, and returns at once."""
    out_N, work = torch.empty_like(x_N), queue.SimpleQueue[None]()

    def serve() -> None:
        while True:
            work.get()
            time.sleep(1e-3)
            torch.add(x_N, y_N, out=out_N)

    threading.Thread(target=serve, name="planted unfinished", daemon=True).start()

    def launch() -> Tensor:
        work.put(None)
        return out_N

    return launch


@variant(op="matmul", backend="torch")
def remembered(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """Recognises its inputs by a few of their numbers, and copies the product that it computed for them before."""
    known: dict[tuple[float, ...], Tensor] = {}
    c_MN = a_MK.new_empty(a_MK.shape[0], b_KN.shape[1])

    def launch() -> Tensor:
        numbers = (*a_MK[0, :4].tolist(), *b_KN[0, :4].tolist())
        if numbers not in known:
            known[numbers] = a_MK @ b_KN
        return c_MN.copy_(known[numbers])

    return launch


@variant(op="matmul", backend="torch")
def through_tf32(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """Multiplies in tf32, whatever the problem asks for."""
    from kernelviz.ops.matmul.torch import bind_mm

    return bind_mm(a_MK, b_KN, "tf32")


@variant(op="add", backend="inductor", needs=("inductor",))
def recompiled(x_N: Tensor, y_N: Tensor) -> Launch:
    """Depends on a number that changes with every call, so that it is compiled again."""
    from kernelviz.ops.kernels.inductor import compiled

    calls = [0]

    def plus(x_N: Tensor, y_N: Tensor) -> Tensor:
        return x_N + y_N + 0.0 * calls[0]

    run = compiled(plus, x_N, y_N)

    def launch() -> Tensor | tuple[Tensor, ...]:
        calls[0] += 1
        return run()

    return launch


@variant(op="add", backend="torch")
def persisting_l2(x_N: Tensor, y_N: Tensor) -> Launch:
    """Raises the device's limit of persisting lines and requests that its inputs stay in the L2."""
    from cuda.bindings import runtime

    out_N = torch.empty_like(x_N)
    window = persisting_window(x_N, min(x_N.numel() * x_N.element_size(), PERSISTING_BYTES))
    runtime.cudaDeviceSetLimit(runtime.cudaLimit.cudaLimitPersistingL2CacheSize, PERSISTING_BYTES)

    def launch() -> Tensor:
        runtime.cudaStreamSetAttribute(torch.cuda.current_stream().cuda_stream, *window)
        return torch.add(x_N, y_N, out=out_N)

    return launch


def _refused(
    name: str, planted: Variant, cheat: type[Cheating], *also: type[Cheating], problem: Problem = _ADD
) -> Probe:
    """A check that the first reason against this planted variant is this cheat, or one of `also`, which also applies."""

    def make(at: Workbench) -> Finding:
        lacks = missing(planted.needs, at.device)
        if lacks is not None:
            raise NotHere(str(format_notice(lacks)))
        try:
            results = at.results(problem, (planted,), "torch_eager")
        finally:
            if cheat is PersistingL2:
                torch.cuda.synchronize()
                persisting_bytes()  # resets the limit to 0
        honest, outcome = results["torch_eager"].outcome, results[planted.name].outcome
        if not isinstance(honest, Timing):
            return Finding(0.0, {}, False, f"the honest call beside it failed: {describe_failure(honest)}")
        if not isinstance(outcome, Failure):
            return Finding(0.0, {}, False, "it was not refused")
        named = bool(outcome.reasons) and isinstance(outcome.reasons[0], (cheat, *also))
        return Finding(float(named), {}, named, str(describe_failure(outcome)))

    question = f"Is a call refused that {NAMES[cheat_of(cheat)]}?"
    return Probe(f"cheat_{name}", question, make, 1.0, "count", at_most=False)


def _everywhere(problem: Problem) -> tuple[Probe, ...]:
    """The cheats that are also possible on a processor."""
    return (
        _refused("copied_output", copied_output, CachedOutput, Stale, problem=problem),
        _refused("mutated_input", mutated_input, MutatedInput, problem=problem),
        _refused("unwritten", unwritten, Unwritten, problem=problem),
        _refused("stale", stale, Stale, problem=problem),
        _refused("lower_precision", through_bf16, LowerPrecision, problem=problem),
    )


CPU = (
    # On a processor no tracer shows that a call did nothing, but its output then still contains the poison.
    _refused("cached_output", cached_output, CachedOutput, Unwritten, problem=_SMALL_ADD),
    _refused("unfinished", unfinished, Unfinished, Unwritten, problem=_SMALL_ADD),
    _refused("remembered", remembered, Remembered, problem=_MATMUL),
    *_everywhere(_SMALL_ADD),
)
CUDA = (
    _refused("other_stream", other_stream, OtherStream),
    _refused("other_thread", other_thread, OtherStream),
    _refused("cached_output", cached_output, CachedOutput),
    *_everywhere(_ADD),
    _refused("tf32", through_tf32, LowerPrecision, problem=_MATMUL),
    _refused("recompiled", recompiled, Recompiled),
    _refused("persisting_l2", persisting_l2, PersistingL2),
)
