"""What a call costs by the judge's clock beyond the call itself, on this machine at this time, measured with an honest worker."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch

from kernelviz.core import KernelvizError
from kernelviz.measure.judge.case_on_trial import CaseOnTrial
from kernelviz.measure.judge.messages import pair
from kernelviz.measure.judge.partner import problem_of

N = 2**25
"""Elements: 384 MiB for a call of many microseconds, so that what a change of process costs the GPU's caches is in its time."""
CALLS = 8
"""Of the judge's own, of which the shortest counts, as of the partner's."""
LONGEST_START_S, _END_S = 60.0, 10.0
"""For the partner's start, and for its end, after which it is killed."""


class PartnerIsWrong(KernelvizError):
    """The outputs of the honest worker are not right, so that its times count for nothing."""


def exchange_s(device: torch.device, flush: Callable[[], None]) -> float:
    """Seconds between the judge's time of a call, without the copy of its outputs, and the time of the same call in the judge's
    own process: the launch, changes from one process to the other on the GPU, and the signals between them.

    `flush` empties the caches. Takes a new process and about 40 calls. Raises OSError (TimeoutError where the partner does not
    start in time), NotOver, PartnerIsWrong, ShareError, and torch.OutOfMemoryError.
    """
    ours, theirs = pair()
    ours.settimeout(LONGEST_START_S)
    with ours, theirs:
        case = CaseOnTrial(problem_of(N), device, ours, flush)
        try:
            with _partner(str(device), theirs):
                judged = case.judged(0)
        finally:
            case.close()
    if judged.accuracy is None or not judged.accuracy.passed:
        raise PartnerIsWrong("the outputs of the process that measures the exchange are wrong")
    return max(0.0, min(judged.times_s) - judged.copy_s - _own_call_s(flush))


@contextmanager
def _partner(device_id: str, connection: socket.socket) -> Iterator[None]:
    """The partner at this end of a connection, which is closed here, so that the other end notices when the partner ends."""
    descriptor = connection.fileno()
    command = [sys.executable, "-P", "-m", "kernelviz.measure.judge.partner", device_id, str(descriptor), str(N)]
    with connection:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(descriptor,))
    with process:
        try:
            yield
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
        finally:
            process.kill()


def _own_call_s(flush: Callable[[], None]) -> float:
    """The device's time of the partner's call, by events."""
    first, second = torch.ones((2, N), device="cuda").unbind()
    out = torch.empty_like(first)

    def call_s() -> float:
        flush()
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        began.record()
        torch.add(first, second, out=out)
        ended.record()
        ended.synchronize()
        return float(began.elapsed_time(ended)) * 1e-3

    return min(call_s() for _ in range(CALLS))
