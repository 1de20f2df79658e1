"""The dispatcher of the compiler processes: it imports torch and Triton once, forks compilers, and hands out the cases.

    python -P -m kernelviz.measure.compile_ahead DESCRIPTOR

It and all compilers are one process group at a low priority, which the worker stops while it measures. A compiler that crashes
costs its case, which the worker then compiles itself. Nothing here uses a GPU: no CUDA device is visible.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import selectors
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelviz.core.configuration import base_name
from kernelviz.measure.compile_ahead.end_with_parent import end_with_parent
from kernelviz.measure.compile_ahead.messages import (
    FROM_COMPILER,
    TO_DISPATCHER,
    Begin,
    CompileBegan,
    CompileEnded,
    CompileWork,
    Lines,
    Queue,
    Skip,
    encode,
)
from kernelviz.ops import catalogue

NICENESS = 10
LONGEST_CASE_S = 300.0
"""A compiler that takes longer for one case is ended. The worker's own limit for a compilation is the same."""


@dataclass(slots=True)
class _Compiler:
    """A compiler process, and the case that it compiles now."""

    pid: int
    connection: socket.socket
    lines: Lines = field(default_factory=Lines)
    work: CompileWork | None = None
    since_s: float = 0.0


class Dispatcher:
    """Hands out cases to compiler processes, which it starts when there is work and ends when there is none."""

    def __init__(self, worker: socket.socket, begin: Begin) -> None:
        self._worker, self._begin = worker, begin
        self._queue: list[CompileWork] = []
        self._compilers: list[_Compiler] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(worker, selectors.EVENT_READ, None)

    def run(self, lines: Lines, messages: Sequence[bytes]) -> None:
        """Work until the worker closes the connection. `messages`: those that came with the first one."""
        self._read(messages)
        while True:
            self._hand_out()
            for key, _ in self._selector.select(LONGEST_CASE_S / 10):
                if key.data is not None:
                    self._hear(key.data)
                    continue
                data = self._worker.recv(1 << 16)
                if not data:
                    return
                self._read(lines.feed(data))
            self._end_hung()

    def _read(self, messages: Sequence[bytes]) -> None:
        for line in messages:
            match TO_DISPATCHER.decode(line):
                case Queue(work=work):
                    begun = {c.work.number for c in self._compilers if c.work is not None}
                    self._queue = [w for w in work if w.number not in begun]
                case Skip(number=number):
                    self._queue = [w for w in self._queue if w.number != number]
                case Begin():
                    pass

    def _hand_out(self) -> None:
        for compiler in [c for c in self._compilers if c.work is None]:
            if not self._queue:
                self._remove(compiler)
        while self._queue:
            idle = next((c for c in self._compilers if c.work is None), None)
            if idle is None and len(self._compilers) < self._begin.processes:
                idle = self._start()
            if idle is None:
                return
            idle.work, idle.since_s = self._next(), time.monotonic()
            self._tell(CompileBegan(number=idle.work.number, pid=idle.pid))
            with contextlib.suppress(OSError):  # it has ended, which `_hear` notices
                idle.connection.sendall(encode(idle.work))

    def _next(self) -> CompileWork:
        """The next case of a variant that is not being compiled at another size, since both may need the same kernel; else the
        next case."""
        under_way = {_kernels_of(c.work) for c in self._compilers if c.work is not None}
        work = next((w for w in self._queue if _kernels_of(w) not in under_way), self._queue[0])
        self._queue.remove(work)
        return work

    def _start(self) -> _Compiler:
        ours, theirs = socket.socketpair()
        dispatcher = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_compiler(theirs, ours, dispatcher)
        theirs.close()
        compiler = _Compiler(pid, ours)
        self._compilers.append(compiler)
        self._selector.register(ours, selectors.EVENT_READ, compiler)
        return compiler

    def _become_compiler(self, connection: socket.socket, ours: socket.socket, dispatcher: int) -> None:
        try:
            end_with_parent(dispatcher)
            self._worker.close()
            ours.close()
            for compiler in self._compilers:
                compiler.connection.close()
            from kernelviz.measure.compile_ahead import compiler as process

            process.serve(connection, self._begin.device, self._begin.plugins)
        finally:
            os._exit(0)

    def _hear(self, compiler: _Compiler) -> None:
        try:
            data = compiler.connection.recv(1 << 16)
        except OSError:
            data = b""
        for line in compiler.lines.feed(data):
            self._tell(FROM_COMPILER.decode(line))
            compiler.work = None
        if not data:
            self._remove(compiler)

    def _remove(self, compiler: _Compiler) -> None:
        """Forget a compiler, which ends when its connection is closed if it has not ended yet."""
        self._selector.unregister(compiler.connection)
        compiler.connection.close()
        self._compilers.remove(compiler)
        _, status = os.waitpid(compiler.pid, 0)
        if compiler.work is not None:
            error = f"the compiler process ended ({os.waitstatus_to_exitcode(status)})"
            self._tell(CompileEnded(number=compiler.work.number, error=error))

    def _end_hung(self) -> None:
        for compiler in self._compilers:
            if compiler.work is not None and time.monotonic() - compiler.since_s > LONGEST_CASE_S:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(compiler.pid, signal.SIGKILL)

    def _tell(self, message: CompileBegan | CompileEnded) -> None:
        with contextlib.suppress(OSError):  # the worker has ended, which the next read notices
            self._worker.sendall(encode(message))


def _kernels_of(work: CompileWork) -> tuple[str, str, str, str | None]:
    """Equal for cases that differ only in their sizes. Configurations of a tuning have names of their own and are never equal."""
    name = work.variant if base_name(work.variant) != work.variant else base_name(work.variant)
    return work.problem.op, name, work.problem.dtype, work.problem.direction


def main(descriptor: int) -> None:
    """Import what compiles, wait for the first message, and dispatch."""
    os.nice(NICENESS)
    worker = socket.socket(fileno=descriptor)
    worker.set_inheritable(False)
    _import_compilers()
    lines = Lines()
    messages: list[bytes] = []
    while not messages:
        data = worker.recv(1 << 16)
        if not data:
            return
        messages = lines.feed(data)
    begin = TO_DISPATCHER.decode(messages[0])
    if isinstance(begin, Begin):
        Dispatcher(worker, begin).run(lines, messages[1:])


def _import_compilers() -> None:
    """Import and compute what every compiler process needs, before they are forked: otherwise each of them, at its first case,
    imports sympy through torch (0.4 s) and computes the digest of the whole of Triton that is in its cache's keys (0.25 s)."""
    import torch

    torch.set_num_threads(1)
    for name in (
        "torch.fx.experimental.symbolic_shapes",
        "triton.compiler",
        "triton.experimental.gluon.language",
        "cuda.core",
        "kernelviz.measure.compile_ahead.case_compiler",
    ):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(ImportError, AttributeError):
        importlib.import_module("triton.runtime.cache").triton_key()
    with contextlib.suppress(ImportError, RuntimeError):  # cuda.bindings raises the latter where the library is missing
        importlib.import_module("cuda.bindings.nvrtc").nvrtcVersion()  # loads the library
    catalogue()
