"""The worker's side of compilation ahead: it starts the compiler processes, says what is compiled next, and stops them while it
measures.

The rule that keeps times as they are: from the worker's first work on, the processes run only inside of
`CompilerProcesses.running`, which the worker opens while it binds, checks or waits for a compilation. At every other time the
whole process group is stopped (SIGSTOP).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from kernelviz.core import CompiledAhead, Problem, Tuned
from kernelviz.core.problem import case_key
from kernelviz.hardware.cpu import threads
from kernelviz.measure.compile_ahead.end_with_parent import end_with_parent
from kernelviz.measure.compile_ahead.messages import (
    FROM_DISPATCHER,
    Begin,
    CompileBegan,
    CompileEnded,
    CompileWork,
    DeviceFacts,
    Lines,
    Queue,
    Skip,
    ToDispatcher,
    encode,
)

PROCESSES = "KERNELVIZ_COMPILE_PROCESSES"
"""The variable that sets the number of compiler processes; 0 compiles everything in the worker."""
SPARE_CORES = 2
"""Cores that are left to the worker and the server."""
NO_DRIVER = Path(__file__).parent / "no_driver"
"""A folder whose file ``libcuda.so.1`` is no library, so that loading it fails."""
LONGEST_WAIT_S = 60.0
"""After waiting this long for a case, the worker compiles it itself, so that its own limits apply."""
HEAD_START = 12
"""Cases of the first problem, at most, that the worker compiles itself while no process compiles yet: softmax's first seven take
1.7 s in line on an H200, and 3.2 s if the worker waits for processes that have just started. With a head start of 8 for eleven
cases, all of which are bound before one is measured, the first result came after 7.0 s, and after 6.2 in line."""
_POLL_S = 0.05
_MOST_KNOWN = 20_000

_State = Literal["queued", "began", "ended"]
Tell = Callable[[CompiledAhead], None]
Work = tuple[Problem, str, Tuned | None]
"""A case, and the stored configuration of its variant if there is one."""


def compile_processes(text: str | None = None, cores: int | None = None) -> int:
    """The number of compiler processes: what KERNELVIZ_COMPILE_PROCESSES says, else the cores less two, and at least one.

    >>> compile_processes("", 16), compile_processes("", 2), compile_processes("3", 16), compile_processes("0", 16)
    (14, 1, 3, 0)
    """
    text = os.environ.get(PROCESSES, "") if text is None else text
    if text.strip().isdigit():
        return int(text)
    return max(1, (threads() if cores is None else cores) - SPARE_CORES)


class CompilesAhead(Protocol):
    """What a session asks of the processes that compile ahead."""

    def begin(self, facts: DeviceFacts, plugins: tuple[str, ...]) -> None:
        """Say for which device is compiled. To be called once, before `expect`."""

    def expect(self, run_id: str, work: Sequence[Work]) -> None:
        """Compile these cases of a run in this order, and nothing else any more that has not begun."""

    def running(self) -> AbstractContextManager[None]:
        """The processes run while this is open. Nothing may be timed meanwhile."""

    def wait(self, work: Work, stop: Callable[[], bool], tell: Tell) -> None:
        """Wait while a process compiles this case; if none has begun with it, the caller compiles it. Reports the progress."""

    def cancel(self) -> None:
        """End every compilation of the run that is cancelled."""


class CompilerProcesses:
    """The compiler processes of one worker. If they end for whatever reason, the worker compiles everything itself."""

    def __init__(self, processes: int) -> None:
        """Start the dispatcher, which imports torch and Triton meanwhile. It runs until the first `pause`. Raises OSError."""
        self.processes = processes
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        self._outgoing, self._lines = bytearray(), Lines()
        self._next_queue: list[CompileWork] | None = None
        """The queue to send when everything else is sent: while the dispatcher is stopped, only the newest is held."""
        self._open = 0
        self._stopped = self._gone = False
        self._states: dict[str, _State] = {}
        self._numbers: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._pids: dict[int, int] = {}
        """The compiler process by the number of the case that it compiles now."""
        self._run_id, self._of_run, self._reported = "", dict[str, None](), (0, 0)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kernelviz.measure.compile_ahead", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                preexec_fn=partial(end_with_parent, os.getpid()),
                env=_environment(),
            )

    @property
    def pid(self) -> int:
        """Of the dispatcher, which is also the number of the process group."""
        return self._process.pid

    def begin(self, facts: DeviceFacts, plugins: tuple[str, ...]) -> None:
        """See CompilesAhead."""
        self._send(Begin(device=facts, plugins=plugins, processes=self.processes))

    def expect(self, run_id: str, work: Sequence[Work]) -> None:
        """See CompilesAhead."""
        if run_id != self._run_id or len(self._states) > _MOST_KNOWN:
            self._run_id, self._of_run, self._reported = run_id, {}, (0, 0)
        if len(self._states) > _MOST_KNOWN:
            self._states = {key: state for key, state in self._states.items() if state == "began"}
        queue: list[CompileWork] = []
        for problem, variant, tuned in work:
            key = _key((problem, variant, tuned))
            self._of_run[key] = None
            if self._states.setdefault(key, "queued") == "queued":
                number = self._numbers.setdefault(key, len(self._keys) + 1)
                self._keys[number] = key
                queue.append(CompileWork(number=number, problem=problem, variant=variant, tuned=tuned))
        self._exchange(0.0)
        of_first = sum(one.problem == queue[0].problem for one in queue)
        first = 0 if self._pids else min(HEAD_START, of_first)
        self._next_queue = queue[first:] + queue[:first]
        self._exchange(0.0)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """See CompilesAhead."""
        self._open += 1
        self._continue()
        try:
            yield
        finally:
            self._open -= 1
            if self._open == 0:
                self.pause()

    def pause(self) -> None:
        """Stop all processes now."""
        self._exchange(0.0)
        if not self._gone and not self._stopped:
            self._signal(signal.SIGSTOP)
            self._stopped = True

    def wait(self, work: Work, stop: Callable[[], bool], tell: Tell) -> None:
        """See CompilesAhead."""
        key = _key(work)
        if self._gone or key not in self._of_run:
            return
        until_s = time.monotonic() + LONGEST_WAIT_S
        with self.running():
            self._exchange(0.0)
            while self._states.get(key) == "began" and not self._gone and time.monotonic() < until_s and not stop():
                self._exchange(_POLL_S)
                self._report(tell)
            if self._states.get(key) == "queued":
                self._states[key] = "ended"
                self._send(Skip(number=self._numbers[key]))
            self._report(tell)

    def let_run(self, seconds: float) -> None:
        """Do nothing but compile for that long, or until a message arrives."""
        with self.running():
            self._exchange(seconds)

    def progress(self) -> tuple[int, int]:
        """How many cases of the current run are compiled, and how many there are."""
        return sum(self._states.get(key) == "ended" for key in self._of_run), len(self._of_run)

    def compiling(self) -> tuple[int, ...]:
        """The compiler processes that are at a case."""
        return tuple(self._pids.values())

    def cancel(self) -> None:
        """See CompilesAhead."""
        self._exchange(0.0)
        for pid in self._pids.values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self._pids.clear()
        for key in self._of_run:
            if self._states.get(key) in ("queued", "began"):
                del self._states[key], self._numbers[key]
        self._of_run.clear()
        self._next_queue = []
        self._exchange(0.0)

    def close(self) -> None:
        """End all processes."""
        if not self._gone:
            self._signal(signal.SIGKILL)
            self._gone = True
        self._process.wait()
        self._socket.close()

    def _report(self, tell: Tell) -> None:
        if self.progress() != self._reported:
            self._reported = compiled, total = self.progress()
            tell(CompiledAhead(compiled=compiled, total=total, processes=self.processes))

    def _continue(self) -> None:
        if not self._gone and self._stopped:
            self._signal(signal.SIGCONT)
            self._stopped = False
        self._exchange(0.0)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _send(self, message: ToDispatcher) -> None:
        # Never blocks: the dispatcher may be importing torch, or stopped.
        self._outgoing += encode(message)
        self._exchange(0.0)

    def _exchange(self, timeout_s: float) -> None:
        """Send what is left to send, and read what has arrived; wait up to `timeout_s` for either."""
        if self._gone:
            return
        if self._next_queue is not None and not self._outgoing:
            work = tuple(w for w in self._next_queue if self._states.get(self._keys[w.number]) == "queued")
            self._outgoing += encode(Queue(work=work))
            self._next_queue = None
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._outgoing else 0))
        for _, event in poll.poll(timeout_s * 1000):
            try:
                if event & select.POLLOUT and self._outgoing:
                    del self._outgoing[: self._socket.send(self._outgoing)]
                if event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                    self._read()
            except BlockingIOError:
                pass
            except (OSError, msgspec.MsgspecError):
                self._lost()

    def _read(self) -> None:
        data = self._socket.recv(1 << 18)
        if not data:
            self._lost()
        for line in self._lines.feed(data):
            match FROM_DISPATCHER.decode(line):
                case CompileBegan(number=number, pid=pid):
                    self._pids[number] = pid
                    self._set(number, "began")
                case CompileEnded(number=number):
                    self._pids.pop(number, None)
                    self._set(number, "ended")

    def _set(self, number: int, state: _State) -> None:
        """Note the state of a case, unless it was cancelled since it got this number, or the worker has compiled it."""
        key = self._keys[number]
        if self._numbers.get(key) == number and self._states.get(key) != "ended":
            self._states[key] = state

    def _lost(self) -> None:
        """The dispatcher has ended: nothing is compiled ahead any more."""
        self._signal(signal.SIGKILL)
        self._gone = True
        self._process.poll()


def _environment() -> dict[str, str]:
    """That of the compiler processes: no CUDA device is visible, and the CUDA driver, which NVRTC would use, cannot be loaded."""
    libraries = filter(None, (str(NO_DRIVER), os.environ.get("LD_LIBRARY_PATH")))
    return {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        "OMP_NUM_THREADS": "1",
    }


def _key(work: Work) -> str:
    problem, variant, tuned = work
    configuration = "" if tuned is None else " ".join(f"{k}={v}" for k, v in sorted(tuned.configuration.items()))
    return f"{case_key(problem, variant)} {configuration}"
