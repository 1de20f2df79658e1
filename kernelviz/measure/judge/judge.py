"""The judge's process: it gives a worker inputs that nobody knew before, takes the time until the outputs are there by its own
clock, and compares them with the reference.

It never runs a variant, never imports a plug-in, and is idle while the worker measures. Its context on the GPU is older than the
worker's, because a context that comes later makes short kernels of an earlier process longer (docs/measuring.md).
"""

from __future__ import annotations

import socket
import time
import traceback
from collections.abc import Callable

import torch

from kernelviz.core.errors import one_line
from kernelviz.measure.judge.case_on_trial import CaseOnTrial
from kernelviz.measure.judge.exchange import exchange_s
from kernelviz.measure.judge.messages import TO_JUDGE, Judged, JudgeReady, receive, send
from kernelviz.measure.session.environment import device_of
from kernelviz.measure.timing.host import HostTimer
from kernelviz.measure.timing.kernels import Instruments


def serve(device_id: str, descriptor: int, known_exchange_s: float | None = None) -> None:
    """Judge cases until the server closes its connection. `known_exchange_s`: what an earlier judge of this server measured."""
    device = torch.device(device_id)
    exchange = known_exchange_s
    if device.type == "cuda":
        torch.cuda.set_device(device)
        flush: Callable[[], None] = Instruments(device).flush
        flush()
        torch.cuda.synchronize()
        if exchange is None:
            exchange = _measured_exchange_s(device, flush)
    else:
        flush = HostTimer(device_of(device_id).last_level_cache_bytes).flush
    server = socket.socket(fileno=descriptor)
    server.set_inheritable(False)
    send(server, JudgeReady(exchange_s=exchange))
    earlier: CaseOnTrial | None = None
    while True:
        try:
            case, (worker_fd,) = receive(server, TO_JUDGE)
        except (EOFError, OSError):
            return
        if earlier is not None:  # its worker, which had opened this memory, has been ended since
            earlier.close()
        earlier, began_s = None, time.monotonic()
        with socket.socket(fileno=worker_fd) as worker:
            try:
                earlier = CaseOnTrial(case.problem, device, worker, flush)
                judged = earlier.judged(case.number)
            except Exception as error:
                traceback.print_exc()
                judged = Judged(number=case.number, error=one_line(error))
        try:
            send(server, judged)
        except OSError:
            return
        print(f"case {case.number} took {time.monotonic() - began_s:.2f} s", flush=True)  # noqa: T201


def _measured_exchange_s(device: torch.device, flush: Callable[[], None]) -> float | None:
    """None where it could not be measured, for instance because other work has the GPU's memory."""
    try:
        return exchange_s(device, flush)
    except Exception:
        traceback.print_exc()
    torch.cuda.empty_cache()
    return None
