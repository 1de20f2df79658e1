"""Documents hold no NaN and no infinity: such values become null, and the method of the figure says how many there were."""

import math

import msgspec

from kernelviz.core.result import Failure, Figure, Result, Timing


def finite_result(result: Result) -> Result:
    """The result with finite figures only; the same object if nothing has to change."""
    outcome = result.outcome
    timing = outcome.timing if isinstance(outcome, Failure) else outcome
    finite = None if timing is None else _finite_timing(timing)
    if finite is None or finite is timing:
        return result
    changed = msgspec.structs.replace(outcome, timing=finite) if isinstance(outcome, Failure) else finite
    return msgspec.structs.replace(result, outcome=changed)


def finite_figure(figure: Figure | None) -> Figure | None:
    """The figure without NaN and infinity. None if its estimate is not finite; without samples if one of them is not.

    >>> finite_figure(Figure(estimate=1e-6, low=float("-inf"), samples=(1e-6, float("nan")))).method
    '1 of 2 samples not finite'
    >>> finite_figure(Figure(estimate=float("nan"))) is None
    True
    """
    if figure is None or not math.isfinite(figure.estimate):
        return None
    samples, blocks = figure.samples or (), figure.blocks or ()
    # Adding is ten times as fast as looking at each sample. A sum that overflows is looked at, too.
    bad = 0 if math.isfinite(sum(samples)) else sum(not math.isfinite(s) for s in samples)
    stamped = all(math.isfinite(b.started_s) and _known(b.clock_hz) for b in blocks)
    if not bad and stamped and _known(figure.low) and _known(figure.high):
        return figure
    return msgspec.structs.replace(
        figure,
        low=figure.low if _known(figure.low) else None,
        high=figure.high if _known(figure.high) else None,
        samples=None if bad else figure.samples,
        blocks=figure.blocks if stamped and not bad else None,
        method="; ".join(filter(None, (figure.method, f"{bad} of {len(samples)} samples not finite" if bad else "")))
        or None,
    )


def _finite_timing(timing: Timing) -> Timing:
    figures = {name: finite_figure(figure) for name, figure in timing.figures.items()}
    changed: dict[str, object] = {name: f for name, f in figures.items() if f is not timing.figures[name]}
    other_times = {name: finite_figure(figure) for name, figure in timing.other_times.items()}
    if any(f is not timing.other_times[name] for name, f in other_times.items()):
        changed["other_times"] = {name: f for name, f in other_times.items() if f is not None}
    return msgspec.structs.replace(timing, **changed) if changed else timing


def _known(value: float | None) -> bool:
    return value is None or math.isfinite(value)
