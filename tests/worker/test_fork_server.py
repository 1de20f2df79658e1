"""Modules under a guard: a copy of the fork server finds what a new interpreter finds, and ends in the same ways."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

from kernelviz.core import Problem
from kernelviz.worker import fork_server, guarded_module, worker_slot
from kernelviz.worker.fork_server import ForkRequest
from kernelviz.worker.guarded_module import KILLED, ForkedGuard, Guard, start_guarded
from kernelviz.worker.judge_slot import JudgeSlot
from kernelviz.worker.limits import Limits

MODULE = "tests.worker.told_by_module"
NEEDED = fork_server.NEEDED
VALUE = os.fsdecode(b"of now \xff")
"""Of a variable; no text in UTF-8."""
WAYS = pytest.mark.parametrize("copied", [False, True], ids=["interpreter", "copy"])


@dataclass
class Run:
    """A module that runs under a guard."""

    connection: socket.socket
    pipe: int
    log: IO[bytes]
    guard: Guard
    found: dict[str, Any] = field(default_factory=dict)

    def end(self, how: str) -> tuple[int, str]:
        """Tell it how to end; its exit code and its log."""
        self.connection.sendall(how.encode())
        code = self.guard.wait(20)
        self.log.seek(0)
        return code, self.log.read().decode()


@contextmanager
def running(copied: bool, *arguments: str, keeps: int | None = None) -> Iterator[Run]:
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    with tempfile.TemporaryFile("ab+", buffering=0) as log, ours:
        ours.settimeout(30)
        with theirs:
            guard = start_guarded(
                MODULE,
                ["{0}", *arguments],
                pipe=read,
                log=log,
                sockets=[theirs.fileno()],
                guard_fds=[] if keeps is None else [keeps],
                copied=copied,
            )
        os.close(read)
        run = Run(ours, write, log, guard)
        try:
            line = b""
            while not line.endswith(b"\n"):
                line += ours.recv(1 << 16) or pytest.fail("it ended")
            run.found = json.loads(line)
            yield run
        finally:
            os.close(run.pipe)
            guard.wait(20)


@pytest.fixture(autouse=True)
def own_fork_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One that imports less, and is none of another test."""
    servers: list[guarded_module.ForkServer] = []
    monkeypatch.setattr(guarded_module, "_servers", servers)
    monkeypatch.setattr(guarded_module, "_failed", False)
    monkeypatch.setattr(fork_server, "NEEDED", ("decimal", "no_such_module_at_all"))
    yield
    for server in servers:
        server.close()


def test_a_copy_finds_what_a_new_interpreter_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for copied in (False, True):
        with running(copied):
            pass  # the fork server has its environment from now
        monkeypatch.setenv("KERNELVIZ_TEST_VARIABLE", VALUE)
        monkeypatch.chdir(tmp_path)
        with open(os.devnull) as kept, running(copied, "{0}", "x", keeps=kept.fileno()) as run:  # noqa: PTH123
            assert run.found.pop("arguments")[1:] == ["x"]
            assert {*run.found.pop("descriptors")} == {0, 1, 2, run.found.pop("socket")}
            assert psutil.Process(run.found.pop("pid")).ppid() != os.getpid()
            found.append(run.found)
        monkeypatch.delenv("KERNELVIZ_TEST_VARIABLE")
    interpreter, copy = found
    assert (interpreter.pop("decimal is loaded"), copy.pop("decimal is loaded")) == (False, True)
    assert interpreter == copy
    assert copy["variable"] == VALUE
    assert copy["folder"] == str(tmp_path)
    assert copy["signals"] == [True, True, True]
    assert copy["name"] == "__main__"


@WAYS
@pytest.mark.parametrize(
    ("how", "code", "log"),
    [
        ("0", 0, "told to 0"),
        ("3", 3, "told to 3"),
        ("nothing", 0, "told to nothing"),
        ("raise", 1, "RuntimeError: as it was told"),
        (f"signal {signal.SIGABRT}", -signal.SIGABRT, "told to signal"),
        (f"signal {signal.SIGKILL}", -signal.SIGKILL, "told to signal"),
    ],
)
def test_its_end_is_told(copied: bool, how: str, code: int, log: str) -> None:
    with running(copied) as run:
        assert run.guard.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            run.guard.wait(0.01)
        ended, printed = run.end(how)
        assert ended == code
        assert log in printed
        assert run.guard.poll() == run.guard.wait() == code


