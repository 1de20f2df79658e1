"""The messages between server and worker: one JSON object a line, over a private pair of sockets.

Server to worker: Open first, then Measure, Calibrate, Selftest, Inspect, Describe, Cancel, Shutdown. Worker to server: Hello
answers Open, WorkEvent carries an event of core.events, and WorkDone, WorkFailed or Described ends a unit of work.
"""

from collections.abc import Iterator

import msgspec

from kernelviz.core import Direction, Environment, Event, Method, Problem, Stage, Tuned
from kernelviz.core.reasons import Reason
from kernelviz.ops.catalog.variant import Backend, Need

MAX_LINE_BYTES = 64 * 2**20
"""A longer line is not a message of this protocol; the longest real message (a result with its samples) has about 1 MiB."""


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="say"):
    """Base class of the messages of both directions. The tag field is called `say`, because events use `kind`."""


class Open(_Message, frozen=True, kw_only=True, tag="open"):
    """Open the session ``module:function`` on a device, with variants from plug-in files; Hello answers."""

    session: str
    device: str
    plugins: tuple[str, ...] = ()


class Measure(_Message, frozen=True, kw_only=True, tag="measure"):
    """Measure the variants of one problem; `tuned`: their configurations by variant (a variant without one: its default)."""

    work_id: int
    problem: Problem
    variants: tuple[str, ...]
    baseline: str
    method: Method
    tuned: dict[str, Tuned] = {}


class Calibrate(_Message, frozen=True, kw_only=True, tag="calibrate"):
    """Measure the roofs."""

    work_id: int


class Selftest(_Message, frozen=True, kw_only=True, tag="selftest"):
    """Make the checks of the selftest: all, or those whose name is, or begins with, one of `only`."""

    work_id: int
    only: tuple[str, ...] = ()
    quick: bool = False


class Inspect(_Message, frozen=True, kw_only=True, tag="inspect"):
    """Make one call and describe its inputs and outputs, and where the outputs differ from the reference."""

    work_id: int
    problem: Problem
    variant: str
    tuned: dict[str, Tuned] = {}


class Describe(_Message, frozen=True, kw_only=True, tag="describe"):
    """Import plug-ins and describe their variants; needs no session."""

    work_id: int
    plugins: tuple[str, ...]


class Cancel(_Message, frozen=True, kw_only=True, tag="cancel"):
    """End the work after its current block."""

    work_id: int


class Shutdown(_Message, frozen=True, kw_only=True, tag="shutdown"):
    """End the worker process."""


Work = Measure | Calibrate | Selftest | Inspect
ToWorker = Open | Work | Describe | Cancel | Shutdown


class VariantFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A variant of a plug-in without its function, for a process that never imports the plug-in.

    `digest`: of its source, as in its results; `backward_digest`: of its backward pass where that is another function.
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
    slow_compile: bool = False
    only_when_named: bool = False
    space: dict[str, tuple[int, ...]] = {}
    backward_digest: str | None = None


class Hello(_Message, frozen=True, kw_only=True, tag="hello"):
    """The session is open; `pid` is the worker's."""

    environment: Environment
    pid: int


class WorkEvent(_Message, frozen=True, kw_only=True, tag="event"):
    """An event of a unit of work."""

    work_id: int
    event: Event


class WorkDone(_Message, frozen=True, kw_only=True, tag="done"):
    """The work has ended. `spoilt`: why this process must be replaced before the next work, or None."""

    work_id: int
    spoilt: str | None = None


class PluginFault(msgspec.Struct, frozen=True, kw_only=True):
    """A plug-in that cannot be used, and the remedy."""

    plugin: str
    remedy: str


class WorkFailed(_Message, frozen=True, kw_only=True, tag="failed"):
    """The work raised an exception. `work_id` is None when the session could not be opened; `reasons` and `message` are those
    of a `Failure`.

    `plugin`: the plug-in that cannot be used, where the exception was about a plug-in.
    """

    work_id: int | None
    stage: Stage
    reasons: tuple[Reason, ...] = ()
    message: str = ""
    spoilt: str | None = None
    plugin: PluginFault | None = None


class Described(_Message, frozen=True, kw_only=True, tag="described"):
    """The variants of the plug-ins, in ladder order."""

    work_id: int
    variants: tuple[VariantFacts, ...]


FromWorker = Hello | WorkEvent | WorkDone | WorkFailed | Described

_encoder = msgspec.json.Encoder()
_to_worker: msgspec.json.Decoder[ToWorker] = msgspec.json.Decoder(ToWorker)
_from_worker: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)


class ProtocolError(Exception):
    """A line that is none of the messages above; the connection can no longer be used."""


def encode(message: ToWorker | FromWorker) -> bytes:
    """The message as one line."""
    return _encoder.encode(message) + b"\n"


def decode_to_worker(line: bytes) -> ToWorker:
    """Raises ProtocolError."""
    try:
        return _to_worker.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"{error}: {line[:200]!r}") from None


def decode_from_worker(line: bytes) -> FromWorker:
    """Raises ProtocolError."""
    try:
        return _from_worker.decode(line)
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
