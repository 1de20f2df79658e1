"""What server and worker say to each other: one JSON object a line, over a private pair of sockets.

Server to worker: Open first, then Measure, Calibrate, Selftest, Inspect, Describe, Cancel, Shutdown. Worker to
server: Hello answers Open, Told carries an event of core.events, and TaskDone, TaskFailed or Described ends a task.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kernelviz.core.events import Event
from kernelviz.core.problem import Direction, Method, Problem
from kernelviz.core.reasons import Reason
from kernelviz.core.result import Stage
from kernelviz.core.run import Environment
from kernelviz.core.tuning import Tuned
from kernelviz.ops.catalog.op import Backend, Need

MAX_LINE_BYTES = 64 * 2**20
"""A longer line is no message of ours; the longest real one (a result with its samples) has about 1 MiB."""


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="say"):
    """Base of both directions. The tag is called `say`, because events use `kind`."""


class Open(_Message, frozen=True, kw_only=True, tag="open"):
    """Open the session ``module:function`` on a device, with one's own variants from files; Hello answers."""

    session: str
    device: str
    plugins: tuple[str, ...] = ()


class Measure(_Message, frozen=True, kw_only=True, tag="measure"):
    """Measure the variants of one problem; `tuned`: with which configurations, by variant (others: their default)."""

    task: int
    problem: Problem
    variants: tuple[str, ...]
    baseline: str
    method: Method
    tuned: dict[str, Tuned] = {}


class Calibrate(_Message, frozen=True, kw_only=True, tag="calibrate"):
    """Measure the roofs."""

    task: int


class Selftest(_Message, frozen=True, kw_only=True, tag="selftest"):
    """Put the instrument to the test: all checks, or those whose name is, or begins with, one of `only`."""

    task: int
    only: tuple[str, ...] = ()
    quick: bool = False


class Inspect(_Message, frozen=True, kw_only=True, tag="inspect"):
    """Make one call and describe what it got and gave, and where it differs from the reference."""

    task: int
    problem: Problem
    variant: str
    tuned: dict[str, Tuned] = {}


class Describe(_Message, frozen=True, kw_only=True, tag="describe"):
    """Import plug-ins and say what they hold; needs no session."""

    task: int
    plugins: tuple[str, ...]


class Cancel(_Message, frozen=True, kw_only=True, tag="cancel"):
    """End the task after its current block."""

    task: int


class Shutdown(_Message, frozen=True, kw_only=True, tag="shutdown"):
    """Leave."""


Task = Measure | Calibrate | Selftest | Inspect
Request = Open | Task | Describe | Cancel | Shutdown


class VariantFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A variant of a plug-in, without its function: what a process that never imports it may know.

    `digest`: of its source, as its results carry it, and of its backward pass where that is another function.
    """

    op: str
    name: str
    backend: Backend
    summary: str
    digest: str
    needs: tuple[Need, ...] = ()
    dtypes: tuple[str, ...] | None = None
    computes: tuple[str, ...] | None = None
    directions: tuple[Direction, ...] = ("forward",)
    mutates: tuple[str, ...] = ()
    late: bool = False
    only_when_named: bool = False
    space: dict[str, tuple[int, ...]] = {}
    backward_digest: str | None = None


class Hello(_Message, frozen=True, kw_only=True, tag="hello"):
    """The session is open; `pid` is the worker's."""

    environment: Environment
    pid: int


class Told(_Message, frozen=True, kw_only=True, tag="told"):
    """Something happened in a task."""

    task: int
    event: Event


class TaskDone(_Message, frozen=True, kw_only=True, tag="done"):
    """The task came to its end. `spoilt` says why this process must be replaced before the next one."""

    task: int
    spoilt: str | None = None


class PluginFault(msgspec.Struct, frozen=True, kw_only=True):
    """A plug-in that cannot be used, and what is to be done about it."""

    plugin: str
    remedy: str


class TaskFailed(_Message, frozen=True, kw_only=True, tag="failed"):
    """The task raised. `task` is None when the session could not be opened; `reasons` and `message` as a `Failure` has them.

    `plugin`: the plug-in that cannot be used, where that is what was raised.
    """

    task: int | None
    stage: Stage
    reasons: tuple[Reason, ...] = ()
    message: str = ""
    spoilt: str | None = None
    plugin: PluginFault | None = None


class Described(_Message, frozen=True, kw_only=True, tag="described"):
    """What the plug-ins hold, in ladder order."""

    task: int
    variants: tuple[VariantFacts, ...]


Reply = Hello | Told | TaskDone | TaskFailed | Described

_encoder = msgspec.json.Encoder()
_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_replies: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


class ProtocolError(Exception):
    """A line that is none of the messages above; the other side is no longer to be trusted."""


def encode(message: Request | Reply) -> bytes:
    """The message as one line."""
    return _encoder.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """Raises ProtocolError."""
    try:
        return _requests.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"{error}: {line[:200]!r}") from None


def decode_reply(line: bytes) -> Reply:
    """Raises ProtocolError."""
    try:
        return _replies.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"{error}: {line[:200]!r}") from None


class Lines:
    """Bytes as they arrive, cut into lines."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that `data` completes. Raises ProtocolError when one grows beyond MAX_LINE_BYTES."""
        start = len(self._pending)
        self._pending += data
        while (end := self._pending.find(b"\n", start)) >= 0:
            line = bytes(self._pending[:end])
            del self._pending[: end + 1]
            start = 0
            yield line
        if len(self._pending) > MAX_LINE_BYTES:
            raise ProtocolError(f"a line of more than {MAX_LINE_BYTES} bytes")
