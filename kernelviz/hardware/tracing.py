"""The cause why CUPTI cannot trace, found by its error. CUPTI itself is used in `measure.timing.cupti`."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kernelviz.core.notices import Notice, NoticeKind

_SIGNS: Mapping[NoticeKind, tuple[str, ...]] = MappingProxyType(
    {
        "cupti_not_allowed": ("INSUFFICIENT_PRIVILEGES", "error 35"),
        "other_profiler": ("MULTIPLE_SUBSCRIBERS", "error 39"),
        "no_cupti": ("ModuleNotFoundError", "ImportError"),
        "other_cupti_version": ("NotSupportedError", "NOT_COMPATIBLE", "FunctionNotFoundError"),
    }
)
"""What the text of a tracer's error contains, by its cause (CUPTI API reference, "CUptiResult")."""


def cause(errors: Sequence[str]) -> Notice:
    """The first known cause in the tracers' errors, in the format of `measure.timing.tracers.open_tracer`.

    >>> cause(["CuptiTracer: cuptiError: ERROR_INSUFFICIENT_PRIVILEGES (35)"]).kind
    'cupti_not_allowed'
    """
    known = (kind for kind, signs in _SIGNS.items() if any(sign in " ".join(errors) for sign in signs))
    silent = not errors or "traced nothing" in errors[0]
    return Notice(next(known, "nothing_traced" if silent else "cupti_error"), {"error": "".join(errors[:1])})


def tracing(line: str | None) -> Notice | None:
    """A notice when the last worker could not use CUPTI, else None.

    `line` is the tracer of its environment: a name, then the errors of the tracers before it; None before any measurement.
    """
    name, *errors = (line or "cupti").split("; ")
    match name:
        case "kineto":
            return Notice("tracer_kineto", {"cause": cause(errors)}, "tracer", "info")
        case "events":
            return Notice("tracer_events", {"cause": cause(errors)}, "tracer")
        case _:
            return None
