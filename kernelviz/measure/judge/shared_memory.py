"""Memory that judge and worker share: the inputs and outputs of a case on its device, and the marks by which they take turns.

On a processor all of it is one anonymous file. On a GPU the tensors are one allocation of the judge, which the worker opens by
its IPC handle, and only the marks are in the file. Both processes write there, so neither can trust it: the judge copies outputs
into its own memory before it compares them, and computes the reference from its own copy of the inputs.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from kernelviz.core import Problem
from kernelviz.measure.judge import cuda_memory
from kernelviz.measure.session.inputs import torch_dtype
from kernelviz.ops import Op, TensorSpec

ALIGNMENT = 512
_MARKS_BYTES = mmap.PAGESIZE
_SPIN_S = 0.05
"""Beside a GPU, marks are read without a pause for this long, because a pause would be part of the time of a short call."""
_PAUSE_S, _LONG_PAUSE_S = 50e-6, 200e-6
"""Pauses between reads: on a processor, whose cores the call needs (a process that read all the time made an add of 0.65 ms take
3.2 ms on two cores), and after _SPIN_S."""
WAITING, GIVEN, DONE, FAILED = range(4)
"""The marks: the number of the trial whose inputs the worker waits for, whose inputs are given, that is done, that failed."""


def layout(op: Op, problem: Problem) -> tuple[list[int], int]:
    """The offset in bytes of each input and output of an op, and the bytes of all together."""
    offsets, end = [], 0
    for spec in (*op.inputs, *op.outputs):
        offsets.append(end)
        end += -(-_size_bytes(spec, problem) // ALIGNMENT) * ALIGNMENT
    return offsets, max(end, ALIGNMENT)


def _size_bytes(spec: TensorSpec, problem: Problem) -> int:
    return spec.elements(problem.sizes) * torch_dtype(spec.dtype or problem.dtype).itemsize


class SharedMemory:
    """The tensors and marks of one case as one of the two processes sees them."""

    def __init__(self, op: Op, problem: Problem, device: torch.device, file: int, pointer: int = 0) -> None:
        """Map an open file, which stays the caller's. `pointer`: the address of the tensors, on a GPU."""
        offsets, size_bytes = layout(op, problem)
        self._pausing = device.type == "cpu"
        mapped = mmap.mmap(file, _MARKS_BYTES + (0 if pointer else size_bytes))
        self._marks = memoryview(mapped)[: 8 * 4].cast("q")
        if pointer:
            block = cuda_memory.as_tensor(pointer, size_bytes, device)
        else:
            block = torch.frombuffer(mapped, dtype=torch.uint8, offset=_MARKS_BYTES, count=size_bytes)

        def view(offset: int, spec: TensorSpec) -> Tensor:
            mine = block[offset : offset + _size_bytes(spec, problem)]
            return mine.view(torch_dtype(spec.dtype or problem.dtype)).view(spec.shape(problem.sizes))

        tensors = tuple(map(view, offsets, (*op.inputs, *op.outputs)))
        self.inputs, self.outputs = tensors[: len(op.inputs)], tensors[len(op.inputs) :]

    def mark(self, which: int) -> int:
        """The number at this mark."""
        return self._marks[which]

    def set_mark(self, which: int, number: int) -> None:
        """Write the number at this mark."""
        self._marks[which] = number

    def wait(self, which: Sequence[int], number: int, go_on: Callable[[], bool]) -> bool:
        """Wait until one of these marks has this number. False once `go_on`, asked every millisecond or so, returns False."""
        marks, began_s = self._marks, time.perf_counter()
        while True:
            waited_s = time.perf_counter() - began_s
            for _ in range(1 if waited_s > _SPIN_S else 20 if self._pausing else 2000):
                if any(marks[one] == number for one in which):
                    return True
                if self._pausing and waited_s <= _SPIN_S:
                    time.sleep(_PAUSE_S)
            if not go_on():
                return False
            if waited_s > _SPIN_S:
                time.sleep(_LONG_PAUSE_S)


class OwnedMemory:
    """The judge's side: it allocates the memory and frees it."""

    def __init__(self, op: Op, problem: Problem, device: torch.device) -> None:
        """Raises torch.OutOfMemoryError, cuda_memory.ShareError, OSError."""
        _, size_bytes = layout(op, problem)
        on_gpu = device.type == "cuda"
        self._pointer = cuda_memory.allocate(size_bytes) if on_gpu else 0
        self.file = os.memfd_create("kernelviz-judge", os.MFD_CLOEXEC)
        os.ftruncate(self.file, _MARKS_BYTES + (0 if on_gpu else size_bytes))
        self.handle = cuda_memory.handle_of(self._pointer).hex() if on_gpu else ""
        self.shared = SharedMemory(op, problem, device, self.file, self._pointer)

    def close(self) -> None:
        """Free the memory. The worker must have ended, and no tensor of it may be used any more."""
        os.close(self.file)
        if self._pointer:
            cuda_memory.free(self._pointer)
