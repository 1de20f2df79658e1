"""Run commands on several GPUs of one host at once, each GPU's own commands one after the other, within a time limit.

    python tests/gpu/side_by_side.py FOLDER --most-s SECONDS 0:"COMMAND" 0:"COMMAND" 1:"COMMAND" ...

A command gets one GPU (CUDA_VISIBLE_DEVICES), an equal share of the processors, a KERNELVIZ_HOME and caches of compilers
of that GPU in FOLDER, and writes to FOLDER/gpu-N.txt. `{left}` in a command is the number of seconds that are left for
its GPU, `{gpu}` the number of the GPU. What runs when the time is over gets SIGINT, and SIGKILL 20 s later. Ends with 1
if a command failed or was not begun. A measurement needs a GPU and its processors for itself; memory bandwidth of the
host is shared.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

GRACE_S = 20.0
"""Between the wish to end and the end of a command that does not."""
LEAST_S = 5.0
"""With less left, no command is begun."""
CACHES = {"KERNELVIZ_HOME": "home", "TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor"}


def queues_of(given: Sequence[str]) -> dict[int, list[str]]:
    """The commands of each GPU. Errors: ValueError.

    >>> queues_of(["0:a b", "1:c", "0:d"])
    {0: ['a b', 'd'], 1: ['c']}
    """
    queues: dict[int, list[str]] = {}
    for one in given:
        gpu, colon, command = one.partition(":")
        if not (gpu.isdecimal() and colon and command.strip()):
            raise ValueError(f"{one!r}: give the number of a GPU, a colon and a command")
        queues.setdefault(int(gpu), []).append(command)
    return queues


def processors(place: int, of: int, every: Sequence[int]) -> set[int]:
    """The share of the processors of the GPU at this place: neighbours, so that they are of one socket where that is possible.

    >>> processors(1, 2, range(32)) == set(range(16, 32)), processors(0, 3, range(2))
    (True, {0, 1})
    """
    share = len(every) // of
    return set(every[place * share : (place + 1) * share]) if share else set(every)


def interrupt(process: subprocess.Popen[bytes], grace_s: float) -> int:
    """Send SIGINT to a process, and after that long SIGKILL: to its whole group if it leads one. Returns its exit code."""
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(grace_s)
    except subprocess.TimeoutExpired:
        leads_group = os.getpgid(process.pid) == process.pid
        (os.killpg if leads_group else os.kill)(process.pid, signal.SIGKILL)
        return process.wait()


class Stream:
    """The commands of one GPU."""

    def __init__(self, folder: Path, gpu: int, commands: Sequence[str], share: set[int], until_s: float) -> None:
        self.folder, self.gpu, self.commands, self.share, self.until_s = folder, gpu, commands, share, until_s
        self.ends: list[str] = []
        self.failed = False

    def run(self) -> None:
        with (self.folder / f"gpu-{self.gpu}.txt").open("w") as log:
            for command in self.commands:
                left_s = self.until_s - time.monotonic()
                if left_s < LEAST_S:
                    self._note(command, "was not begun: the time is over", failed=True)
                    continue
                text = command.replace("{left}", f"{left_s:.0f}").replace("{gpu}", str(self.gpu))
                began_s = time.monotonic()
                code = self._ended(subprocess.Popen(shlex.split(text), env=self._environment(), stdout=log, stderr=log))
                self._note(text, f"ended with {code} after {time.monotonic() - began_s:.0f} s", failed=code != 0)

    def _environment(self) -> Mapping[str, str]:
        own = {name: str(self.folder / f"{cache}-{self.gpu}") for name, cache in CACHES.items()}
        return {**os.environ, **own, "CUDA_VISIBLE_DEVICES": str(self.gpu)}

    def _ended(self, process: subprocess.Popen[bytes]) -> int:
        os.sched_setaffinity(process.pid, self.share)
        try:
            return process.wait(max(0.0, self.until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            return interrupt(process, GRACE_S)

    def _note(self, command: str, end: str, *, failed: bool) -> None:
        self.ends.append(f"GPU {self.gpu}: {command}: {end}")
        self.failed = self.failed or failed


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("commands", nargs="+", metavar="GPU:COMMAND")
    parser.add_argument("--most-s", type=float, required=True)
    given = parser.parse_args(arguments)
    try:
        queues = queues_of(given.commands)
    except ValueError as error:
        parser.error(str(error))
    given.folder.mkdir(parents=True, exist_ok=True)
    until_s, every = time.monotonic() + given.most_s, sorted(os.sched_getaffinity(0))
    streams = [
        Stream(given.folder, gpu, commands, processors(place, len(queues), every), until_s)
        for place, (gpu, commands) in enumerate(queues.items())
    ]
    threads = [threading.Thread(target=stream.run) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for stream in streams:
        print("\n".join(stream.ends))  # noqa: T201
    return 1 if any(stream.failed for stream in streams) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
