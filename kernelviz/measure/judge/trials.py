"""The worker's side of a judgement: open the shared memory, and make the calls that the judge asks for."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable

import torch
from torch import Tensor

from kernelviz.core import Problem
from kernelviz.measure.judge import cuda_memory
from kernelviz.measure.judge.messages import ON_TRIAL, Measured, Memory, Trial, TrialsOver, receive, send
from kernelviz.measure.judge.shared_memory import DONE, FAILED, GIVEN, WAITING, SharedMemory
from kernelviz.measure.session.inputs import as_tuple
from kernelviz.ops import Launch, Op, refresh

_POLL_MS = 100.0


class JudgeLink:
    """The worker's end of the connection with the judge."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)

    def memory(self, op: Op, problem: Problem, device: torch.device) -> SharedMemory:
        """The memory of the case, which the judge allocates. Raises EOFError where the judge has gone, ShareError."""
        message, (file,) = receive(self._socket, ON_TRIAL)
        assert isinstance(message, Memory)
        try:
            pointer = cuda_memory.opened(bytes.fromhex(message.handle)) if message.handle else 0
            return SharedMemory(op, problem, device, file, pointer)
        finally:
            os.close(file)

    def make_calls(
        self, launch: Launch, memory: SharedMemory, began: Callable[[int], None], stop: Callable[[], bool]
    ) -> None:
        """Make a call for each trial until the judge has no more, or until `stop` returns True. `began` is called before each.

        Raises what the call raises, and EOFError where the judge has gone.
        """
        wait = torch.cuda.synchronize if memory.inputs and memory.inputs[0].is_cuda else _nothing
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)

        def gone_on() -> bool:
            return not stop() and not poll.poll(0)

        send(self._socket, Measured())
        while not stop():
            if not poll.poll(_POLL_MS):
                continue
            match receive(self._socket, ON_TRIAL)[0]:
                case Trial(number=number):
                    began(number)
                    memory.set_mark(WAITING, number)
                    if not memory.wait((GIVEN,), number, gone_on):
                        continue
                    try:
                        refresh(launch)
                        outputs = as_tuple(launch())
                        _copy(outputs, memory.outputs)
                        wait()
                    except BaseException:
                        memory.set_mark(FAILED, number)
                        raise
                    memory.set_mark(DONE, number)
                case TrialsOver():
                    return


def _copy(outputs: tuple[Tensor, ...], destinations: tuple[Tensor, ...]) -> None:
    for output, destination in zip(outputs, destinations, strict=True):
        destination.copy_(output)


def _nothing() -> None:
    """A call on a processor is over when it returns."""
