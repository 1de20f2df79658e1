"""The worker's side of the protocol: open a measuring session, do one unit of work after another, and report events.

stdout and stderr are the log, so that output of a variant can never become a message. There is no heartbeat and no second
thread, so that nothing runs beside a timed region.
"""

import contextlib
import faulthandler
import gc
import importlib
import select
import signal
import socket
import sys
import traceback
from collections import deque

from kernelviz.core import BadField, CaseDone, Event, Failure, Stage, UsageError
from kernelviz.core.errors import one_line
from kernelviz.core.finite import finite_result
from kernelviz.measure.compile_ahead.processes import CompilerProcesses
from kernelviz.measure.session.contract import CaseFailed, Emit, OpenSession, Session, Stop
from kernelviz.worker.protocol import (
    TO_WORKER,
    Calibrate,
    Cancel,
    Describe,
    Described,
    FromWorker,
    Hello,
    Incoming,
    Inspect,
    Measure,
    Open,
    Selftest,
    ToWorker,
    Work,
    WorkDone,
    WorkEvent,
    WorkFailed,
    encode,
)


class Connection:
    """The worker's end of the pair of sockets."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._socket.set_inheritable(False)  # a compiler that a variant starts must not keep the stream open
        self._poll = select.poll()  # not select: the descriptor's number may exceed select's limit of 1,024
        self._poll.register(self._socket, select.POLLIN)
        self._incoming = Incoming(TO_WORKER)
        self._messages: deque[ToWorker] = deque()
        self._gone = False

    def send(self, reply: FromWorker) -> None:
        self._socket.sendall(encode(reply))

    def next(self) -> ToWorker | None:
        """Wait for the next message; None when the server is gone."""
        while not (self._messages or self._gone):
            self._read()
        return self._messages.popleft() if self._messages else None

    def cancelled(self, work_id: int) -> bool:
        """Whether the server has cancelled this unit of work. Never waits (about 1 µs)."""
        while not self._gone and self._poll.poll(0):
            self._read()
        return self._gone or any(isinstance(r, Cancel) and r.work_id == work_id for r in self._messages)

    def _read(self) -> None:
        try:
            data = self._socket.recv(1 << 16)
        except OSError:
            data = b""
        self._gone = not data
        self._messages += list(self._incoming.feed(data))


class Worker:
    """One device, one session, one unit of work at a time."""

    def __init__(self, connection: Connection, judge_fd: int | None = None) -> None:
        self._connection = connection
        self._judge_fd = judge_fd
        self._session: Session | None = None
        self._compilers: CompilerProcesses | None = None

    def run(self) -> None:
        while (message := self._connection.next()) is not None:
            match message:
                case Open():
                    self._open(message)
                case Describe():
                    self._describe(message)
                case Measure() | Calibrate() | Selftest() | Inspect():
                    self._do(message)  # a Cancel that is left has come after the end of its work

    def _open(self, message: Open) -> None:
        try:
            module, _, function = message.session.partition(":")
            # What importing torch makes stays. Searching it for garbage, also at the end, takes a third of a worker's start.
            gc.disable()
            # They import torch while this process does, or while it opens the device, and go on until the first work.
            compilers = self._compilers = _compilers(message.compile_processes)
            open_session: OpenSession = getattr(importlib.import_module(module), function)
            gc.freeze()
            gc.enable()
            self._session = open_session(message.device, message.plugins)
            if compilers is not None:
                self._session.compile_with(compilers, message.plugins)
            environment = self._session.environment()
        except Exception as error:
            traceback.print_exc()
            self._connection.send(WorkFailed(failure=Failure(stage="unavailable", message=one_line(error))))
            sys.exit(3)
        self._connection.send(Hello(environment=environment))

    def _describe(self, message: Describe) -> None:
        from kernelviz.worker.plugin_description import PLUGIN, variants_of

        try:
            self._connection.send(Described(work_id=message.work_id, variants=variants_of(message.plugins)))
        except Exception as error:
            traceback.print_exc()
            plugin, text = None, one_line(error)
            if isinstance(error, BadField) and error.field == PLUGIN:
                plugin, text = str(error.value), error.remedy
            self._connection.send(
                WorkFailed(work_id=message.work_id, failure=Failure(stage="unavailable", message=text), plugin=plugin)
            )

    def _do(self, work: Work) -> None:
        session = self._session
        if session is None:
            raise RuntimeError("work was sent before Open")
        if self._compilers is not None:
            self._compilers.pause()
        work_id = work.work_id

        def emit(event: Event) -> None:
            if isinstance(event, CaseDone):
                event = CaseDone(result=finite_result(event.result))
            self._connection.send(WorkEvent(work_id=work_id, event=event))

        def stop() -> bool:
            return self._connection.cancelled(work_id)

        try:
            match work:
                case Measure(judged=True):
                    self._measure_judged(session, work, emit, stop)
                case Measure(problem=problem, variants=variants, baseline=baseline, method=method, tuned=tuned):
                    if work.upcoming:
                        session.compile_ahead(work.run_id, work.upcoming)
                    session.measure(
                        problem, variants, baseline, method, emit, stop, tuned=tuned, following=work.following
                    )
                case Calibrate():
                    session.calibrate(emit, stop)
                case Selftest(only=only, quick=quick):
                    session.selftest(emit, stop, only=only, quick=quick)
                case Inspect(problem=problem, variant=variant, tuned=tuned):
                    session.inspect(problem, variant, emit, stop, tuned=tuned)
        except Exception as error:
            traceback.print_exc()
            self._connection.send(WorkFailed(work_id=work_id, failure=_failure(error), spoilt=session.spoilt))
        else:
            self._connection.send(WorkDone(work_id=work_id, spoilt=session.spoilt))

    def _measure_judged(self, session: Session, work: Measure, emit: Emit, stop: Stop) -> None:
        if self._judge_fd is None or len(work.variants) != 1:
            raise RuntimeError("a judged measurement needs a judge, and is of one variant")
        session.measure_judged(
            work.problem, work.variants[0], work.method, self._judge_fd, emit, stop, tuned=work.tuned
        )


def _compilers(processes: int) -> CompilerProcesses | None:
    """The compiler processes of this worker; None if there are to be none, or if they cannot be started."""
    if processes == 0:
        return None
    try:
        return CompilerProcesses(processes)
    except OSError:
        traceback.print_exc()
        return None


def _failure(error: Exception) -> Failure:
    if isinstance(error, CaseFailed):
        return error.failure
    stage: Stage = "out_of_memory" if isinstance(error, MemoryError) else "crash"
    return Failure(stage="unavailable" if isinstance(error, UsageError) else stage, message=one_line(error))


def serve(fd: int, judge_fd: int | None = None) -> None:
    """Answer messages on the socket `fd` until the server closes it. `judge_fd`: a connection with a judge."""
    faulthandler.enable(file=sys.stderr)
    # Ctrl-C in a terminal also reaches this process, but the server handles it: it cancels the work and ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(BrokenPipeError):  # the server closed the socket while a message was being sent
        Worker(Connection(fd), judge_fd).run()
