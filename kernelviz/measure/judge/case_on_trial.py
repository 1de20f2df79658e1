"""One case that the judge tries: its memory, and the calls of the worker at the other end of a connection."""

from __future__ import annotations

import os
import random
import select
import socket
import time
from collections.abc import Callable

import torch

from kernelviz.core import KernelvizError, Problem
from kernelviz.core.problem import problem_of_seed
from kernelviz.measure.gate.check import Comparison, Reference
from kernelviz.measure.judge.messages import FROM_WORKER, Judged, Memory, Trial, TrialsOver, receive, send
from kernelviz.measure.judge.shared_memory import DONE, FAILED, GIVEN, WAITING, OwnedMemory
from kernelviz.measure.session.inputs import allocate, fill_with
from kernelviz.measure.timing.host import poison
from kernelviz.ops import op_named

LEAST_TRIALS, MOST_TRIALS, TRIALS_S = 8, 40, 2.0
"""How many calls are made after the first: at least and at most so many, and no more once they have taken so many seconds."""
COMPARED, COMPARING_S = 4, 0.5
"""The outputs of the first calls are compared until that took COMPARING_S, and those of COMPARED calls that are chosen at
random. Only the times of compared calls count: of another one nobody knows whether it was done."""
SPOTS = 64
"""Elements of each output, chosen at random, that are read before the clock is."""
CALL_S = 120.0
"""A call that is not over after so many seconds ends the judgement."""


class NotOver(KernelvizError):
    """A trial did not end; the message says why."""


class CaseOnTrial:
    """One case: its memory, and the trials of the worker at the other end of a connection."""

    def __init__(
        self, problem: Problem, device: torch.device, worker: socket.socket, flush: Callable[[], None]
    ) -> None:
        """`flush` empties the caches that judge and worker share. Allocate the memory. Raises torch.OutOfMemoryError, OSError,
        ShareError."""
        self._problem, self._device, self._worker, self._flush = problem, device, worker, flush
        self._op = op_named(problem.op).of(problem)
        self._inputs = allocate(self._op.inputs, problem, device)
        self._outputs = allocate(self._op.outputs, problem, device)
        self._memory = OwnedMemory(self._op, problem, device)
        self._random = random.SystemRandom()
        self._wait = torch.cuda.synchronize if device.type == "cuda" else _nothing

    def close(self) -> None:
        """Free the memory. The worker must have ended."""
        self._inputs = self._outputs = ()
        self._memory.close()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def judged(self, number: int) -> Judged:
        """Give the worker the memory, wait until it has measured, and try it. Raises NotOver, EOFError, OSError."""
        send(self._worker, Memory(handle=self._memory.handle), (self._memory.file,))
        try:
            _, descriptors = receive(self._worker, FROM_WORKER)
        except EOFError:
            raise NotOver("the worker ended before it had measured the variant") from None
        for descriptor in descriptors:  # no worker of ours sends one
            os.close(descriptor)
        began_s = time.monotonic()
        times_s: list[float] = []
        copies_s: list[float] = []
        comparison, comparing_s = Comparison(), 0.0
        chosen = set(self._random.sample(range(2, LEAST_TRIALS + 2), COMPARED))
        for trial in range(1, MOST_TRIALS + 2):
            call_s, copy_s = self._tried(trial)
            copies_s.append(copy_s)
            if comparing_s < COMPARING_S or trial in chosen:
                compare_s = time.monotonic()
                comparison.add(Reference(self._op, self._problem_of(trial), self._inputs), self._outputs)
                comparing_s += time.monotonic() - compare_s
                if trial > 1:  # the first may compile, and touch memory for the first time
                    times_s.append(call_s)
            if trial > LEAST_TRIALS and time.monotonic() - began_s > TRIALS_S:
                break
        send(self._worker, TrialsOver())
        return Judged(
            number=number,
            times_s=tuple(times_s),
            copy_s=min(copies_s),
            accuracy=comparison.accuracy(self._op.rule),
            seconds=time.monotonic() - began_s,
        )

    def _problem_of(self, trial: int) -> Problem:
        """Every second trial has the data of the problem, with which it was timed. The others have normal data where those of the
        problem could hide a wrong kernel."""
        return problem_of_seed(self._problem, trial % 2)

    def _tried(self, trial: int) -> tuple[float, float]:
        """The seconds of a call, until its outputs are in the shared memory, and of copying these outputs.

        A worker may say that a call is done before it is. A judge that other processes keep waiting, or whose copy takes as
        long as the call computes, then finds right outputs. So a few elements, which nobody knows before, are read before the
        clock is, and stand in the outputs as they were then.
        """
        shared, op = self._memory.shared, self._op
        fill_with(op, self._inputs, self._problem_of(trial), self._random.getrandbits(31))
        spots = [self._spots(output) for output in shared.outputs]
        for output in shared.outputs:
            poison(output)
        self._wait()
        send(self._worker, Trial(number=trial))
        self._await((WAITING,), trial)
        for place, values in zip(shared.inputs, self._inputs, strict=True):
            place.copy_(values)
        self._flush()  # the worker's own flush may do nothing
        self._wait()
        begun = time.perf_counter()
        shared.set_mark(GIVEN, trial)
        self._await((DONE, FAILED), trial)
        early = [_bits(output)[spot] for output, spot in zip(shared.outputs, spots, strict=True)]
        self._wait()
        ended = time.perf_counter()
        for values, output in zip(self._outputs, shared.outputs, strict=True):
            values.copy_(output)
        self._wait()
        copied = time.perf_counter()
        for values, spot, there in zip(self._outputs, spots, early, strict=True):
            _bits(values)[spot] = there
        if shared.mark(FAILED) == trial:
            raise NotOver("the call raised an exception")
        return ended - begun, copied - ended

    def _spots(self, output: torch.Tensor) -> torch.Tensor:
        """The numbers of SPOTS elements of an output."""
        return torch.tensor(self._random.choices(range(output.numel()), k=SPOTS), device=self._device)

    def _await(self, marks: tuple[int, ...], trial: int) -> None:
        poll = select.poll()
        poll.register(self._worker, 0)  # only the end of the connection
        until_s = time.monotonic() + CALL_S
        if not self._memory.shared.wait(marks, trial, lambda: not poll.poll(0) and time.monotonic() < until_s):
            timed_out = time.monotonic() >= until_s
            raise NotOver(
                f"a call was not over after {CALL_S:.0f} s" if timed_out else "the worker ended during a call"
            )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a contiguous tensor as integers of their size: torch cannot index every format of 8 bits."""
    return tensor.view(-1).view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()])


def _nothing() -> None:
    """Copies on a processor are done when they return."""
