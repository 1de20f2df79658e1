"""Cheats as variants of `add`, for tests and for people who want to see what is refused: each looks fast and is not.

Most work on a GPU, too. tests/test_cheats.py says what an ordinary run finds of each, and what only `--untrusted` does.
"""

from __future__ import annotations

import gc
import hashlib
import sys
import threading
import time

import torch

from kernelviz.ops import Launch, variant

FASTER = 20.0
"""By which factor a cheat on the clock makes times shorter."""


def cheat(function):  # type: ignore[no-untyped-def]
    """A variant of add that only a plan that names it contains."""
    return variant(op="add", backend="torch", only_when_named=True)(function)


def _slow_sum(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """The right answer in several times the time of one addition, so that skipping it pays."""
    for _ in range(8):
        torch.add(x, y, out=out)
    return out


class Lazy(torch.Tensor):
    """A tensor that is computed when it is read."""

    work = None

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        for one in args:
            if isinstance(one, Lazy) and one.work is not None:
                work, one.work = one.work, None
                work()
        return super().__torch_function__(function, types, args, kwargs or {})


@cheat
def lazy_output(x_N, y_N) -> Launch:
    """Returns a subclass of tensor that computes when it is read."""

    def launch() -> torch.Tensor:
        out = torch.empty_like(x_N).as_subclass(Lazy)
        plain = out.as_subclass(torch.Tensor)
        out.work = lambda: torch.add(x_N, y_N, out=plain)
        return out

    return launch


@cheat
def thread_after(x_N, y_N) -> Launch:
    """A thread computes after the call has returned."""
    out = torch.empty_like(x_N)

    def launch() -> torch.Tensor:
        threading.Thread(target=_slow_sum, args=(x_N, y_N, out)).start()
        return out

    return launch


@cheat
def memo_by_content(x_N, y_N) -> Launch:
    """Remembers answers by a digest of the first numbers."""
    known: dict[bytes, torch.Tensor] = {}

    def launch() -> torch.Tensor:
        some = torch.stack((x_N[:4], y_N[:4])).cpu().numpy().tobytes()
        digest = hashlib.sha256(some).digest()
        if digest not in known:
            known[digest] = _slow_sum(x_N, y_N, torch.empty_like(x_N))
        return known[digest].clone()

    return launch


@cheat
def memo_by_address(x_N, y_N) -> Launch:
    """Remembers the answer for these tensors."""
    known: list[torch.Tensor] = []

    def launch() -> torch.Tensor:
        if not known:
            known.append(torch.add(x_N, y_N))
        return known[0].clone()

    return launch


@cheat
def first_call_only(x_N, y_N) -> Launch:
    """Computes in its first call only."""
    out, calls = torch.empty_like(x_N), [0]

    def launch() -> torch.Tensor:
        calls[0] += 1
        return torch.add(x_N, y_N, out=out) if calls[0] == 1 else out

    return launch


@cheat
def every_37th_call(x_N, y_N) -> Launch:
    """Computes in every 37th call."""
    out, calls = torch.empty_like(x_N), [0]

    def launch() -> torch.Tensor:
        calls[0] += 1
        return torch.add(x_N, y_N, out=out) if calls[0] % 37 == 1 else out

    return launch


@cheat
def looks_at_callers(x_N, y_N) -> Launch:
    """Computes only if a function of the gate called it."""
    out = torch.empty_like(x_N)

    def launch() -> torch.Tensor:
        frame, names = sys._getframe(1), set()
        while frame is not None:
            names.add(frame.f_code.co_name)
            frame = frame.f_back  # type: ignore[assignment]
        checked = {"run_once", "bind", "check", "make_calls", "_host_cheat", "__init__"} & names
        return torch.add(x_N, y_N, out=out) if checked else out

    return launch


@cheat
def half_of_it(x_N, y_N) -> Launch:
    """Computes the first half."""
    half = x_N.numel() // 2

    def launch() -> torch.Tensor:
        out = torch.empty_like(x_N)
        torch.add(x_N[:half], y_N[:half], out=out[:half])
        return out

    return launch


@cheat
def fp16_inside(x_N, y_N) -> Launch:
    """Computes in fp16."""
    return lambda: (x_N.half() + y_N.half()).to(x_N.dtype)


@cheat
def input_as_output(x_N, y_N) -> Launch:
    """Returns an input."""
    return lambda: x_N


@cheat
def adds_into_input(x_N, y_N) -> Launch:
    """Adds into its input without saying so."""
    return lambda: x_N.add_(y_N)


@cheat
def changes_input_behind(x_N, y_N) -> Launch:
    """Makes its inputs zero after the first call, so that later answers are easy."""

    def launch() -> torch.Tensor:
        out = torch.add(x_N, y_N)
        x_N.zero_()
        y_N.zero_()
        return out

    return launch


@cheat
def wrong_dtype(x_N, y_N) -> Launch:
    """Returns fp16."""
    return lambda: x_N.half() + y_N.half()


@cheat
def expanded_output(x_N, y_N) -> Launch:
    """Returns one number, expanded to the shape."""
    return lambda: (x_N[:1] + y_N[:1]).expand(x_N.shape)


@cheat
def reads_the_reference(x_N, y_N) -> Launch:
    """Looks for the gate's reference in memory and returns it."""
    size = x_N.numel()

    def launch() -> torch.Tensor:
        for one in gc.get_objects():
            if type(one).__name__ == "Slab" and one.reference[0].numel() == size:
                return one.reference[0].to(x_N.dtype)
        return torch.add(x_N, y_N)

    return launch


@cheat
def knows_the_seeds(x_N, y_N) -> Launch:
    """Computes the answers for the seeds of the gate while it is bound, and recognises them by their first number."""
    from kernelviz.core import Problem
    from kernelviz.measure.session.inputs import fill
    from kernelviz.ops import op_named

    problem = Problem(op="add", sizes={"n": x_N.numel()}, dtype="fp32")
    a, b = torch.empty_like(x_N), torch.empty_like(y_N)
    known: dict[float, torch.Tensor] = {}
    for seed in range(3):
        fill(op_named("add"), (a, b), problem, seed)
        known[float(a[0])] = a + b

    def launch() -> torch.Tensor:
        answer = known.get(float(x_N[0]))
        return _slow_sum(x_N, y_N, torch.empty_like(x_N)) if answer is None else answer

    return launch


@cheat
def patches_the_gate(x_N, y_N) -> Launch:
    """Makes the gate pass everything, and computes nothing."""
    from kernelviz.measure.gate import check, host_calls

    true = check.Comparison.accuracy

    def accuracy(self, rule):  # type: ignore[no-untyped-def]
        self.worst, self.not_finite, self.unwritten, self.reasons = 0.1, 0, 0, []
        return true(self, rule)

    check.Comparison.accuracy = accuracy  # type: ignore[method-assign]
    host_calls.cheat_of = lambda call: None
    out = torch.zeros_like(x_N)
    return lambda: out


@cheat
def patches_the_clock(x_N, y_N) -> Launch:
    """Makes the host's clock slower while it is measured."""
    true, began = time.perf_counter_ns, time.perf_counter_ns()

    def slower() -> int:
        return began + int((true() - began) / FASTER)

    time.perf_counter_ns = slower
    out = torch.empty_like(x_N)
    return lambda: _slow_sum(x_N, y_N, out)


@cheat
def patches_the_clock_later(x_N, y_N) -> Launch:
    """Makes the host's clock slower after the checks, while it is measured."""
    out, calls = torch.empty_like(x_N), [0]

    def launch() -> torch.Tensor:
        calls[0] += 1
        if calls[0] == 30:  # 26 calls are made to bind and to check it
            patches_the_clock.bind(x_N, y_N)  # type: ignore[attr-defined]
        return torch.add(x_N, y_N, out=out)

    return launch


@cheat
def patches_the_flush(x_N, y_N) -> Launch:
    """Makes the flush of the caches do nothing, so that its times are warm."""
    from kernelviz.measure.timing.host import HostTimer

    HostTimer.flush = lambda self: None  # type: ignore[method-assign]
    out = torch.empty_like(x_N)
    return lambda: _slow_sum(x_N, y_N, out)


@cheat
def patches_the_samples(x_N, y_N) -> Launch:
    """Divides the samples of its blocks."""
    from kernelviz.measure.timing.rounds import Series

    true = Series.add

    def add(self, block, number):  # type: ignore[no-untyped-def]
        block.samples = [s / FASTER for s in block.samples]
        block.busy = [s / FASTER for s in block.busy]
        true(self, block, number)

    Series.add = add  # type: ignore[method-assign]
    out = torch.empty_like(x_N)
    return lambda: _slow_sum(x_N, y_N, out)


@cheat
def forges_the_result(x_N, y_N) -> Launch:
    """Changes the message with its result on its way to the server."""
    import msgspec

    from kernelviz.core import CaseDone
    from kernelviz.worker import child
    from kernelviz.worker.protocol import WorkEvent

    true = child.encode

    def encode(message):  # type: ignore[no-untyped-def]
        if isinstance(message, WorkEvent) and isinstance(message.event, CaseDone):
            result = message.event.result
            if result.timing is not None and result.timing.device_cold_s is not None:
                cold = result.timing.device_cold_s
                short = msgspec.structs.replace(
                    cold,
                    estimate=cold.estimate / FASTER,
                    low=None if cold.low is None else cold.low / FASTER,
                    high=None if cold.high is None else cold.high / FASTER,
                    samples=tuple(s / FASTER for s in cold.samples or ()),
                )
                timing = msgspec.structs.replace(result.timing, device_cold_s=short)
                result = msgspec.structs.replace(result, outcome=timing)
                message = msgspec.structs.replace(message, event=CaseDone(result=result))
        return true(message)

    child.encode = encode
    out = torch.empty_like(x_N)
    return lambda: _slow_sum(x_N, y_N, out)


@cheat
def patches_the_copy(x_N, y_N) -> Launch:
    """Answers a judge with what is in its inputs' memory, at once, and computes nothing."""
    from kernelviz.measure.judge import trials

    trials._copy = lambda outputs, places: None
    out = torch.empty_like(x_N)
    return lambda: torch.add(x_N, y_N, out=out)


@cheat
def answers_early(x_N, y_N) -> Launch:
    """Tells a judge that a call is done before it began, and computes afterwards. Divides its samples, too."""
    from kernelviz.measure.judge import shared_memory

    true = shared_memory.SharedMemory.wait

    def wait(self, which, number, go_on):  # type: ignore[no-untyped-def]
        given = true(self, which, number, go_on)
        self.set_mark(shared_memory.DONE, number)
        return given

    shared_memory.SharedMemory.wait = wait  # type: ignore[method-assign]
    return patches_the_samples.bind(x_N, y_N)  # type: ignore[attr-defined, no-any-return]


@cheat
def zeroes_shared_inputs(x_N, y_N) -> Launch:
    """Makes the inputs zero before it adds them, so that the sum is easy."""

    def launch() -> torch.Tensor:
        x_N.zero_()
        y_N.zero_()
        return torch.zeros_like(x_N)

    return launch
