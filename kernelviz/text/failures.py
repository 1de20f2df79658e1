"""Failures in text: the stage, the reasons, and what another program wrote of it."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import assert_never

from kernelviz.core import Accuracy, Cheat, Failure, Stage
from kernelviz.core.reasons import (
    Between,
    CachedOutput,
    CacheNotWritable,
    Cancelled,
    CancelledBefore,
    CancelledDuring,
    CudaError,
    DiskFull,
    DoesNotFitMemory,
    ErrorTooLarge,
    ImpossiblyFast,
    LowerPrecision,
    MutatedInput,
    NeedMissing,
    NoCompute,
    NoDirection,
    NoDtype,
    NoResult,
    NotAdmitted,
    NotFinite,
    NoWorker,
    OtherStream,
    OutputCount,
    OutputDtype,
    OutputShape,
    PersistingL2,
    Reason,
    Recompiled,
    ServerStopped,
    Silent,
    Skipped,
    Stale,
    TookTooLong,
    TracerLostRecords,
    Unwritten,
    WorkerEnded,
    WorkerGarbled,
    WorkerNotReady,
)
from kernelviz.text.cheats import NAMES
from kernelviz.text.text import Text, join, on_one_line

STAGES: Mapping[Stage, Text] = MappingProxyType(
    {
        "unavailable": Text("not available here"),
        "compile": Text("does not compile"),
        "out_of_memory": Text("out of memory"),
        "wrong": Text("wrong result"),
        "impossible": Text("impossibly fast"),
        "crash": Text("crashed"),
        "timeout": Text("took too long"),
        "cancelled": Text("cancelled"),
    }
)
"""A failure's stage."""


def describe_failure(failure: Failure) -> Text:
    """Why the case failed: its reasons, then the message of another program. Empty where nothing is known but the stage.

    >>> str(describe_failure(Failure(stage="wrong", reasons=(Unwritten(elements=3), Stale(seed=1)))))[:61]
    'leaves output unwritten: 3 elements were never written; answe'
    >>> str(describe_failure(Failure(stage="crash", reasons=(CudaError(),), message="misaligned address")))
    'CUDA error: misaligned address'
    """
    return describe_reasons(failure.reasons, failure.message)


def describe_check(checked: Accuracy) -> Text:
    """Why outputs did not pass the gate. Empty where they did."""
    return describe_reasons(checked.reasons, checked.message)


def has_description(failure: Failure) -> bool:
    """Whether more is known of a failure than its stage."""
    return bool(failure.reasons or failure.message)


def format_failure(failure: Failure, *, most: int | None = None) -> Text:
    """Stage and description on one line, the description cut after so many characters.

    >>> str(format_failure(Failure(stage="compile", message="no  such\\nfile")))
    'does not compile: no such file'
    >>> str(format_failure(Failure(stage="compile", message="no such file"), most=5)), str(format_failure(Failure(stage="crash")))
    ('does not compile: no s…', 'crashed')
    """
    if not has_description(failure):
        return STAGES[failure.stage]
    description = str(on_one_line(describe_failure(failure)))
    if most is not None and len(description) > most:
        description = description[: most - 1] + "…"
    return STAGES[failure.stage] + f": {description}"


def describe_reasons(reasons: Sequence[Reason], message: str = "") -> Text:
    """All reasons, and the message behind the last one."""
    if not reasons:
        return Text(message)
    said = join("; ", (describe_reason(reason) for reason in reasons))
    if not message:
        return said + ": no reason is given" if isinstance(reasons[-1], Skipped) else said
    match reasons[-1]:
        case DiskFull() | CacheNotWritable():
            return said + f" ({message})"
        case WorkerEnded() | WorkerGarbled() | Silent() | TookTooLong() | WorkerNotReady():
            return said + f"\n{message}"
        case _:
            return said + f": {message}"


def describe_reason(reason: Reason) -> Text:
    """One reason, as the end of a sentence."""
    match reason:
        case OtherStream():
            return _cheat("other_stream", _other_stream(reason))
        case CachedOutput(between=between):
            return _cheat("cached_output", f"a call that launched nothing {_between(between)}")
        case MutatedInput(inputs=inputs):
            return _cheat("mutated_input", ", ".join(inputs))
        case Unwritten(elements=elements):
            return _cheat("unwritten", f"{elements} elements were never written")
        case Stale(seed=seed):
            return _cheat("stale", f"these are the outputs for fill {seed} of its inputs, which are others by now")
        case LowerPrecision(precision=precision):
            return _cheat("lower_precision", f"its errors are those of {precision}")
        case Recompiled():
            return _cheat("recompiled", _recompiled(reason))
        case PersistingL2(size_bytes=size_bytes):
            return _cheat("persisting_l2", f"it let {size_bytes} bytes of the L2 hold persisting lines")
        case NotFinite(elements=elements):
            return Text(f"{elements} elements are NaN or Inf where the reference is not, or the reverse")
        case ErrorTooLarge(of_bound=of_bound):
            times = "inf" if of_bound is None else f"{of_bound:.3g}"
            return Text(f"the largest error is {times} times the allowed one")
        case OutputCount() | OutputShape() | OutputDtype():
            return _output(reason)
        case ImpossiblyFast():
            return Text(
                f"{reason.time_s * 1e6:.3g} us is less than the {reason.least_s * 1e6:.3g} us that the data sheet of "
                f"{reason.device} allows for this traffic and work; the call cannot have done it"
            )
        case NoDtype() | NoCompute() | NoDirection() | NotAdmitted() | NeedMissing() | Skipped():
            return _refusal(reason)
        case _:
            return _ended(reason)


