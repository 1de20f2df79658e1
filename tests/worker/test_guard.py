"""After any process dies in any way, no process of a worker is left three seconds later. All processes are real: workers that are
new interpreters, and copies of the fork server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]

# A server that measures "compiler": the worker starts an orphan in a session of its own and a child in another, then hangs.
SERVER = """
import sys, threading
from pathlib import Path
from kernelviz.worker import fork_server, supervisor, worker_slot
from kernelviz.core.problem import Problem
from kernelviz.worker.request import Request
from kernelviz.worker.supervisor import Supervisor
from tests.worker.sessions import DEVICE

class Sink:
    cancelled = False
    def begun(self, environment): pass
    def tell(self, event): pass
    def ended(self, end, message): pass

SESSION = "tests.worker.sessions:open_session"

if __name__ == "__main__":
    if sys.argv[2] == "copy":
        worker_slot.SESSION = supervisor.SESSION = SESSION
        fork_server.NEEDED = (*fork_server.NEEDED[3:4], "tests.worker.sessions")  # no torch
    made = Supervisor(DEVICE, session=SESSION, lock_directory=Path(sys.argv[1]))
    problem = Problem(op="add", sizes={"n": 1}, dtype="fp32")
    made.submit([Request(run_id="r", owner="", sink=Sink(), problem=problem, variants=("compiler",), baseline="compiler")])
    sys.stdin.read()
    made.close()
    print("closed", flush=True)
"""


def eventually(true: Callable[[], object], within_s: float, what: str) -> None:
    until = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < until, what
        time.sleep(0.01)


class Server:
    def __init__(self, folder: Path, way: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(folder), way],
            cwd=ROOT,
            env={**os.environ, "KERNELVIZ_TEST_PIDS": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        eventually(lambda: (folder / "worker.pid").exists(), 20, "the worker did not start its children")
        self.pids = {name: int((folder / f"{name}.pid").read_text()) for name in ("worker", "child", "orphan")}
        self.pids["guard"] = psutil.Process(self.pids["worker"]).ppid()
        self.above_guard = psutil.Process(self.pids["guard"]).ppid()

    def left(self) -> dict[str, int]:
        return {name: pid for name, pid in self.pids.items() if _lives(pid)}


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(params=["interpreter", "copy"])
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    made = Server(tmp_path, request.param)
    assert (made.above_guard == made.process.pid) == (request.param == "interpreter")
    yield made
    made.process.kill()
    made.process.wait()
    assert made.process.stdin is not None
    assert made.process.stdout is not None
    made.process.stdin.close()
    made.process.stdout.close()


def test_the_processes_are_those_that_are_hard_to_reach(server: Server) -> None:
    assert set(server.left()) == {"worker", "child", "orphan", "guard"}
    sessions = {os.getsid(pid) for pid in (server.process.pid, *server.pids.values())}
    assert len(sessions) == 5
    # The orphan's parent has ended; the guard, not init, has inherited it.
    assert psutil.Process(server.pids["orphan"]).ppid() == server.pids["guard"]


def test_kill_9_of_the_server_while_a_compiler_runs(server: Server) -> None:
    server.process.kill()
    eventually(lambda: not server.left(), 3, f"left: {server.left()}")


def test_the_end_of_the_worker_ends_what_it_started(server: Server) -> None:
    os.kill(server.pids["worker"], signal.SIGSEGV)
    eventually(lambda: not server.left(), 3, f"left: {server.left()}")
    assert server.process.poll() is None


def test_a_guard_that_is_asked_to_leave_takes_everything_with_it(server: Server) -> None:
    os.kill(server.pids["guard"], signal.SIGTERM)
    eventually(lambda: not server.left(), 3, f"left: {server.left()}")


def test_a_closed_supervisor_leaves_nothing(server: Server) -> None:
    output, _ = server.process.communicate(timeout=10)  # closes its stdin, which ends it
    assert output == "closed\n"
    assert not server.left()


def test_the_lock_outlives_a_killed_server_until_its_worker_is_gone(server: Server, tmp_path: Path) -> None:
    from kernelviz.worker.device_lock import DeviceLock
    from tests.worker.sessions import DEVICE

    os.kill(server.pids["guard"], signal.SIGSTOP)  # so that it cannot clean up yet
    try:
        server.process.kill()
        server.process.wait()
        lock = DeviceLock(DEVICE.uuid, tmp_path)
        asked = iter([False, False, True])
        assert not lock.acquire(lambda holder: None, lambda: next(asked))
        assert "worker" in server.left()
    finally:
        os.kill(server.pids["guard"], signal.SIGCONT)
    until = time.monotonic() + 3
    assert lock.acquire(lambda holder: None, lambda: time.monotonic() > until)
    assert not set(server.left()) - {"guard"}
    lock.close()
