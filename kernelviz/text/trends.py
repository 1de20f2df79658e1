"""What a trend says, in words that page, terminal and exports share."""

from kernelviz.core import units
from kernelviz.metrics.trend import Change, Difference, Trend


def describe_change(change: Change, trend: Trend) -> str:
    """
    >>> from kernelviz.metrics.trend import Point, trend
    >>> made = trend([Point(f"r{i}", f"2026-11-{i + 1:02}T08:00", 1e-5 * (1 if i < 5 else 1.03)) for i in range(10)])
    >>> describe_change(made.changes[0], made)
    '▼ 3.0 % slower since 2026-11-06 (run r5): 10.00 → 10.30 µs'
    """
    point = trend.points[change.index]
    sign = "▼" if change.ratio > 1 else "▲"
    said = (
        f"{sign} {units.percent(abs(change.ratio - 1), 1)} {change.direction} since {point.at[:10]} (run {point.run_id}): "
        f"{_between(change.before_s, change.after_s)}"
    )
    return said + (f"; {', '.join(map(format_difference, change.because))}" if change.because else "")


def format_difference(difference: Difference) -> str:
    """What differs between the runs before and after a change.

    >>> format_difference(Difference("torch", "2.11", None))
    'torch 2.11 → –'
    """
    return f"{difference.name} {difference.before or '–'} → {difference.after or '–'}"


def describe_trend(trend: Trend) -> str:
    """How the case stands today, in one line.

    >>> from kernelviz.metrics.trend import Point, trend
    >>> describe_trend(trend([Point("a", "2026-11-01", 1e-5)]))
    'one run: no trend yet'
    >>> describe_trend(trend([Point(str(i), "2026-11-01", 1e-5) for i in range(6)]))
    'one level over 6 runs (noise from run to run 0.2 %)'
    """
    count = len(trend.points)
    if count < 2:
        return "one run: no trend yet" if count else "no run"
    noise = f"noise from run to run {units.percent(trend.noise, 1)}"
    left = trend.regression
    if left is not None:
        return f"{units.percent(left.ratio - 1, 1)} slower than its best level ({noise})"
    last = trend.unconfirmed
    if last is not None:
        difference = units.percent(abs(last.ratio - 1), 1)
        return f"the newest run alone is {difference} {last.direction}: not confirmed yet ({noise})"
    many = len(trend.changes) + 1
    return f"{'one level' if many == 1 else f'{many} levels'} over {count} runs ({noise})"


def format_setup(setup: str) -> str:
    """How the times were taken: clock mode, timer, launch.

    >>> format_setup("burst cupti graph"), format_setup("sustained host")
    ('burst, CUPTI stamps in graphs', 'sustained, host clock')
    """
    clock, *rest = setup.split()
    parts = [_SETUPS.get(part, part) for part in rest]
    return f"{clock}, {' '.join(parts)}" if parts else clock


_SETUPS = {
    "cupti": "CUPTI stamps",
    "kineto": "stamps of torch.profiler",
    "events": "CUDA events",
    "host": "host clock",
    "graph": "in graphs",
    "stream": "in the stream",
}


def _between(before_s: float, after_s: float) -> str:
    scale, unit = units.time_unit(before_s)
    return f"{units.significant(before_s / scale)} → {units.significant(after_s / scale)} {unit}"
