"""Documents hold no NaN and no infinity: what is not finite becomes null, and it is said how much there was."""

import math

import msgspec

from kernelviz.core.result import Failure, Figure, Outcome, Result, Timing


def finite_result(result: Result) -> Result:
    """The result with every figure finite; the same object where nothing had to change."""
    outcome = _finite_outcome(result.outcome)
    return result if outcome is result.outcome else msgspec.structs.replace(result, outcome=outcome)


def finite_figure(figure: Figure | None) -> Figure | None:
    """The figure without NaN and infinity: None when its estimate is one; samples are left out when one of them is.

    >>> finite_figure(Figure(estimate=1e-6, low=float("-inf"), samples=(1e-6, float("nan")))).method
    '1 of 2 samples not finite'
    >>> finite_figure(Figure(estimate=float("nan"))) is None
    True
    """
    if figure is None or not math.isfinite(figure.estimate):
        return None
    samples, blocks = figure.samples or (), figure.blocks or ()
    bad = sum(not math.isfinite(s) for s in samples)
    stamped = all(math.isfinite(b.started_s) and _known(b.clock_hz) for b in blocks)
    if not bad and stamped and _known(figure.low) and _known(figure.high):
        return figure
    said = f"{bad} of {len(samples)} samples not finite" if bad else None
    return msgspec.structs.replace(
        figure,
        low=figure.low if _known(figure.low) else None,
        high=figure.high if _known(figure.high) else None,
        samples=None if bad else figure.samples,
        blocks=figure.blocks if stamped and not bad else None,
        method="; ".join(part for part in (figure.method, said) if part) or None,
    )


def _finite_outcome(outcome: Outcome) -> Outcome:
    if isinstance(outcome, Failure):
        timing = None if outcome.timing is None else _finite_timing(outcome.timing)
        return outcome if timing is outcome.timing else msgspec.structs.replace(outcome, timing=timing)
    return _finite_timing(outcome)


def _finite_timing(timing: Timing) -> Timing:
    changed: dict[str, object] = {}
    for name, figure in timing.figures.items():
        finite = finite_figure(figure)
        if finite is not figure:
            changed[name] = finite
    other_times = {name: finite for name, f in timing.other_times.items() if (finite := finite_figure(f)) is not None}
    if len(other_times) < len(timing.other_times) or any(
        other_times[n] is not timing.other_times[n] for n in other_times
    ):
        changed["other_times"] = other_times
    return msgspec.structs.replace(timing, **changed) if changed else timing


def _known(value: float | None) -> bool:
    return value is None or math.isfinite(value)
