"""A tuning in words, and as plain values."""

from typing import Any

import msgspec

from kernelviz.core import Run, Search, Span, Tuning
from kernelviz.core.configuration import configuration_text, parted
from kernelviz.metrics.rows import Row
from kernelviz.metrics.tuning import Reason, Tried, speed_up_span
from kernelviz.text.failures import describe_failure, format_failure
from kernelviz.text.text import on_one_line


def describe_search(tried: Tried, search: Search | None) -> str:
    """How many of which were tried."""
    sample = ""
    if search is not None and search.seed is not None:
        sample = f" drawn with seed {search.seed} from {search.admitted} that make sense"
    parts = [f"{tried.tried} of {tried.planned} configurations tried{sample}", f"the space has {tried.space}"]
    parts += [f"{tried.failed} failed"] if tried.failed else []
    parts += [f"{tried.refused} not for such sizes"] if tried.refused else []
    parts += [f"{tried.cancelled} cancelled"] if tried.cancelled else []
    return ", ".join(parts)


def describe_failures(reason: Reason) -> str:
    """Why some failed; where their messages differ in numbers only, the first of them.

    >>> from kernelviz.core.result import Failure
    >>> describe_failures(Reason(Failure(stage="compile", message="Required: 300"), ("t[b=1]", "t[b=2]"), alike=True))
    'does not compile: Required: 300 (and the like, with other numbers)'
    """
    said = str(format_failure(reason.failure))
    return f"{said} (and the like, with other numbers)" if reason.alike else said


def describe_best(tried: Tried, stored: Tuning | None) -> str:
    """Which configuration is used from now on; or which is best so far."""
    best = tried.best
    if best is None or best.figure is None:
        return "No configuration is correct: nothing is kept."
    values = configuration_text(parted(best.result.variant)[1] or {})
    if best.is_baseline:
        said = f"No configuration is measurably faster than the default, {values}"
    else:
        said = f"Best: {values}, {_gain(speed_up_span(best))}"
    if stored is None:
        return f"{said}. It is not kept."
    return f"{said}. {tried.variant} uses it from now on for {stored.problem.key} on {stored.device}."


def format_gain(tuning: Tuning) -> str:
    """What tuning gained.

    >>> _gain(Span(estimate=1.25, low=1.2, high=1.3)), _gain(Span(estimate=1.25)), _gain(None)
    ('1.25× the default (1.20–1.30)', '1.25× the default', 'the default has no time')
    """
    return "the default is best" if tuning.configuration == tuning.default else _gain(tuning.speed_up)


def _gain(span: Span | None) -> str:
    if span is None:
        return "the default has no time"
    interval = "" if span.low is None or span.high is None else f" ({span.low:.2f}–{span.high:.2f})"
    return f"{span.estimate:.2f}× the default{interval}"


def describe_cost(seconds: float, tried: Tried) -> str:
    """What it took, a figure of its own that is in no sample; 0 seconds: nobody here knows.

    >>> _cost(90.0, 61.25)
    'Tuning took 90.0 s of the device, of which 61.2 s binding and first calls (compiling).'
    """
    return _cost(seconds, tried.preparing_s) if seconds else "What the tuning took is not known here."


def _cost(seconds: float, preparing_s: float) -> str:
    return (
        f"Tuning took {seconds:.1f} s of the device, of which {preparing_s:.1f} s binding and first calls (compiling)."
    )


def record(run: Run, tried: Tried, stored: Tuning | None, seconds: float) -> dict[str, Any]:
    """The same as plain values: every configuration with its time, best first, then those that failed, by reason."""
    return {
        "run": run.id,
        "status": run.status,
        "problem": msgspec.to_builtins(tried.problem),
        "variant": tried.variant,
        "device": run.environment.device.name,
        "seed": run.plan.search.seed if run.plan.search else None,
        "space": tried.space,
        "planned": tried.planned,
        "tried": tried.tried,
        "failed": tried.failed,
        "refused": tried.refused,
        "cancelled": tried.cancelled,
        "seconds": seconds,
        "preparing_s": tried.preparing_s,
        "best": parted(tried.best.result.variant)[1] if tried.best is not None else None,
        "kept": msgspec.to_builtins(stored),
        "configurations": records(tried),
        "failures": [
            {
                "stage": r.failure.stage,
                "message": str(on_one_line(describe_failure(r.failure))),
                "configurations": [parted(name)[1] for name in r.variants],
            }
            for r in tried.failures
        ],
    }


def records(tried: Tried) -> list[dict[str, Any]]:
    """A flat record for each correct configuration, best first."""
    return [_record(row, tried) for row in tried.ranked]


def _record(row: Row, tried: Tried) -> dict[str, Any]:
    gain = speed_up_span(row)
    assert row.figure is not None
    return {
        **(parted(row.result.variant)[1] or {}),
        "time_s": row.figure.estimate,
        "time_low_s": row.figure.low,
        "time_high_s": row.figure.high,
        "speed_up": gain.estimate if gain else None,
        "speed_up_low": gain.low if gain else None,
        "speed_up_high": gain.high if gain else None,
        "verdict": row.verdict.kind if row.verdict else None,
        "is_default": row.is_baseline,
        "is_best": row is tried.best,
        "error_of_bound_fraction": row.result.accuracy.worst_of_bound if row.result.accuracy else None,
    }
