"""Why a case has no usable time, or why its outputs are wrong: tagged values with their numbers, never sentences.

`kernelviz.text.failures` turns them into text. The text of another program (a compiler's log, the text of an exception) is not a
reason: it is stored as the `message` of the failure, which is shown and never interpreted.
"""

from typing import Literal

from kernelviz.core.errors import KernelvizError
from kernelviz.core.notices import Notice
from kernelviz.core.problem import Struct

Stage = Literal["unavailable", "compile", "out_of_memory", "wrong", "impossible", "crash", "timeout", "cancelled"]
Between = Literal["flush", "markers"]
"""What encloses a timed call: flush and end marker (cold), or begin and end marker (warm)."""


class _Reason(Struct, frozen=True, kw_only=True, tag_field="code"):
    """Base of all reasons. In a document, `code` says which one it is."""


# What a call may not do to look fast: one reason for each cheat, with the cheat's name as its code (core.cheats).


class OtherStream(_Reason, frozen=True, kw_only=True, tag="other_stream"):
    """The call works on another stream or thread. `evidence`: ``outside`` (nothing ran `between` the markers, but something ran
    elsewhere), ``early`` (work started `early_ns` before the flush ended), ``late`` (work ended after the end marker),
    ``not_captured`` (a graph of the call is empty)."""

    evidence: Literal["outside", "early", "late", "not_captured"]
    between: Between | None = None
    early_ns: int | None = None


class CachedOutput(_Reason, frozen=True, kw_only=True, tag="cached_output"):
    """The call launched nothing between the markers, and nothing ran elsewhere."""

    between: Between


class MutatedInput(_Reason, frozen=True, kw_only=True, tag="mutated_input"):
    """The call changed these inputs without declaring it."""

    inputs: tuple[str, ...]


class Unwritten(_Reason, frozen=True, kw_only=True, tag="unwritten"):
    """The number of output elements that still contain the bytes with which they were filled before the call."""

    elements: int


class Stale(_Reason, frozen=True, kw_only=True, tag="stale"):
    """The outputs are those of the fill with this seed, although the inputs were filled anew since."""

    seed: int


class LowerPrecision(_Reason, frozen=True, kw_only=True, tag="lower_precision"):
    """The errors are those of this narrower format."""

    precision: str


class Recompiled(_Reason, frozen=True, kw_only=True, tag="recompiled"):
    """Something was compiled in a timed call. `graphs`: torch.compile made so many of one problem; `again`: it wants to compile a
    bound call again."""

    graphs: int | None = None
    again: bool = False


class PersistingL2(_Reason, frozen=True, kw_only=True, tag="persisting_l2"):
    """The call set the limit for persisting lines in the L2, which no flush evicts, to so many bytes."""

    size_bytes: int


class Unfinished(_Reason, frozen=True, kw_only=True, tag="unfinished"):
    """The number of output elements that changed after the call had returned."""

    elements: int


class Remembered(_Reason, frozen=True, kw_only=True, tag="remembered"):
    """The times of the call, in seconds, with numbers that it had not seen before and with the same numbers again."""

    new_s: float
    repeated_s: float


Cheating = (
    OtherStream
    | CachedOutput
    | MutatedInput
    | Unwritten
    | Stale
    | LowerPrecision
    | Recompiled
    | PersistingL2
    | Unfinished
    | Remembered
)

# Other findings of the correctness gate.


class NotFinite(_Reason, frozen=True, kw_only=True, tag="not_finite"):
    """The number of elements that are NaN or Inf where the reference is not, or the reverse."""

    elements: int


class ErrorTooLarge(_Reason, frozen=True, kw_only=True, tag="error_too_large"):
    """The largest error as a multiple of the allowed one; None: infinite."""

    of_bound: float | None


class OutputCount(_Reason, frozen=True, kw_only=True, tag="output_count"):
    """The call returned another number of outputs than the op has."""

    returned: int
    expected: int
    op: str


class OutputType(_Reason, frozen=True, kw_only=True, tag="output_type"):
    """An output is no plain tensor, but None, a number, or a subclass of tensor that may compute when it is read. `type`: the
    name of its class."""

    output: str
    type: str


