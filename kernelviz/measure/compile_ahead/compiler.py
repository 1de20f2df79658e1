"""A compiler process: compiles one case after another that the dispatcher sends, and says how each ended."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import sys
from collections.abc import Mapping

from kernelviz.core.errors import one_line
from kernelviz.measure.compile_ahead.messages import WORK, CompileEnded, DeviceFacts, Lines, encode
from kernelviz.ops import Op, with_plugins

MOST_DATA_BYTES = 8 * 2**30
"""The most private memory of a compiler process, and of each program that it starts. One that has compiled 150 configurations of
a matmul in Triton takes 0.6 GiB; nvcc ran out of memory with 4 GiB for a product of CUTLASS, and compiles it with 6 GiB."""


def serve(connection: socket.socket, facts: DeviceFacts, plugins: tuple[str, ...]) -> None:
    """Compile until the connection closes."""
    _limit()
    from kernelviz.measure.compile_ahead.case_compiler import CaseCompiler

    compiler = CaseCompiler(facts)
    ops: Mapping[str, Op] | None = None
    lines = Lines()
    while data := connection.recv(1 << 16):
        for line in lines.feed(data):
            work = WORK.decode(line)
            try:
                ops = with_plugins(plugins) if ops is None else ops
                kernels = compiler.compile_work(ops, work)
            except Exception as error:  # the worker compiles the case, and reports what is wrong with it
                ended = CompileEnded(number=work.number, error=f"{type(error).__name__}: {one_line(error)}"[:500])
            else:
                ended = CompileEnded(number=work.number, kernels=len(kernels))
            connection.sendall(encode(ended))


def _limit() -> None:
    """Limit this process's memory; its output, which may be a variant's, goes nowhere."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = MOST_DATA_BYTES if hard == resource.RLIM_INFINITY else min(hard, MOST_DATA_BYTES)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (sys.stdin.fileno(), sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(nowhere, fd)