def _cheat(cheat: Cheat, details: str) -> Text:
    return NAMES[cheat] + (f": {details}" if details else "")


def _between(between: Between | None) -> str:
    return f"between {'its flush' if between == 'flush' else 'its markers'} and its end marker"


def _other_stream(reason: OtherStream) -> str:
    match reason.evidence:
        case "outside":
            return f"a call that launched nothing {_between(reason.between)}, while something ran outside"
        case "early":
            return f"work of the call starts {reason.early_ns} ns before its flush ends"
        case "late":
            return "work of the call ends behind its end marker"
        case "not_captured":
            return "what it launches is not captured with it"
        case _:
            assert_never(reason.evidence)


def _recompiled(reason: Recompiled) -> str:
    if reason.graphs is not None:
        return f"torch.compile made {reason.graphs} graphs of this problem instead of 1"
    return "torch.compile wants to compile a bound call again" if reason.again else ""


def _output(reason: OutputCount | OutputShape | OutputDtype) -> Text:
    match reason:
        case OutputCount(returned=returned, expected=expected, op=op):
            return Text(f"returned {returned} outputs, op {op!r} has {expected}")
        case OutputShape(output=output, shape=shape, expected=wanted):
            return Text(f"output {output} has shape {shape}, {wanted} was expected")
        case OutputDtype(output=output, dtype=dtype, expected=named):
            return Text(f"output {output} is {dtype}, {named} was expected")
        case _:
            assert_never(reason)


def _refusal(reason: NoDtype | NoCompute | NoDirection | NotAdmitted | NeedMissing | Skipped) -> Text:
    match reason:
        case NoDtype(dtype=dtype, has=has):
            return Text(f"has no {dtype} kernel (it has {', '.join(has)})")
        case NoCompute(compute=compute, has=has):
            return Text(f"computes in {', '.join(has)} only, not in {compute}")
        case NoDirection(direction=direction):
            return Text(f"has no {direction} pass")
        case NotAdmitted(text=text):
            return Text(f"this configuration is not for such sizes: {text}")
        case NeedMissing(text=text):
            return Text(text)
        case Skipped():
            return Text("skipped")
        case _:
            assert_never(reason)


def _ended(
    reason: CancelledBefore
    | CancelledDuring
    | Cancelled
    | ServerStopped
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
    | NoWorker,
) -> Text:
    match reason:
        case CancelledBefore():
            return Text("cancelled before it was measured")
        case CancelledDuring(blocks=blocks, needed=needed):
            return Text(f"cancelled after {blocks} of {needed} blocks")
        case Cancelled():
            return Text("cancelled")
        case ServerStopped():
            return Text("the server was stopped")
        case DoesNotFitMemory(needed_bytes=needed_bytes, free_bytes=free_bytes, device=device):
            return Text(
                f"needs {needed_bytes / 2**30:.2f} GiB (inputs, outputs and the reference), "
                f"{free_bytes / 2**30:.2f} GiB are free on {device}; choose smaller sizes"
            )
        case DiskFull(folders=folders):
            where = ", ".join(f"{f.path} ({f.variable})" for f in folders)
            return Text(f"the disk is full; free some space, or move what compilers write there: {where}")
        case CacheNotWritable(path=path, cache=cache):
            remedy = f"make {cache.path} writable, or set {cache.variable} to a folder that is"
            return Text(f"{path} cannot be written; {remedy}")
        case TracerLostRecords():
            return Text("the tracer lost its records")
        case CudaError():
            return Text("CUDA error")
        case NoResult():
            return Text("the measuring session ended this problem without a result for the variant")
        case WorkerEnded(exit_code=exit_code, signal=signal):
            if exit_code is not None:
                return Text(f"the worker process left with exit code {exit_code}")
            if signal is None:
                return Text("the worker process closed its connection")
            return Text(f"the worker process was ended by {'signal ' if signal.isdecimal() else ''}{signal}")
        case WorkerGarbled(error=error):
            return Text(f"the worker sent what is no message ({error})")
        case Silent(seconds=seconds, step=step):
            return Text(f"nothing was heard for {seconds:.3g} s" + (f" while {step}" if step else ""))
        case TookTooLong(seconds=seconds):
            return Text(f"no result after {seconds:.3g} s")
        case WorkerNotReady(seconds=seconds):
            return Text(f"the worker was not ready after {seconds:.3g} s")
        case NoWorker():
            return Text("no worker can be started")
        case _:
            assert_never(reason)