class OutputShape(_Reason, frozen=True, kw_only=True, tag="output_shape"):
    output: str
    shape: tuple[int, ...]
    expected: tuple[int, ...]


class OutputDtype(_Reason, frozen=True, kw_only=True, tag="output_dtype"):
    """torch's names of both dtypes."""

    output: str
    dtype: str
    expected: str


class OutputStrides(_Reason, frozen=True, kw_only=True, tag="output_strides"):
    """The output is not contiguous, so it may be a view of an input that nobody wrote. Strides in elements."""

    output: str
    strides: tuple[int, ...]


class ImpossiblyFast(_Reason, frozen=True, kw_only=True, tag="impossibly_fast"):
    """The time is under the least that the data sheet of the device allows for this traffic and work."""

    time_s: float
    least_s: float
    device: str


class ClockContradicted(_Reason, frozen=True, kw_only=True, tag="clock_contradicted"):
    """The time by the worker, and the shortest of `trials` calls by the clock of the judge, less `copy_s` for the copy of its
    outputs."""

    time_s: float
    judged_s: float
    copy_s: float
    trials: int


class NotJudged(_Reason, frozen=True, kw_only=True, tag="not_judged"):
    """The judge could not check the case; the message says why."""


class ReplacedFunctions(_Reason, frozen=True, kw_only=True, tag="replaced_functions"):
    """Binding or calling the variant replaced these functions of kernelviz or of Python's clock, by their full names."""

    functions: tuple[str, ...]


# Why a case was not measured.


class NoDtype(_Reason, frozen=True, kw_only=True, tag="no_dtype"):
    """The variant has no kernel for this dtype; it has those for `has`."""

    dtype: str
    has: tuple[str, ...]


class NoCompute(_Reason, frozen=True, kw_only=True, tag="no_compute"):
    """The variant does not compute in this precision; it does in `has`."""

    compute: str
    has: tuple[str, ...]


class NoDirection(_Reason, frozen=True, kw_only=True, tag="no_direction"):
    """The variant has no such pass; None: another tool's file does not say which one is asked."""

    direction: str | None


class SizeTooLarge(_Reason, frozen=True, kw_only=True, tag="size_too_large"):
    """The variant takes sizes of this axis up to `most` only."""

    axis: str
    size: int
    most: int


class NotAdmitted(_Reason, frozen=True, kw_only=True, tag="not_admitted"):
    """The rule of the variant does not admit this configuration for these sizes; `text` is the reason that its author gives."""

    text: str


class NeedMissing(_Reason, frozen=True, kw_only=True, tag="need_missing", omit_defaults=True):
    """The machine lacks something that the variant needs. `notice` says what; older documents have `text` instead."""

    notice: Notice | None = None
    text: str = ""


class Skipped(_Reason, frozen=True, kw_only=True, tag="skipped"):
    """Another tool skipped the case; the message is its own, empty where it gives none."""


class FailedElsewhere(_Reason, frozen=True, kw_only=True, tag="failed_elsewhere"):
    """Another tool has no time for the case. `how`: what its file says: it did not compile, did not run, was not a valid
    configuration, or nothing (``unknown``)."""

    how: Literal["compile", "runtime", "invalid", "unknown"]


Refusal = NoDtype | NoCompute | NoDirection | SizeTooLarge | NotAdmitted | NeedMissing
"""Why a variant cannot solve a problem, on any machine or on this one."""

# Where the case ended.


class CancelledBefore(_Reason, frozen=True, kw_only=True, tag="cancelled_before"):
    """Cancelled before it was measured."""


class CancelledDuring(_Reason, frozen=True, kw_only=True, tag="cancelled_during"):
    """Cancelled after `blocks` of the blocks that an interval needs."""

    blocks: int
    needed: int


class NoLaunch(_Reason, frozen=True, kw_only=True, tag="no_launch"):
    """Binding returned something else than a function that launches the kernel. `type`: its name in Python."""

    type: str


