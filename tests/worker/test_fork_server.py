"""Modules under a guard: a copy of the fork server finds what a new interpreter finds, and ends in the same ways."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

from kernelviz.worker import fork_server, guarded_module
from kernelviz.worker.fork_server import ForkRequest
from kernelviz.worker.guarded_module import KILLED, ForkedGuard, Guard, start_guarded

MODULE = "tests.worker.told_by_module"
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


def test_copies_come_from_one_process_until_what_it_imported_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def above() -> int:
        """The pid of the fork server."""
        with running(True) as run:
            return psutil.Process(psutil.Process(run.found["pid"]).ppid()).ppid()

    first = above()
    monkeypatch.setenv("KERNELVIZ_TEST_VARIABLE", "another")
    assert above() == first
    monkeypatch.setenv("TRITON_TEST_VARIABLE", "another")
    second = above()
    assert second != first
    (tmp_path / "site-packages").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    third = above()
    assert third != second
    (tmp_path / "site-packages" / "new-1.0.dist-info").mkdir()
    assert above() != third
    assert not psutil.pid_exists(first)


def test_a_dead_fork_server_costs_no_running_module_and_is_replaced() -> None:
    with running(True) as run:
        server = psutil.Process(psutil.Process(run.found["pid"]).ppid()).parent()
        assert server is not None
        server.kill()
        with running(True) as another:
            assert another.end("3")[0] == 3
        assert run.end("0")[0] == 0


def test_a_guard_that_was_killed_has_a_code() -> None:
    with running(True) as run:
        psutil.Process(run.found["pid"]).parent().kill()  # type: ignore[union-attr]
        assert run.guard.wait(20) == KILLED


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
            folder=str(tmp_path),
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
