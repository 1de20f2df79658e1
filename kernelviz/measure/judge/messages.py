"""The messages between server, judge and worker: one JSON object a packet, over pairs of SOCK_SEQPACKET sockets.

The server sends JudgeCase with the judge's end of a connection to the worker, and gets Judged. On that connection, the judge
sends Memory with the descriptor of the shared memory; once the worker has sent Measured, it sends Trial for each call and at
last TrialsOver. The worker answers a Trial in the shared memory (measure.judge.shared_memory). Imports no torch.
"""

import socket
from typing import TypeVar

import msgspec

from kernelviz.core import Accuracy, Problem

MOST_BYTES = 1 << 16


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="say"):
    """Base class of all messages."""


class JudgeReady(_Message, frozen=True, kw_only=True, tag="ready"):
    """The judge has its context on the device.

    `exchange_s`: what a call costs by the judge's clock beyond the call itself, measured with an honest worker before there was
    another one (measure.judge.exchange), by this judge or an earlier one; None on a processor, and where that failed.
    """

    exchange_s: float | None = None


class JudgeCase(_Message, frozen=True, kw_only=True, tag="case"):
    """Judge the variant that the worker at the other end of the packet's descriptor measures. `number`: of the case."""

    number: int
    problem: Problem


class Judged(_Message, frozen=True, kw_only=True, tag="judged"):
    """What the judge found.

    `times_s`: by the judge's clock, of each compared call from its start to the copy of its outputs; without the first, which may
    compile. `copy_s`: the time of such a copy by the judge. `accuracy`: of the outputs of calls that the worker could not know.
    `error`: why the case could not be judged, or empty. `seconds`: how long judging took.
    """

    number: int
    times_s: tuple[float, ...] = ()
    copy_s: float = 0.0
    accuracy: Accuracy | None = None
    error: str = ""
    seconds: float = 0.0


class Memory(_Message, frozen=True, kw_only=True, tag="memory"):
    """The shared memory: its descriptor comes with the packet. `handle`: of the GPU's memory (hexadecimal), or empty."""

    handle: str = ""


class Measured(_Message, frozen=True, kw_only=True, tag="measured"):
    """The worker has measured the variant and is ready for trials."""


class Trial(_Message, frozen=True, kw_only=True, tag="trial"):
    """Wait for the inputs of this number, make one call, and copy its outputs."""

    number: int


class TrialsOver(_Message, frozen=True, kw_only=True, tag="over"):
    """There are no more trials."""


ToJudge = JudgeCase
FromJudge = JudgeReady | Judged
OnTrial = Memory | Trial | TrialsOver
TO_JUDGE: msgspec.json.Decoder[ToJudge] = msgspec.json.Decoder(ToJudge)
FROM_JUDGE: msgspec.json.Decoder[FromJudge] = msgspec.json.Decoder(FromJudge)
FROM_WORKER: msgspec.json.Decoder[Measured] = msgspec.json.Decoder(Measured)
ON_TRIAL: msgspec.json.Decoder[OnTrial] = msgspec.json.Decoder(OnTrial)
T = TypeVar("T")


def pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a new connection."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(
    connection: socket.socket, message: ToJudge | FromJudge | OnTrial | Measured, descriptors: tuple[int, ...] = ()
) -> None:
    """Send a message with descriptors. Raises OSError."""
    socket.send_fds(connection, [msgspec.json.encode(message)], list(descriptors))


def receive(connection: socket.socket, decoder: msgspec.json.Decoder[T]) -> tuple[T, tuple[int, ...]]:
    """The next message and its descriptors. Raises EOFError where the other end is closed, msgspec.MsgspecError, OSError."""
    data, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, 1)
    if not data:
        raise EOFError
    return decoder.decode(data), tuple(descriptors)
