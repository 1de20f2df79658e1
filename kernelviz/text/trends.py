"""Trends in text, the same on pages, in a terminal and in exported files."""

from kernelviz.core import units
from kernelviz.metrics.trend import MIN_RUNS, Change, Difference, Trend
from kernelviz.text.text import Text, join

_SETUPS = {
    "cupti": "CUPTI timestamps",
    "kineto": "torch.profiler timestamps",
    "events": "CUDA events",
    "host": "host clock",
    "graph": "in graphs",
    "stream": "in the stream",
    "call": "",
}


def describe_change(change: Change, trend: Trend) -> Text:
    """
    >>> from kernelviz.metrics.trend import Point, trend
    >>> made = trend([Point(f"r{i}", f"2026-11-{i + 1:02}T08:00", 1e-5 * (1 if i < 5 else 1.03)) for i in range(10)])
    >>> str(describe_change(made.changes[0], made))
    '▼ 3.0 % slower since 2026-11-06 (run r5): 10.00 → 10.30 µs'
    """
    point = trend.points[change.index]
    scale, unit = units.time_unit(change.before_s)
    before, after = (units.significant(time_s / scale) for time_s in (change.before_s, change.after_s))
    said = (
        f"{'▼' if change.ratio > 1 else '▲'} {units.difference(change.ratio, change.direction)} "
        f"since {point.at[:10]} (run {point.run_id}): {before} → {after} {unit}"
    )
    return join("; ", (said, join(", ", map(format_difference, change.because))))


def format_difference(difference: Difference) -> Text:
    """What differs between the runs before and after a change.

    >>> str(format_difference(Difference("torch", "2.11", None)))
    'torch 2.11 → –'
    """
    return Text(f"{difference.name} {difference.before or '–'} → {difference.after or '–'}")


def describe_trend(trend: Trend) -> Text:
    """The state of a case today, on one line.

    >>> from kernelviz.metrics.trend import Point, trend
    >>> str(describe_trend(trend([Point("a", "2026-11-01", 1e-5)])))
    '1 run: a trend needs 3'
    >>> str(describe_trend(trend([Point(str(i), "2026-11-01", 1e-5) for i in range(6)])))
    'one level over 6 runs (noise from run to run 0.2 %)'
    """
    runs = len(trend.points)
    if runs < MIN_RUNS:
        return Text(f"{units.counted(runs, 'run')}: a trend needs {MIN_RUNS}" if runs else "no run")
    last = trend.unconfirmed
    if trend.regression is not None:
        said = f"{units.difference(trend.regression.ratio, 'slower')} than its best level"
    elif last is not None:
        said = f"the newest run alone is {units.difference(last.ratio, last.direction)}: not confirmed yet"
    else:
        levels = len(trend.changes) + 1
        said = f"{'one level' if levels == 1 else f'{levels} levels'} over {runs} runs"
    return Text(f"{said} (noise from run to run {units.percent(trend.noise)})")


def format_setup(setup: str) -> Text:
    """How the times were measured: clock mode, timer, launch.

    >>> print(format_setup("burst cupti graph"), format_setup("sustained host call"), sep="; ")
    burst, CUPTI timestamps in graphs; sustained, host clock
    >>> print(format_setup("sustained:10s cupti graph"))
    sustained after 10s of load, CUPTI timestamps in graphs
    """
    clock, *rest = setup.split()
    mode, _, load = clock.partition(":")
    return join(
        ", ",
        (
            f"{mode} after {load} of load" if load else mode,
            " ".join(filter(None, (_SETUPS.get(part, part) for part in rest))),
        ),
    )
