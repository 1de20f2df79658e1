"""The worker's side: opens a measuring session, does one task after the other, tells what happens.

stdout and stderr are the log; what a variant prints can never become a message. There is no heartbeat and no second
thread: nothing runs beside a timed region.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import select
import signal
import socket
import sys
import traceback
from collections import deque

import msgspec

from kernelviz.core.errors import BadField, UsageError, one_line
from kernelviz.core.events import CaseDone, Event
from kernelviz.core.finite import finite_result
from kernelviz.core.result import Failure, Stage
from kernelviz.measure.session.contract import CaseFailed, OpenSession, Session
from kernelviz.worker.protocol import (
    Calibrate,
    Cancel,
    Describe,
    Described,
    Hello,
    Inspect,
    Lines,
    Measure,
    Open,
    PluginFault,
    Reply,
    Request,
    Selftest,
    Shutdown,
    Task,
    TaskDone,
    TaskFailed,
    Told,
    decode_request,
    encode,
)


class Connection:
    """The worker's end of the pair of sockets."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.set_inheritable(False)  # a compiler of ours must not keep the stream open
        self._poll = select.poll()  # not select: the server may give us a number above the 1,024 that it can hold
        self._poll.register(self._socket, select.POLLIN)
        self._lines = Lines()
        self._requests: deque[Request] = deque()
        self._gone = False

    def send(self, reply: Reply) -> None:
        self._socket.sendall(encode(reply))

    def next(self) -> Request | None:
        """The next request, waiting for it; None when the server is gone."""
        while not self._requests:
            if self._gone:
                return None
            self._read()
        return self._requests.popleft()

    def cancelled(self, task: int) -> bool:
        """Has the end of this task been asked for? Never waits (about 1 µs)."""
        while not self._gone and self._poll.poll(0):
            self._read()
        return self._gone or any(isinstance(r, Cancel) and r.task == task for r in self._requests)

    def _read(self) -> None:
        try:
            data = self._socket.recv(1 << 16)
        except OSError:
            data = b""
        self._gone = not data
        self._requests += [decode_request(line) for line in self._lines.feed(data)]


class Worker:
    """One device, one session, one task at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._session: Session | None = None

    def run(self) -> None:
        while (request := self._connection.next()) is not None:
            match request:
                case Open():
                    self._open(request)
                case Describe():
                    self._describe(request)
                case Measure() | Calibrate() | Selftest() | Inspect():
                    self._do(request)
                case Cancel():
                    pass  # of a task that has ended meanwhile
                case Shutdown():
                    return

    def _open(self, request: Open) -> None:
        try:
            open_session = _session_opener(request.session)
            self._session = open_session(request.device, request.plugins)
            environment = self._session.environment()
        except Exception as error:
            traceback.print_exc()
            self._connection.send(TaskFailed(task=None, stage="unavailable", message=one_line(error)))
            sys.exit(3)
        self._connection.send(Hello(environment=environment, pid=os.getpid()))

    def _describe(self, request: Describe) -> None:
        from kernelviz.worker.plugin_description import PLUGIN, variants_of

        try:
            self._connection.send(Described(task=request.task, variants=variants_of(request.plugins)))
        except Exception as error:
            traceback.print_exc()
            fault = None
            if isinstance(error, BadField) and error.field == PLUGIN:
                fault = PluginFault(plugin=str(error.value), remedy=error.remedy)
            failed = TaskFailed(task=request.task, stage="unavailable", message=one_line(error), plugin=fault)
            self._connection.send(failed)

    def _do(self, request: Task) -> None:
        session = self._session
        if session is None:
            raise RuntimeError("a task came before Open")
        task = request.task

        def emit(event: Event) -> None:
            if isinstance(event, CaseDone):
                result = finite_result(event.result)
                event = event if result is event.result else CaseDone(result=result)
            self._connection.send(Told(task=task, event=event))

        def stop() -> bool:
            return self._connection.cancelled(task)

        try:
            match request:
                case Measure(problem=problem, variants=variants, baseline=baseline, method=method, tuned=tuned):
                    session.measure(problem, variants, baseline, method, emit, stop, tuned=tuned)
                case Calibrate():
                    session.calibrate(emit, stop)
                case Selftest(only=only, quick=quick):
                    session.selftest(emit, stop, only=only, quick=quick)
                case Inspect(problem=problem, variant=variant, tuned=tuned):
                    session.inspect(problem, variant, emit, stop, tuned=tuned)
        except Exception as error:
            traceback.print_exc()
            found = (
                error.failure
                if isinstance(error, CaseFailed)
                else Failure(stage=_stage(error), message=one_line(error))
            )
            failed = TaskFailed(
                task=task, stage=found.stage, reasons=found.reasons, message=found.message, spoilt=session.spoilt
            )
            self._connection.send(failed)
            return
        self._connection.send(TaskDone(task=task, spoilt=session.spoilt))


def _session_opener(name: str) -> OpenSession:
    module, _, function = name.partition(":")
    opener: OpenSession = getattr(importlib.import_module(module), function)
    return opener


def _stage(error: Exception) -> Stage:
    if isinstance(error, UsageError):
        return "unavailable"
    return "out_of_memory" if isinstance(error, MemoryError) else "crash"


def serve(fd: int) -> None:
    """Answer requests on the socket `fd` until the server leaves."""
    faulthandler.enable(file=sys.stderr)
    # Ctrl-C in a terminal is for the server, which cancels and ends workers in its own way.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(fd)
    try:
        Worker(connection).run()
    except BrokenPipeError:
        pass  # the server left while something was being told
    except msgspec.MsgspecError:
        traceback.print_exc()
        sys.exit(4)
