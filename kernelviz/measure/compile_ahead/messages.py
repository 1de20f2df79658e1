"""The messages between the worker and the dispatcher of the compiler processes: one JSON object a line, over two sockets."""

import msgspec

from kernelviz.core import Problem, Tuned


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="say"):
    """Base class of the messages."""


class DeviceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What code asks of the worker's GPU before it compiles, so that it gets the same answers where no GPU is visible.

    `index`: of the device in the worker. `arch`: the compute capability as one number (90). `torch_properties`: the attributes
    of ``torch.cuda.get_device_properties``. `triton_properties`: what Triton's driver says of the device. `warp_size`: threads.
    """

    index: int
    arch: int
    torch_properties: dict[str, int | float | str | bool]
    triton_properties: dict[str, int]
    warp_size: int = 32


class UpcomingCases(msgspec.Struct, frozen=True, kw_only=True):
    """Cases of one problem that a run measures next. `tuned`: configurations by variant."""

    problem: Problem
    variants: tuple[str, ...]
    tuned: dict[str, Tuned] = {}


class CompileWork(msgspec.Struct, frozen=True, kw_only=True):
    """A case to compile. `tuned`: the stored configuration of its variant, if there is one."""

    number: int
    problem: Problem
    variant: str
    tuned: Tuned | None = None


class Begin(_Message, frozen=True, kw_only=True, tag="begin"):
    """The first message to the dispatcher: the device, the plug-ins of the worker, and the number of compiler processes."""

    device: DeviceFacts
    plugins: tuple[str, ...]
    processes: int


class Queue(_Message, frozen=True, kw_only=True, tag="queue"):
    """The cases that are to be compiled, in order. They replace all cases of which the compilation has not begun."""

    work: tuple[CompileWork, ...]


class Skip(_Message, frozen=True, kw_only=True, tag="skip"):
    """The worker compiles this case itself, unless its compilation has begun."""

    number: int


class CompileBegan(_Message, frozen=True, kw_only=True, tag="began"):
    """A compiler process, `pid`, has begun with a case."""

    number: int
    pid: int


class CompileEnded(_Message, frozen=True, kw_only=True, tag="done"):
    """A case is compiled; or, with an `error`, it is not (the worker compiles it then). `kernels`: how many it uses."""

    number: int
    kernels: int = 0
    error: str = ""


ToDispatcher = Begin | Queue | Skip
FromDispatcher = CompileBegan | CompileEnded
TO_DISPATCHER: msgspec.json.Decoder[ToDispatcher] = msgspec.json.Decoder(ToDispatcher)
FROM_DISPATCHER: msgspec.json.Decoder[FromDispatcher] = msgspec.json.Decoder(FromDispatcher)
FROM_COMPILER: msgspec.json.Decoder[CompileEnded] = msgspec.json.Decoder(CompileEnded)
WORK: msgspec.json.Decoder[CompileWork] = msgspec.json.Decoder(CompileWork)


def encode(message: ToDispatcher | FromDispatcher | CompileWork) -> bytes:
    """The message as one line."""
    return msgspec.json.encode(message) + b"\n"


class Lines:
    """Bytes as they arrive, cut into lines."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without their line ends."""
        *lines, self._pending = (self._pending + data).split(b"\n")
        return lines