class Raised(_Reason, frozen=True, kw_only=True, tag="raised"):
    """Binding or calling the variant raised an exception that is not a compiler's. `type`: its class; the message is its text."""

    type: str


class Cancelled(_Reason, frozen=True, kw_only=True, tag="cancelled"):
    """Cancelled while the worker was busy with it."""


class ServerStopped(_Reason, frozen=True, kw_only=True, tag="server_stopped"):
    """The server was stopped."""


class StoredResultDamaged(_Reason, frozen=True, kw_only=True, tag="stored_result_damaged"):
    """The database holds a result of the case that cannot be read."""


class DoesNotFitMemory(_Reason, frozen=True, kw_only=True, tag="does_not_fit"):
    """Inputs, outputs and reference need more memory than is free."""

    needed_bytes: int
    free_bytes: int
    device: str


class Folder(Struct, frozen=True, kw_only=True):
    """A folder that compilers write, and the environment variable that moves it."""

    path: str
    variable: str


class DiskFull(_Reason, frozen=True, kw_only=True, tag="disk_full"):
    """No space was left while something was compiled; `folders` are those that may be moved."""

    folders: tuple[Folder, ...]


class CacheNotWritable(_Reason, frozen=True, kw_only=True, tag="cache_not_writable"):
    """A file in a compiler's cache could not be written; `cache` is the folder to be made writable, or to be moved."""

    path: str
    cache: Folder


class TracerLostRecords(_Reason, frozen=True, kw_only=True, tag="tracer_lost_records"):
    """The records of the tracer do not fit the calls that were made; the message says how."""


class CudaError(_Reason, frozen=True, kw_only=True, tag="cuda_error"):
    """The CUDA context is broken; the message is the error's own."""


class NoResult(_Reason, frozen=True, kw_only=True, tag="no_result"):
    """The measuring session ended the problem without a result for the variant."""


class WorkerEnded(_Reason, frozen=True, kw_only=True, tag="worker_ended"):
    """The worker process ended: with an exit code, or by a signal (its name, or its number as text). Both None: it closed its
    connection. The message is the end of its log."""

    exit_code: int | None = None
    signal: str | None = None


class WorkerGarbled(_Reason, frozen=True, kw_only=True, tag="worker_garbled"):
    """The worker sent something that is not a protocol message. The message of the failure is the end of its log."""

    error: str


class Silent(_Reason, frozen=True, kw_only=True, tag="silent"):
    """The worker sent nothing for so long, during this step. The message is the end of its log."""

    seconds: float
    step: str | None = None


class TookTooLong(_Reason, frozen=True, kw_only=True, tag="took_too_long"):
    """The case had no result after so long; the message is the end of the worker's log."""

    seconds: float


class WorkerNotReady(_Reason, frozen=True, kw_only=True, tag="worker_not_ready"):
    """The worker was not ready after so long; the message is the end of its log."""

    seconds: float


class NoWorker(_Reason, frozen=True, kw_only=True, tag="no_worker"):
    """No worker process can be started; the message says why."""


Ended = (
    CancelledBefore
    | CancelledDuring
    | Cancelled
    | ServerStopped
    | NoLaunch
    | Raised
    | StoredResultDamaged
    | DoesNotFitMemory
    | DiskFull
    | CacheNotWritable
    | TracerLostRecords
    | CudaError
    | NoResult
    | WorkerEnded
    | WorkerGarbled
    | Silent
    | TookTooLong
    | WorkerNotReady
    | NoWorker
)
OutputFault = OutputCount | OutputType | OutputShape | OutputDtype | OutputStrides
Judged = ClockContradicted | NotJudged | ReplacedFunctions
Reason = (
    Cheating
    | NotFinite
    | ErrorTooLarge
    | OutputFault
    | ImpossiblyFast
    | Judged
    | Refusal
    | Skipped
    | FailedElsewhere
    | Ended
)


class Refused(KernelvizError):
    """A result is refused for this reason. Its text is the reason's code and data: for a log, not for people."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason
        super().__init__(repr(reason))
