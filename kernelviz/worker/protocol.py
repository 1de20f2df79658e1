"""The messages between server and worker: one JSON object a line, over a private pair of sockets.

Server to worker: Open first, then Measure, Calibrate, Selftest, Inspect, Describe, Cancel. Worker to server: Hello
answers Open, WorkEvent carries an event of core.events, and WorkDone, WorkFailed or Described ends a unit of work.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from kernelviz.core import Direction, Environment, Event, Failure, Method, Problem, Tuned
from kernelviz.measure.compile_ahead.messages import UpcomingCases
from kernelviz.ops.catalog.variant import PublishedGain

MAX_LINE_BYTES = 64 * 2**20
"""A longer line is not a message of this protocol; the longest real message (a result with its samples) has about 1 MiB."""


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="say"):
    """Base class of the messages of both directions. The tag field is called `say`, because events use `kind`."""


class _OfWork(_Message, frozen=True, kw_only=True):
    """Base class of the messages about one unit of work. The supervisor gives it its number when it starts."""

    work_id: int = 0


class Open(_Message, frozen=True, kw_only=True, tag="open"):
    """Open the session ``module:function`` on a device, with variants from plug-in files; Hello answers. `compile_processes`:
    how many processes compile ahead; 0: none is started."""

    session: str
    device: str
    plugins: tuple[str, ...] = ()
    compile_processes: int = 0


class Measure(_OfWork, frozen=True, kw_only=True, tag="measure"):
    """Measure the variants of one problem; `tuned`: their configurations by variant (a variant without one: its default).
    `judged`: there is one variant, and a judge checks it over the worker's other connection. `upcoming`: the cases of the run
    `run_id` that are measured now and next, to be compiled ahead. `following`: the key of the problem that the run measures
    next."""

    problem: Problem
    variants: tuple[str, ...]
    baseline: str
    method: Method
    tuned: dict[str, Tuned] = {}
    judged: bool = False
    run_id: str = ""
    upcoming: tuple[UpcomingCases, ...] = ()
    following: str | None = None


class Calibrate(_OfWork, frozen=True, kw_only=True, tag="calibrate"):
    """Measure the roofs."""


class Selftest(_OfWork, frozen=True, kw_only=True, tag="selftest"):
    """Make the checks of the selftest: all, or those whose name is, or begins with, one of `only`. `quick`: fewer repetitions
    of each."""

    only: tuple[str, ...] = ()
    quick: bool = False


class Inspect(_OfWork, frozen=True, kw_only=True, tag="inspect"):
    """Make one call and describe its inputs and outputs, and where the outputs differ from the reference."""

    problem: Problem
    variant: str
    tuned: dict[str, Tuned] = {}


class Describe(_OfWork, frozen=True, kw_only=True, tag="describe"):
    """Import plug-ins and describe their variants; needs no session."""

    plugins: tuple[str, ...]


class Cancel(_OfWork, frozen=True, kw_only=True, tag="cancel"):
    """End the work after its current block."""


Work = Measure | Calibrate | Selftest | Inspect
ToWorker = Open | Work | Describe | Cancel


class VariantFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A variant of a plug-in without its function, for a process that never imports the plug-in.

    `digest`: of its source, as in its results; `backward_digest`: of its backward pass where that is another function.
    """

    op: str
    name: str
    backend: str
    summary: str
    digest: str
    needs: tuple[str, ...] = ()
    dtypes: tuple[str, ...] | None = None
    computes: tuple[str, ...] | None = None
    directions: tuple[Direction, ...] = ("forward",)
    mutates: tuple[str, ...] = ()
    slow_compile: bool = False
    only_when_named: bool = False
    published: PublishedGain | None = None
    space: dict[str, tuple[int, ...]] = {}
    backward_digest: str | None = None


class Hello(_Message, frozen=True, kw_only=True, tag="hello"):
    """The session is open."""

    environment: Environment


class WorkEvent(_OfWork, frozen=True, kw_only=True, tag="event"):
    """An event of a unit of work."""

    event: Event


class WorkDone(_OfWork, frozen=True, kw_only=True, tag="done"):
    """The work has ended. `spoilt`: why this process must be replaced before the next work, or None."""

    spoilt: str | None = None


class WorkFailed(_OfWork, frozen=True, kw_only=True, tag="failed"):
    """The work raised an exception, or (with the work's number 0) the session could not be opened.

    `plugin`: the plug-in that cannot be used, where the exception was about a plug-in; the failure's message is the remedy.
    """

    failure: Failure
    spoilt: str | None = None
    plugin: str | None = None


class Described(_OfWork, frozen=True, kw_only=True, tag="described"):
    """The variants of the plug-ins, in ladder order."""

    variants: tuple[VariantFacts, ...]


FromWorker = Hello | WorkEvent | WorkDone | WorkFailed | Described
TO_WORKER: msgspec.json.Decoder[ToWorker] = msgspec.json.Decoder(ToWorker)
FROM_WORKER: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)
T = TypeVar("T")


class ProtocolError(Exception):
    """A line that is none of the messages above; the connection can no longer be used."""


def encode(message: ToWorker | FromWorker) -> bytes:
    """The message as one line."""
    return msgspec.json.encode(message) + b"\n"


class Incoming(Generic[T]):
    """Bytes as they arrive, cut into lines and decoded as messages of one direction."""

    def __init__(self, decoder: msgspec.json.Decoder[T]) -> None:
        self._decoder = decoder
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[T]:
        """The messages that `data` completes. Raises ProtocolError for any other line, and for one beyond MAX_LINE_BYTES."""
        start = len(self._pending)  # searched before; a search of the whole line at each call takes 31 s for 60 MiB
        self._pending += data
        while (end := self._pending.find(b"\n", start)) >= 0:
            line = bytes(self._pending[:end])
            del self._pending[: end + 1]
            start = 0
            try:
                yield self._decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise ProtocolError(f"{error}: {line[:200]!r}") from None
        if len(self._pending) > MAX_LINE_BYTES:
            raise ProtocolError(f"a line of more than {MAX_LINE_BYTES} bytes")
