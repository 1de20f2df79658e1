"""A server that serves many browsers gives its workers descriptors of numbers that select() cannot hold."""

from __future__ import annotations

import fcntl
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kernelviz.worker import guard
from kernelviz.worker.child import Connection
from kernelviz.worker.protocol import Cancel, encode

HIGH = 1100


@pytest.fixture(autouse=True)
def many() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < HIGH + 100:
        pytest.skip(f"this process may have {hard} descriptors only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, HIGH + 100), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def high(fd: int) -> int:
    """The same under a high number."""
    made = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH)
    os.close(fd)
    return made


def test_the_worker_sees_a_cancel() -> None:
    ours, theirs = socket.socketpair()
    connection = Connection(high(theirs.detach()))
    with ours:
        assert not connection.cancelled(7)
        ours.sendall(encode(Cancel(work_id=7)))
        assert connection.cancelled(7)
        assert not connection.cancelled(8)
    assert connection.cancelled(8), "the server is gone"


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("exit 3", 3)])
def test_the_guard_ends_as_its_worker(command: str, code: int) -> None:
    read, write = os.pipe()
    pipe = high(read)
    ours, theirs = socket.socketpair()
    stream = high(theirs.detach())
    try:
        run = [sys.executable, "-I", "-S", guard.__file__, str(pipe), str(stream), "/bin/sh", "-c", command]
        ended = subprocess.run(run, pass_fds=(pipe, stream), capture_output=True, text=True, timeout=20, check=False)
    finally:
        ours.close()
        for fd in (pipe, stream, write):
            os.close(fd)
    assert (ended.returncode, ended.stderr) == (code, "")


def test_the_guard_sees_the_end_of_the_server() -> None:
    read, write = os.pipe()
    pipe = high(read)
    ours, theirs = socket.socketpair()
    stream = high(theirs.detach())
    run = [sys.executable, "-I", "-S", guard.__file__, str(pipe), str(stream), "/bin/sleep", "60"]
    with ours, subprocess.Popen(run, pass_fds=(pipe, stream), stderr=subprocess.PIPE, text=True) as process:
        for fd in (pipe, stream, write):
            os.close(fd)
        assert process.wait(20) == -9, "killed as its worker was"
        assert process.stderr is not None
        assert process.stderr.read() == ""
