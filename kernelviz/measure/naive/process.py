"""The naive protocol from the worker's side: a new process for each case, which has measured nothing before."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

import kernelviz
from kernelviz.core import NaiveTiming, NoNaiveTiming, Note, Problem
from kernelviz.measure.compile_ahead.end_with_parent import end_with_parent
from kernelviz.measure.naive.messages import NaiveAnswer, NaiveRequest
from kernelviz.measure.session.contract import Stop
from kernelviz.ops import Variant

CALLS = 100
"""The calls of the longer series: source 1 replays its graph 100 times. Fewer if they would take more than CALLS_S."""
CALLS_S = 2.0
MOST_S = 90.0
"""The time limit of a process: it imports torch (3 s on a loaded machine), creates a context and may compile. The supervisor ends
a case after 120 s."""
_POLL_S = 0.1
_REPORT_S = 2.0
"""Seconds between two reports that the case is still measured: the supervisor ends a worker that is silent for 30 s."""
_ROOT = Path(kernelviz.__file__).parents[1]

MeasureNaive = Callable[[Variant, float, Stop, Callable[[], None]], NaiveTiming | Note | None]
"""A function of the variant, the length of a call in seconds, a stop, and what to call while it waits."""


def calls_of(call_s: float) -> int:
    """How many calls the longer series has, for a call of that length.

    >>> calls_of(1e-6), calls_of(0.05), calls_of(30.0), calls_of(0.0)
    (100, 40, 1, 100)
    """
    return CALLS if call_s <= 0 else max(1, min(CALLS, int(CALLS_S / call_s)))


def naive_in_new_process(
    device_id: str, problem: Problem, plugins: tuple[str, ...], command: Sequence[str] = ()
) -> MeasureNaive:
    """A function that times variants of the problem by the naive protocol. `command` replaces that of the process, for tests."""

    def measure(variant: Variant, call_s: float, stop: Stop, alive: Callable[[], None]) -> NaiveTiming | Note | None:
        """The times; a note why there are none; None if stopped."""
        request = NaiveRequest(
            device=device_id,
            problem=problem,
            variant=variant.name,
            configuration=None if variant.configuration is None else dict(variant.configuration),
            calls=calls_of(call_s),
            plugins=plugins,
        )
        return _answer(request, command or (sys.executable, "-m", "kernelviz.measure.naive"), stop, alive)

    return measure


def _answer(
    request: NaiveRequest, command: Sequence[str], stop: Stop, alive: Callable[[], None]
) -> NaiveTiming | Note | None:
    with tempfile.TemporaryDirectory(prefix="kernelviz-naive-") as folder, tempfile.TemporaryFile() as log:
        answer_path = Path(folder) / "answer.json"
        child = subprocess.Popen(
            [*command, str(answer_path)], stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, cwd=_ROOT,
            start_new_session=True, preexec_fn=partial(end_with_parent, os.getpid()),
        )  # fmt: skip
        assert child.stdin is not None
        with suppress(BrokenPipeError):
            child.stdin.write(msgspec.json.encode(request))
            child.stdin.close()
        until_s, report_at_s = time.monotonic() + MOST_S, 0.0
        while child.poll() is None:
            overdue = time.monotonic() > until_s
            if overdue or stop():
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                return NoNaiveTiming(figure="naive", fault="time_limit", seconds=MOST_S) if overdue else None
            if time.monotonic() >= report_at_s:
                alive()
                report_at_s = time.monotonic() + _REPORT_S
            with suppress(subprocess.TimeoutExpired):
                child.wait(_POLL_S)
        try:
            answer = msgspec.json.decode(answer_path.read_bytes(), type=NaiveAnswer)
        except (OSError, msgspec.MsgspecError):
            log.seek(0)
            end = " ".join(log.read()[-400:].decode(errors="replace").split())
            return NoNaiveTiming(figure="naive", fault="ended", exit_code=child.returncode, message=end)
        if answer.timing is None:
            return NoNaiveTiming(figure="naive", fault="raised", message=answer.error)
        return answer.timing
