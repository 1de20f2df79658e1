"""The causes why CUPTI cannot trace, found by its error, with their remedies. CUPTI itself is used in `measure.timing.cupti`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelviz.hardware.notice import Notice, Severity


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause. `signs`: the error's text contains one of these (CUPTI API reference, "CUptiResult")."""

    signs: tuple[str, ...]
    sentence: str
    remedy: str


_NOT_ALLOWED = Cause(
    ("INSUFFICIENT_PRIVILEGES", "error 35"),
    "this user is not allowed to trace the GPU (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)",
    "set NVreg_RestrictProfilingToAdminUsers=0 for the driver on the host, or start the container with --cap-add=SYS_ADMIN "
    "--user root",
)
_OTHER_PROFILER = Cause(
    ("MULTIPLE_SUBSCRIBERS", "error 39"),
    "another profiler holds CUPTI in this process (CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)",
    "start kernelviz without nsys, ncu or a debugger round it; they can be pointed at `kernelviz launch` instead",
)
_NOT_INSTALLED = Cause(
    ("ModuleNotFoundError", "ImportError"),
    "cupti-python is not installed",
    "install it with pip install cupti-python==13.0.1 and restart kernelviz",
)
_OTHER_VERSION = Cause(
    ("NotSupportedError", "NOT_COMPATIBLE", "FunctionNotFoundError"),
    "the installed CUPTI and the driver do not fit each other",
    "install the pair that kernelviz is tested with (pip install -r requirements.txt) and restart kernelviz",
)
_CAUSES = (_NOT_ALLOWED, _OTHER_PROFILER, _NOT_INSTALLED, _OTHER_VERSION)
_UNKNOWN = Cause(
    (),
    "nothing was traced",
    "end every profiler and debugger of this process and restart kernelviz; if none runs, allow tracing with "
    "NVreg_RestrictProfilingToAdminUsers=0 for the driver on the host",
)


def cause(reasons: Sequence[str]) -> Cause:
    """The first known cause in the tracers' errors, in the format of `measure.timing.tracers.open_tracer`.

    >>> cause(["CuptiTracer: cuptiError: ERROR_INSUFFICIENT_PRIVILEGES (35)"]).sentence[:29]
    'this user is not allowed to t'
    """
    said = " ".join(reasons)
    for known in _CAUSES:
        if any(sign in said for sign in known.signs):
            return known
    return _UNKNOWN if not reasons or "traced nothing" in reasons[0] else replace(_UNKNOWN, sentence=reasons[0])


def tracing(line: str | None) -> Notice | None:
    """A notice when the last worker could not use CUPTI, else None.

    `line` is the tracer of its environment: a name, then the errors of the tracers before it; None before any measurement.
    """
    name, *reasons = (line or "cupti").split("; ")
    instead = {
        "kineto": "torch.profiler gives the kernels' times instead, without their grids and registers",
        "events": "CUDA events give the times instead, within about a microsecond, and no kernel is named",
    }
    if name not in instead:
        return None
    why = cause(reasons)
    severity: Severity = "info" if name == "kineto" else "warning"
    return Notice("tracer", f"CUPTI cannot be used: {why.sentence}; {instead[name]}", why.remedy, severity)
