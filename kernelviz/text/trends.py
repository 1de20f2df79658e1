"""What a trend says, in words that page, terminal and exports share."""

from kernelviz.core import units
from kernelviz.metrics.trend import Change, Difference, Trend


def change_words(change: Change, found: Trend) -> str:
    """
    >>> from kernelviz.metrics.trend import Point, trend
    >>> made = trend([Point(f"r{i}", f"2026-11-{i + 1:02}T08:00", 1e-5 * (1 if i < 5 else 1.03)) for i in range(10)])
    >>> change_words(made.changes[0], made)
    '▼ 3.0 % slower since 2026-11-06 (run r5): 10.00 → 10.30 µs'
    """
    point = found.points[change.index]
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


def state_words(found: Trend) -> str:
    """How the case stands today, in one line.

    >>> from kernelviz.metrics.trend import Point, trend
    >>> state_words(trend([Point("a", "2026-11-01", 1e-5)]))
    'one run: no trend yet'
    >>> state_words(trend([Point(str(i), "2026-11-01", 1e-5) for i in range(6)]))
    'one level over 6 runs (noise from run to run 0.2 %)'
    """
    count = len(found.points)
    if count < 2:
        return "one run: no trend yet" if count else "no run"
    noise = f"noise from run to run {units.percent(found.noise, 1)}"
    left = found.regression
    if left is not None:
        return f"{units.percent(left.ratio - 1, 1)} slower than its best level ({noise})"
    last = found.unconfirmed
    if last is not None:
        far = units.percent(abs(last.ratio - 1), 1)
        return f"the newest run alone is {far} {last.direction}: not confirmed yet ({noise})"
    many = len(found.changes) + 1
    return f"{'one level' if many == 1 else f'{many} levels'} over {count} runs ({noise})"


def setup_words(setup: str) -> str:
    """How the times were taken: clock mode, timer, launch.

    >>> setup_words("burst cupti graph"), setup_words("sustained host")
    ('burst, CUPTI stamps in graphs', 'sustained, host clock')
    """
    clock, *rest = setup.split()
    words = [_SETUPS.get(word, word) for word in rest]
    return f"{clock}, {' '.join(words)}" if words else clock


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
