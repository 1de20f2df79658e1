"""Times by the stamps of a device: how long it computes, communicates, and does both at once. Pure functions of spans.

The hidden share is the overlap of both over the time of communicating, as Holistic Trace Analysis defines
"communication computation overlap".
"""

from collections.abc import Iterable, Sequence

from kernelviz.core.workload import Lane, Span

Interval = tuple[float, float]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The intervals in order, with those that overlap as one.

    >>> union([(2.0, 3.0), (0.0, 1.0), (0.5, 1.5)])
    [(0.0, 1.5), (2.0, 3.0)]
    """
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def covered(intervals: Iterable[Interval]) -> float:
    """The time in which at least one interval is.

    >>> covered([(0.0, 2.0), (1.0, 3.0)])
    3.0
    """
    return sum(end - begin for begin, end in union(intervals))


def overlap(first: Iterable[Interval], second: Iterable[Interval]) -> float:
    """The time in which both have an interval.

    >>> overlap([(0.0, 2.0), (4.0, 5.0)], [(1.0, 4.5)])
    1.5
    """
    one, other = union(first), union(second)
    total, i, j = 0.0, 0, 0
    while i < len(one) and j < len(other):
        # Not the sum of both minus their union: rounding makes 0 a tiny number of either sign.
        total += max(0.0, min(one[i][1], other[j][1]) - max(one[i][0], other[j][0]))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return total


def of_lane(spans: Sequence[Span], lane: Lane) -> list[Interval]:
    """Begin and end of the spans of a lane."""
    return [(span.start_s, span.end_s) for span in spans if span.lane == lane]


def hidden_share(spans: Sequence[Span]) -> float | None:
    """Time of computing and communicating at once, over the time of communicating; None if nothing communicates.

    >>> compute = Span(lane="compute", start_s=0.0, end_s=3.0)
    >>> hidden_share([compute, Span(lane="communication", start_s=2.0, end_s=4.0)])
    0.5
    """
    communication = of_lane(spans, "communication")
    time_s = covered(communication)
    return overlap(of_lane(spans, "compute"), communication) / time_s if time_s > 0 else None