def test_what_has_changed_since_the_import_is_imported_anew_by_the_same_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package_of_test").mkdir()
    source = tmp_path / "package_of_test" / "__init__.py"
    source.write_text("value = 1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(fork_server, "NEEDED", ("package_of_test",))

    def found() -> tuple[int, bool]:
        """The pid of the fork server, and whether the module is a copy of it."""
        with running(True) as run:
            guard = psutil.Process(run.found["pid"]).parent()
            assert guard is not None
            above = guard.parent()
            assert above is not None
            copied = "kernelviz.worker.fork_server" in psutil.Process(run.found["pid"]).cmdline()
            return (above.pid if copied else above.ppid()), copied

    first = found()
    assert first[1]
    monkeypatch.setenv("KERNELVIZ_TEST_VARIABLE", "another")
    assert found() == first
    for change in (
        lambda: source.write_text("value = 23"),
        lambda: (tmp_path / "package_of_test" / "another.py").write_text(""),
        lambda: monkeypatch.setenv("TRITON_TEST_VARIABLE", "another"),
    ):
        change()
        assert found() == (first[0], False), "one new interpreter, while the fork server begins again"
        assert found() == first


def test_its_modules_stay_its_descendants_when_it_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """By this the product knows its own processes."""
    with running(True) as run:
        monkeypatch.setenv("TRITON_TEST_VARIABLE", "another")
        for _ in range(2):
            with running(True):
                pass
        assert run.found["pid"] in {child.pid for child in psutil.Process().children(recursive=True)}
        assert run.end("3")[0] == 3


def test_a_dead_fork_server_costs_no_running_module_and_is_replaced() -> None:
    with running(True) as run:
        server = psutil.Process(psutil.Process(run.found["pid"]).ppid()).parent()
        assert server is not None
        server.kill()
        until_s = time.monotonic() + 10
        while server.status() != psutil.STATUS_ZOMBIE and time.monotonic() < until_s:
            pass
        with running(True) as another:
            assert another.end("3")[0] == 3
        assert run.end("0")[0] == 0


def test_a_guard_that_was_killed_has_a_code() -> None:
    with running(True) as run:
        psutil.Process(run.found["pid"]).parent().kill()  # type: ignore[union-attr]
        assert run.guard.wait(20) == KILLED


@pytest.mark.parametrize(
    "module",
    ["import os\nos.abort()", "import time\ntime.sleep(300)", "import os\nos._exit(0)"],
    ids=["aborts", "hangs", "ends"],
)
def test_an_import_that_fails_costs_the_fork_server_only(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "bad_import.py").write_text(f"print('bad import', flush=True)\n{module}")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(fork_server, "NEEDED", ("bad_import",))
    ours, theirs = socket.socketpair()
    pipe = os.pipe()
    with ours, theirs, tempfile.TemporaryFile() as log:
        guard = start_guarded(MODULE, ["{0}"], pipe=pipe[0], log=log, sockets=[theirs.fileno()], copied=True)
        if "sleep" in module:
            with pytest.raises(subprocess.TimeoutExpired):
                guard.wait(1.0)
        else:
            assert guard.wait(20) == KILLED
        assert guarded_module.never_began(guard)
        assert guard.wait(20) == KILLED
    for fd in pipe:
        os.close(fd)
    assert "bad import" in caplog.text
    with running(True) as run:
        assert not guarded_module.never_began(run.guard)
        assert "kernelviz.worker.fork_server" not in psutil.Process(run.found["pid"]).cmdline()


def test_a_worker_and_a_judge_start_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first of them finds a fork server that fails."""
    (tmp_path / "bad_import.py").write_text("import os\nos.abort()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(fork_server, "NEEDED", ("bad_import",))
    session = "tests.worker.sessions:open_session"
    monkeypatch.setattr(worker_slot, "SESSION", session)
    worker = worker_slot.WorkerSlot("cpu", session, Limits())
    ready = worker.ready((), lambda why: None, lambda: False)
    worker.end("the test is over", 10.0)
    assert ready is not None, worker.trouble
    assert worker.started == 2
    monkeypatch.setattr(guarded_module, "_failed", False)
    judge = JudgeSlot("cpu", Limits(), copied=True)
    connection = judge.begin(Problem(op="add", sizes={"n": 4}, dtype="fp32"), lambda: False)
    judge.end()
    assert connection is not None, judge.trouble
    connection.close()
    assert guarded_module._failed


def test_without_its_folder_or_a_file_for_the_request_a_module_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / os.fsdecode(b"\xff")
    gone.mkdir()
    monkeypatch.chdir(gone)
    with running(True) as run:
        assert os.fsencode(run.found["folder"]).endswith(b"\xff")
    gone.rmdir()
    with running(True) as run:
        assert run.found["folder"] == ""

    def no_file(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fork_server, "ask", no_file)
    with running(True) as run:
        assert "kernelviz.worker.fork_server" not in psutil.Process(run.found["pid"]).cmdline()


def test_several_threads_may_ask_a_guard() -> None:
    for _ in range(20):
        read, write = os.pipe()
        guard = ForkedGuard(read)
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(guard.wait, 10.0) for _ in range(4)]
            os.write(write, fork_server.BEGAN)
            os.write(write, (-6).to_bytes(4, "little", signed=True))
            assert {one.result() for one in asked} == {-6}
        os.close(write)


def test_the_product_s_own_worker_and_judge_are_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that it imports, torch and Triton among it."""
    monkeypatch.setattr(fork_server, "NEEDED", NEEDED)
    worker, judge = (
        worker_slot.WorkerSlot("cpu", worker_slot.SESSION, Limits()),
        JudgeSlot("cpu", Limits(), copied=True),
    )
    for first in (True, False):
        ready = worker.ready((), lambda why: None, lambda: False)
        assert ready is not None, worker.trouble
        connection = judge.begin(Problem(op="add", sizes={"n": 4}, dtype="fp32"), lambda: False)
        assert connection is not None, judge.trouble
        connection.close()
        server = psutil.Process(guarded_module._servers[0].pid)
        guards = server.children()
        assert len(guards) == 2, "nothing is started anew, and nothing ended is left"
        programs = [process for guard in guards for process in (guard, *guard.children())]
        assert all("kernelviz.worker.fork_server" in process.cmdline() for process in programs)
        assert server.num_threads() <= 2
        worker.end("the next one", 10.0)
        judge.end()
        if first:
            number = server.pid
        assert server.pid == number
    assert worker.started == 2


# A fork server one of whose imports has opened a device.
OPENED = """
import sys
from kernelviz.worker import fork_server
opened = open(sys.argv[2])
fork_server.DEVICES = sys.argv[2]
fork_server.serve(int(sys.argv[1]), ["decimal"])
"""


def test_where_an_import_opened_a_device_new_interpreters_are_started(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").write_text("")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    to_module, of_module = socket.socketpair()
    pipe, code = os.pipe(), os.pipe()
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-c", OPENED, str(theirs.fileno()), str(tmp_path / "nvidia0")],
            pass_fds=[theirs.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        )
    with server, tempfile.TemporaryFile() as log, to_module:
        to_module.settimeout(30)
        request = ForkRequest(
            module=MODULE,
            arguments=("{0}",),
            sockets=1,
            environment={os.fsencode(k): os.fsencode(v) for k, v in guarded_module.environment().items()},
            folder=os.fsencode(tmp_path),
        )
        fork_server.ask(ours, request, [pipe[0], code[1], log.fileno(), of_module.fileno()])
        of_module.close()
        os.close(code[1])
        found = json.loads(to_module.recv(1 << 16))
        assert not found["decimal is loaded"]
        to_module.sendall(b"3")
        assert ForkedGuard(code[0]).wait(20) == 3
        os.close(pipe[0])
        os.close(pipe[1])
        ours.close()
        assert server.stderr is not None
        assert "an import opened" in server.stderr.read()
    assert server.returncode == 0
