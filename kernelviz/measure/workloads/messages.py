"""What the process of a runner is asked, and what it and its ranks send: one JSON object per line, in a pipe of their own."""

import os
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from kernelviz.core import Device, Failure
from kernelviz.core.workload import WorkloadCase, WorkloadMeasurement, WorkloadMethod, WorkloadProgress

MOST_LINE_BYTES = 64 * 2**20


class RunnerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Cases at the same values of the axes, to be measured in one process. `module`: that declares the workload."""

    cases: tuple[WorkloadCase, ...]
    devices: tuple[Device, ...]
    method: WorkloadMethod
    plugins: tuple[str, ...] = ()


class RankRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a rank process is asked. `backend`: None for a process of its own without a process group. `rendezvous`: the file by
    which ranks find each other. `cases`: how many cases the budget is for."""

    workload: str
    plugins: tuple[str, ...]
    function: str
    arguments: Any
    rank: int
    world_size: int
    backend: Literal["nccl", "gloo"] | None
    rendezvous: str
    device: Device
    method: WorkloadMethod
    folder: str
    current: str


class MeasurementDone(msgspec.Struct, frozen=True, kw_only=True, tag="measurement", tag_field="event"):
    """The runner has finished a case, or it failed."""

    measurement: WorkloadMeasurement


class RunnerEnded(msgspec.Struct, frozen=True, kw_only=True, tag="runner_ended", tag_field="event"):
    """The runner is done. `failure`: of an exception that belongs to no single case, or to `variant`."""

    failure: Failure | None = None
    variant: str = ""


class RankAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="answer", tag_field="event"):
    """The function of a rank has returned."""

    value: Any = None


class RankRaised(msgspec.Struct, frozen=True, kw_only=True, tag="raised", tag_field="event"):
    """The function of a rank raised an exception."""

    kind: str
    text: str
    out_of_memory: bool = False


FromRunner = WorkloadProgress | MeasurementDone | RunnerEnded
FromRank = WorkloadProgress | RankAnswer | RankRaised
FROM_RUNNER: msgspec.json.Decoder[FromRunner] = msgspec.json.Decoder(FromRunner)
FROM_RANK: msgspec.json.Decoder[FromRank] = msgspec.json.Decoder(FromRank)


class Sender:
    """Writes messages to a pipe."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)  # a data loader's process must not keep the pipe open
        self._descriptor = descriptor

    def send(self, message: FromRunner | FromRank) -> None:
        """Write one message. Errors: OSError if nobody reads any more."""
        data = memoryview(msgspec.json.encode(message) + b"\n")
        while data:
            data = data[os.write(self._descriptor, data) :]


class Lines:
    """Splits what comes through a pipe into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that are complete now. Errors: ValueError for a line that is too long."""
        self._rest += data
        while (end := self._rest.find(b"\n")) >= 0:
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            yield line
        if len(self._rest) > MOST_LINE_BYTES:
            raise ValueError(f"a message of more than {MOST_LINE_BYTES} bytes")


class CurrentVariant:
    """A small file with the name of the variant that is being done, which survives the process that writes it.

    It costs a microsecond, and tells who killed the process, without a message for each call.
    """

    BYTES = 256

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._last: str | None = None

    def set(self, variant: str) -> None:
        """Note this variant; an empty name: none in particular."""
        if variant != self._last:
            os.pwrite(self._descriptor, variant.encode()[: self.BYTES].ljust(self.BYTES), 0)
            self._last = variant

    @staticmethod
    def read(path: str) -> str:
        """The variant that was noted last; empty without one."""
        try:
            with open(path, "rb") as file:  # noqa: PTH123 (next to os.open above)
                return file.read(CurrentVariant.BYTES).decode(errors="replace").strip()
        except OSError:
            return ""
