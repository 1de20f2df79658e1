"""Failures in text: the stage, the reasons, and the message of another program."""

from collections.abc import Mapping
from types import MappingProxyType

from kernelviz.core import Accuracy, Failure, Inspection, LaterFailure, Stage, units
from kernelviz.core import reasons as r
from kernelviz.core.cheats import cheat_of
from kernelviz.text.cheats import NAMES
from kernelviz.text.notices import format_notice
from kernelviz.text.text import Template, Text, fill, join, on_one_line

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
_NOT_SUPPORTED: Mapping[type, Text] = MappingProxyType(
    {
        r.SizeTooLarge: Text("size not supported"),
        r.FailedElsewhere: Text("not valid"),
        **dict.fromkeys((r.NoDtype, r.NoCompute, r.NoDirection, r.NotAdmitted), Text("not supported")),
    }
)
"""The stage of what the variant solves on no machine: "not available here" would sound as if another machine could."""
_BETWEEN: Mapping[r.Between | None, str] = {
    "flush": "launched nothing between its flush and its end marker",
    "markers": "launched nothing between its markers and its end marker",
}
_OTHER_STREAM: Mapping[str, str] = {
    "outside": "a call that {nothing}, while something ran outside",
    "early": "work of the call starts {reason.early_ns} ns before its flush ends",
    "late": "work of the call ends behind its end marker",
    "not_captured": "what it launches is not captured with it",
}

_FAILED_ELSEWHERE: Mapping[str, str] = {
    "compile": "the tool could not compile it",
    "runtime": "the tool could not run it",
    "invalid": "no valid configuration for the tool",
    "unknown": "the tool has no time for it, and its file does not say why",
}


def _other_stream(reason: r.OtherStream) -> str:
    return _OTHER_STREAM[reason.evidence].format(reason=reason, nothing=_BETWEEN.get(reason.between))


def _need_missing(reason: r.NeedMissing) -> str:
    if reason.notice is None:
        return reason.text
    try:
        return str(format_notice(reason.notice))
    except (
        LookupError,
        AttributeError,
        TypeError,
        ValueError,
        RecursionError,
    ):  # a document may hold a notice without its data
        return f"needs what this machine does not have ({reason.notice.kind})"


def _recompiled(reason: r.Recompiled) -> str:
    if reason.graphs is not None:
        return f"torch.compile made {reason.graphs} graphs of this problem instead of 1"
    return "torch.compile wants to compile a bound call again" if reason.again else ""


def _worker_ended(reason: r.WorkerEnded) -> str:
    if reason.exit_code is not None:
        return f"the worker process left with exit code {reason.exit_code}"
    if reason.signal is None:
        return "the worker process closed its connection"
    return f"the worker process was ended by {'signal ' if reason.signal.isdecimal() else ''}{reason.signal}"


