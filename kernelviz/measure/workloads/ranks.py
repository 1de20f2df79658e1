"""Start rank processes, pass on their progress, and collect their answers; one that fails ends all."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from select import POLLIN, poll
from typing import IO, Any

import msgspec

from kernelviz.core.workload import WorkloadProgress
from kernelviz.measure.workloads.messages import FROM_RANK, Lines, RankAnswer, RankRaised, RankRequest
from kernelviz.workloads.catalog import RankFailed

_TAIL_BYTES = 1500
_GRACE_S = 0.5
"""After the first rank failed, so long the others may say why they failed, because the first to end need not be the cause."""


class _Rank:
    """One rank process with the reading end of its pipe and its log."""

    def __init__(self, request: RankRequest, folder: Path) -> None:
        file = folder / f"rank-{request.rank}.json"
        file.write_bytes(msgspec.json.encode(request))
        self.number = request.rank
        self.pipe, theirs = os.pipe()
        self.log: IO[bytes] = tempfile.TemporaryFile("ab+", dir=folder, buffering=0)  # noqa: SIM115
        self.lines = Lines()
        self.answer: RankAnswer | None = None
        self.raised: RankRaised | None = None
        self.open = True
        command = [sys.executable, "-P", "-m", "kernelviz.measure.workloads.rank_process", str(theirs), str(file)]
        environment = {**os.environ, "RANK": str(request.rank), "WORLD_SIZE": str(request.world_size)}
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, pass_fds=(theirs,), env=environment
            )
        finally:
            os.close(theirs)

    @property
    def failed(self) -> bool:
        """Whether it ended without an answer."""
        return not self.open and self.answer is None

    def read(self, tell: Callable[[WorkloadProgress], None]) -> None:
        data = os.read(self.pipe, 1 << 18)
        self.open = bool(data)
        for line in self.lines.feed(data):
            match FROM_RANK.decode(line):
                case RankAnswer() as answer:
                    self.answer = answer
                case RankRaised() as raised:
                    self.raised = raised
                case WorkloadProgress() as progress:
                    tell(progress)

    def failure(self) -> RankFailed:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        size = os.fstat(self.log.fileno()).st_size
        log = os.pread(self.log.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES)).decode(errors="replace").strip()
        if self.raised is not None:
            raised = self.raised
            return RankFailed(self.number, raised.kind, raised.text, out_of_memory=raised.out_of_memory, log=log)
        code = self.process.poll()
        if code is not None and code < 0:
            return RankFailed(self.number, signal=signal.Signals(-code).name, log=log)
        return RankFailed(self.number, exit_code=code, log=log)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self.pipe)
        self.log.close()


def call_ranks(
    requests: Sequence[RankRequest], folder: Path, tell: Callable[[WorkloadProgress], None]
) -> tuple[Any, ...]:
    """Start a process for each request and return their answers, by rank. `folder`: for their files. `tell`: receives the
    progress of rank 0. Errors: RankFailed."""
    ranks: list[_Rank] = []
    try:
        for request in requests:
            ranks.append(_Rank(request, folder))  # noqa: PERF401 (what has started is ended, also if the next cannot start)
        until_s: float | None = None
        while any(rank.open for rank in ranks) and (until_s is None or time.monotonic() < until_s):
            watched = poll()
            for rank in ranks:
                if rank.open:
                    watched.register(rank.pipe, POLLIN)
            ready = {descriptor for descriptor, _ in watched.poll(100 if until_s else None)}
            for rank in ranks:
                if rank.open and rank.pipe in ready:
                    rank.read(tell)
            if until_s is None and any(rank.failed or rank.raised for rank in ranks):
                until_s = time.monotonic() + _GRACE_S
        failed = [rank for rank in ranks if rank.answer is None]
        if failed:
            # A rank that died or ran out of memory is the cause; the others only lost their peer.
            died = [r for r in failed if r.failed and r.raised is None]
            short = [r for r in failed if r.raised is not None and r.raised.out_of_memory]
            said = [r for r in failed if r.raised is not None]
            raise (died or short or said or failed)[0].failure()
        return tuple(rank.answer.value for rank in ranks if rank.answer is not None)
    finally:
        for rank in ranks:
            rank.end()
