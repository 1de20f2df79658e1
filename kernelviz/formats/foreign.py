"""Runs of another tool's file. A fact that the file does not contain is None, empty or the word unknown, never a guess."""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from kernelviz.core import Device, DocumentError, Environment, Method, Plan, Problem, Result, Run, Search
from kernelviz.formats import document
from kernelviz.formats.validation import LEAST_S, MAX_CASES, MOST_S, checked

UNKNOWN, UNKNOWN_MACHINE = "unknown", "an unknown machine"
THEIR_METHOD = Method(clock=None, budget_s=0.0, half_width=0.0, ratio_half_width=0.0, seeds=0, figures=())
"""No figure of kernelviz was measured. How the tool measured is stored with each figure."""
_WHOLE = re.compile(r"[+-]?\d{1,19}")


def run_of(
    *,
    tool: str,
    op: str,
    title: str,
    note: str,
    device: Device,
    results: Sequence[Result],
    versions: Mapping[str, str] | None = None,
    host: str = UNKNOWN_MACHINE,
    created_at: str = "",
    search: Search | None = None,
    path: str,
) -> Run:
    """A checked run of those results; its id follows from its facts. An empty `created_at` means unknown. `search`: of a tuning.

    Errors: DocumentError at `path`, the field of the file that the results come from.
    """
    problems = tuple({r.problem.key: r.problem for r in results}.values())
    variants = tuple(dict.fromkeys(r.variant for r in results))
    if len(problems) * len(variants) > MAX_CASES:
        raise DocumentError(f"it has more than {MAX_CASES} cases", path=path)
    run = Run(
        id="",
        title=title,
        note=note,
        created_at=created_at,
        environment=Environment(
            device=device, host=host, platform=UNKNOWN, python=UNKNOWN, kernelviz=UNKNOWN, versions=dict(versions or {})
        ),
        method=THEIR_METHOD,
        plan=Plan(problems=problems, variants=variants, baseline=variants[0], device=device.id, search=search),
        results=tuple(results),
    )
    try:
        checked(run)
    except DocumentError as error:
        raise DocumentError(f"{error.reason} (as read: {error.path})", path=path) from None
    return msgspec.structs.replace(run, id=f"{tool}-{document.digest(run)[:16]}")


def problem(op: str, sizes: Mapping[str, int]) -> Problem:
    """A problem of which only op and sizes are known."""
    return Problem(op=op, sizes=dict(sizes), dtype=UNKNOWN, direction=None, data=None)


def whole(value: object, path: str) -> int:
    """A whole number, also written as text. Errors: DocumentError."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    raise DocumentError(f"{str(value)[:40]!r} is no whole number", path=path)


def number(value: object, path: str) -> float | None:
    """A number, also written as text; None for null and for what is not finite. Errors: DocumentError."""
    if value is None:
        return None
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            return float(value) if math.isfinite(float(value)) else None
    raise DocumentError(f"{str(value)[:40]!r} is no number", path=path)


def seconds(value: float | None, path: str) -> float | None:
    """A possible time; None if it is unknown or 0, because tools write 0 if nothing was timed. Errors: DocumentError."""
    if value is None or value == 0:
        return None
    if not LEAST_S <= value <= MOST_S:
        raise DocumentError(f"{value:.6g} s is outside {LEAST_S:g} to {MOST_S:g}", path=path)
    return value


def milliseconds(time_s: float) -> float:
    """A time in ms that is the same time when it is divided by 1000 again, to within one rounding; exactly, where there is one.

    >>> all(math.isclose(milliseconds(n * 1.1e-7) / 1000, n * 1.1e-7, rel_tol=2**-52) for n in range(1, 5000))
    True
    """
    estimate = time_s * 1000
    candidates = (estimate, math.nextafter(estimate, 0.0), math.nextafter(estimate, math.inf))
    return next((c for c in candidates if c / 1000 == time_s), estimate)