REASONS: Mapping[type, Template] = {
    # Cheats: what is known besides the name of the cheat.
    r.OtherStream: _other_stream,
    r.CachedOutput: lambda reason: f"a call that {_BETWEEN[reason.between]}",
    r.MutatedInput: lambda reason: ", ".join(reason.inputs),
    r.Unwritten: "{0.elements} elements were never written",
    r.Stale: "these are the outputs for fill {0.seed}, but the inputs have been filled again since",
    r.LowerPrecision: "its errors are those of {0.precision}",
    r.Recompiled: _recompiled,
    r.PersistingL2: "it let {0.size_bytes} bytes of the L2 hold persisting lines",
    r.Unfinished: "{0.elements} elements changed after the call had returned",
    r.Remembered: lambda reason: (
        f"a call takes {reason.new_s * 1e6:.3g} us with new numbers, "
        f"and {reason.repeated_s * 1e6:.3g} us with the same numbers again"
    ),
    # All others.
    r.NotFinite: "{0.elements} elements are NaN or Inf where the reference is not, or the reverse",
    r.ErrorTooLarge: lambda reason: (
        f"the largest error is {'inf' if reason.of_bound is None else f'{reason.of_bound:.3g}'} times the allowed one"
    ),
    r.OutputCount: "returned {0.returned} outputs, op {0.op!r} has {0.expected}",
    r.OutputType: "output {0.output} is of type {0.type}, a plain tensor was expected",
    r.OutputShape: "output {0.output} has shape {0.shape}, {0.expected} was expected",
    r.OutputDtype: "output {0.output} is {0.dtype}, {0.expected} was expected",
    r.OutputStrides: "output {0.output} has strides {0.strides}; it must be contiguous, so that it cannot be a view of an input",
    r.ImpossiblyFast: lambda reason: (
        f"{reason.time_s * 1e6:.3g} us is less than the {reason.least_s * 1e6:.3g} us that the data sheet of "
        f"{reason.device} allows for this traffic and work; the call cannot have done it"
    ),
    r.ClockContradicted: lambda reason: (
        f"the worker's time is {units.seconds(reason.time_s)}, but by the judge's own clock the shortest of "
        f"{reason.trials} calls took {units.seconds(reason.judged_s)}, without the {units.seconds(reason.copy_s)} "
        "for the copy of its outputs"
    ),
    r.NotJudged: "the judge could not check it",
    r.ReplacedFunctions: lambda reason: (
        f"it replaced functions that measure or check it ({', '.join(reason.functions[:3])}"
        + (f" and {len(reason.functions) - 3} more)" if len(reason.functions) > 3 else ")")
    ),
    r.NoDtype: lambda reason: f"has no {reason.dtype} kernel (it has {', '.join(reason.has)})",
    r.NoCompute: lambda reason: f"computes in {', '.join(reason.has)} only, not in {reason.compute}",
    r.NoDirection: "has no {0.direction} pass",
    r.SizeTooLarge: "takes {0.axis} up to {0.most} only",
    r.NotAdmitted: "this configuration is not for such sizes: {0.text}",
    r.NeedMissing: _need_missing,
    r.Skipped: "skipped",
    r.FailedElsewhere: lambda reason: _FAILED_ELSEWHERE[reason.how],
    r.CancelledBefore: "cancelled before it was measured",
    r.CancelledDuring: "cancelled after {0.blocks} of {0.needed} blocks",
    r.Cancelled: "cancelled",
    r.NoLaunch: "binding returned an object of type {0.type}, a function that launches the kernel was expected",
    r.Raised: "raised {0.type}",
    r.StoredResultDamaged: "its stored result cannot be read, because the database is damaged there; measure it again",
    r.ServerStopped: "the server was stopped",
    r.DoesNotFitMemory: lambda reason: (
        f"needs {reason.needed_bytes / 2**30:.2f} GiB (inputs, outputs and the reference), "
        f"{reason.free_bytes / 2**30:.2f} GiB are free on {reason.device}; choose smaller sizes"
    ),
    r.DiskFull: lambda reason: (
        "the disk is full; free some space, or move what compilers write there: "
        + ", ".join(f"{folder.path} ({folder.variable})" for folder in reason.folders)
    ),
    r.CacheNotWritable: (
        "{0.path} cannot be written; make {0.cache.path} writable, or set {0.cache.variable} to a folder that is"
    ),
    r.TracerLostRecords: "the tracer lost its records",
    r.CudaError: "CUDA error",
    r.NoResult: "the measuring session ended this problem without a result for the variant",
    r.WorkerEnded: _worker_ended,
    r.WorkerGarbled: "the worker sent what is no message ({0.error})",
    r.Silent: lambda reason: (
        f"nothing was heard for {reason.seconds:.3g} s" + (f" while {reason.step}" if reason.step else "")
    ),
    r.TookTooLong: "no result after {0.seconds:.3g} s",
    r.WorkerNotReady: "the worker was not ready after {0.seconds:.3g} s",
    r.NoWorker: "no worker can be started",
}
_MESSAGES: Mapping[type, str] = {
    **dict.fromkeys((r.DiskFull, r.CacheNotWritable), " ({})"),
    **dict.fromkeys((r.WorkerEnded, r.WorkerGarbled, r.Silent, r.TookTooLong, r.WorkerNotReady), "\n{}"),
}
"""How the message of another program follows the last reason: a log on a line of its own, all others after a colon."""


def format_stage(failure: Failure) -> Text:
    """The stage of a failure. A problem that the variant does not support is distinguished from a machine that lacks something.

    >>> str(format_stage(Failure(stage="unavailable", reasons=(r.SizeTooLarge(axis="m", size=16, most=8),))))
    'size not supported'
    >>> str(format_stage(Failure(stage="unavailable", reasons=(r.NeedMissing(text="needs CUDA"),))))
    'not available here'
    """
    if any(isinstance(reason, r.FailedElsewhere) and reason.how == "unknown" for reason in failure.reasons):
        return Text("failed")
    texts = (_NOT_SUPPORTED.get(type(reason)) for reason in failure.reasons) if failure.unavailable else ()
    return next((text for text in texts if text is not None), STAGES[failure.stage])


def describe_failure(failure: Failure | LaterFailure | Accuracy | Inspection) -> Text:
    """Why a case failed or is wrong: its reasons, then the message of another program. Empty if nothing is known.

    >>> str(describe_failure(Failure(stage="wrong", reasons=(r.Unwritten(elements=3), r.Stale(seed=1)))))[:62]
    'leaves output unwritten: 3 elements were never written; return'
    >>> str(describe_failure(Failure(stage="crash", reasons=(r.CudaError(),), message="misaligned address")))
    'CUDA error: misaligned address'
    """
    if not failure.reasons:
        return Text(failure.message)
    last = failure.reasons[-1]
    message = failure.message or ("no reason is given" if isinstance(last, r.Skipped) else "")
    return join("; ", map(describe_reason, failure.reasons)) + (
        _MESSAGES.get(type(last), ": {}").format(message) if message else ""
    )


def describe_reason(reason: r.Reason) -> Text:
    """One reason, as the end of a sentence."""
    name = NAMES[cheat_of(reason)] if isinstance(reason, r.Cheating) else ""
    return join(": ", (name, fill(REASONS, reason)))


def has_description(failure: Failure | Accuracy) -> bool:
    """Whether more is known of a failure than its stage."""
    return bool(failure.reasons or failure.message)


def format_failure(failure: Failure, *, most: int | None = None) -> Text:
    """Stage and description on one line. The description is cut after `most` characters.

    >>> str(format_failure(Failure(stage="compile", message="no  such\\nfile")))
    'does not compile: no such file'
    >>> str(format_failure(Failure(stage="compile", message="no such file"), most=5)), str(format_failure(Failure(stage="crash")))
    ('does not compile: no s…', 'crashed')
    """
    description = str(on_one_line(describe_failure(failure)))
    if most is not None and len(description) > most:
        description = description[: most - 1] + "…"
    return join(": ", (format_stage(failure), description))
